#include "tools/zmq_socket.h"

#include <zmq.h>

#include <cerrno>
#include <utility>

#include "src/check.h"

namespace conductor::enginesim {
namespace {

tl::unexpected<Error> ZmqError(const std::string& what) {
  const int code = zmq_errno();
  const ErrorCode kind = code == EAGAIN || code == EINTR ? ErrorCode::kDeadlineExceeded
                         : code == EADDRINUSE            ? ErrorCode::kAlreadyExists
                         : code == EINVAL                ? ErrorCode::kInvalidArgument
                                                         : ErrorCode::kUnavailable;
  return MakeError(kind, what + ": " + zmq_strerror(code));
}

}  // namespace

std::string Connectable(const std::string& endpoint) {
  for (const std::string_view any : {"tcp://0.0.0.0:", "tcp://*:", "tcp://[::]:"}) {
    if (endpoint.starts_with(any)) return "tcp://127.0.0.1:" + endpoint.substr(any.size());
  }
  return endpoint;
}

ZmqContext::ZmqContext(int io_threads) : handle_(zmq_ctx_new()) {
  CHECK(handle_ != nullptr);
  zmq_ctx_set(handle_, ZMQ_IO_THREADS, io_threads);
  zmq_ctx_set(handle_, ZMQ_MAX_SOCKETS, kZmqSocketsMax);
}

ZmqContext::~ZmqContext() {
  zmq_ctx_term(handle_);
}

Result<ZmqSocket> ZmqSocket::Open(const ZmqContext& context, int type) {
  void* handle = zmq_socket(context.handle(), type);
  if (handle == nullptr) return ZmqError("open a socket of type " + std::to_string(type));
  ZmqSocket socket(handle);
  CONDUCTOR_RETURN_IF_ERROR(socket.SetInt(ZMQ_LINGER, 0));
  return socket;
}

ZmqSocket::ZmqSocket(ZmqSocket&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  if (this != &other) {
    Close();
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

void ZmqSocket::Close() {
  if (handle_ != nullptr) zmq_close(std::exchange(handle_, nullptr));
}

Status ZmqSocket::SetInt(int option, int value) {
  if (zmq_setsockopt(handle_, option, &value, sizeof(value)) != 0) {
    return ZmqError("set socket option " + std::to_string(option));
  }
  return {};
}

Status ZmqSocket::SetText(int option, std::string_view value) {
  if (zmq_setsockopt(handle_, option, value.data(), value.size()) != 0) {
    return ZmqError("set socket option " + std::to_string(option));
  }
  return {};
}

Result<std::string> ZmqSocket::Bind(const std::string& endpoint) {
  if (zmq_bind(handle_, endpoint.c_str()) != 0) return ZmqError("bind " + endpoint);
  char last[512];
  std::size_t size = sizeof(last);
  if (zmq_getsockopt(handle_, ZMQ_LAST_ENDPOINT, last, &size) != 0 || size == 0) {
    return ZmqError("read the bound endpoint of " + endpoint);
  }
  return std::string(last, size - 1);
}

Result<std::string> ZmqSocket::Connect(const std::string& endpoint) {
  if (zmq_connect(handle_, endpoint.c_str()) != 0) return ZmqError("connect " + endpoint);
  return endpoint;
}

Status ZmqSocket::Send(const Message& message) {
  CHECK(!message.empty());
  for (std::size_t i = 0; i < message.size(); ++i) {
    const int flags = ZMQ_DONTWAIT | (i + 1 < message.size() ? ZMQ_SNDMORE : 0);
    if (zmq_send(handle_, message[i].data(), message[i].size(), flags) < 0) {
      return ZmqError("send frame " + std::to_string(i));
    }
  }
  return {};
}

Result<Message> ZmqSocket::Receive(std::chrono::milliseconds timeout) {
  zmq_pollitem_t item{handle_, 0, ZMQ_POLLIN, 0};
  const int ready = zmq_poll(&item, 1, static_cast<long>(timeout.count()));
  if (ready < 0) return ZmqError("wait for a message");
  if (ready == 0) return MakeError(ErrorCode::kDeadlineExceeded, "no message came in time");
  Message message;
  int more = 1;
  while (more != 0) {
    zmq_msg_t part;
    zmq_msg_init(&part);
    if (zmq_msg_recv(&part, handle_, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close(&part);
      return ZmqError("receive a frame");
    }
    // The rest of an endless message is read, so that the next one starts at its start.
    if (message.size() < kMessagePartsMax) {
      message.emplace_back(static_cast<const char*>(zmq_msg_data(&part)), zmq_msg_size(&part));
    }
    more = zmq_msg_more(&part);
    zmq_msg_close(&part);
  }
  return message;
}

}  // namespace conductor::enginesim
