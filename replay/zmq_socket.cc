#include "replay/zmq_socket.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "src/queries_first.h"

namespace conductor {
namespace {

ErrorCode CodeOf(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::kResourceExhausted;
    case ETERM:
    case ENOTSOCK:
    case EADDRINUSE:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInvalidArgument;
  }
}

// Names of monitor endpoints; unique in the process.
std::string NextMonitorName() {
  // Relaxed: only uniqueness matters.
  static std::atomic<std::uint64_t> last{0};
  return "inproc://connections-" + std::to_string(last.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace

tl::unexpected<Error> ZmqError(std::string_view what) {
  const int error = zmq_errno();
  return MakeError(CodeOf(error), std::string(what) + ": " + zmq_strerror(error));
}

Result<std::unique_ptr<ZmqContext>> ZmqContext::Open(int io_threads, int sockets_max) {
  void* context = zmq_ctx_new();
  if (context == nullptr) return ZmqError("zmq context");
  std::unique_ptr<ZmqContext> owned(new ZmqContext(context));
  if (zmq_ctx_set(context, ZMQ_IO_THREADS, io_threads) != 0) return ZmqError("zmq I/O threads");
  if (zmq_ctx_set(context, ZMQ_MAX_SOCKETS, sockets_max) != 0) return ZmqError("zmq sockets");
  // The first socket starts the threads. (ZMQ_THREAD_SCHED_POLICY ends the process where the system
  // forbids it.)
  const QueriesFirst of_these;
  void* first = zmq_socket(context, ZMQ_PAIR);
  if (first == nullptr) return ZmqError("zmq I/O threads");
  zmq_close(first);
  return owned;
}

ZmqContext::~ZmqContext() {
  while (zmq_ctx_term(context_) != 0 && zmq_errno() == EINTR) {
  }
}

ZmqMessage::ZmqMessage() {
  for (zmq_msg_t& message : messages_) zmq_msg_init(&message);
}

ZmqMessage::~ZmqMessage() {
  for (zmq_msg_t& message : messages_) zmq_msg_close(&message);
}

std::string ZmqMessage::peer_address() {
  if (count_ > 0) {
    const char* address = zmq_msg_gets(&messages_[0], "Peer-Address");
    if (address != nullptr && *address != '\0') return address;
  }
  return "an unknown host";
}

Result<ZmqSocket> ZmqSocket::Open(const ZmqContext& context, int type) {
  void* socket = zmq_socket(context.get(), type);
  if (socket == nullptr) return ZmqError("zmq socket");
  ZmqSocket owned(socket);
  CONDUCTOR_RETURN_IF_ERROR(owned.SetInt(ZMQ_LINGER, 0));
  return owned;
}

ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  if (this != &other) {
    Close();
    socket_ = std::exchange(other.socket_, nullptr);
  }
  return *this;
}

void ZmqSocket::Close() {
  if (socket_ != nullptr) zmq_close(std::exchange(socket_, nullptr));
}

Status ZmqSocket::SetInt(int option, int value) {
  if (zmq_setsockopt(socket_, option, &value, sizeof(value)) == 0) return {};
  return ZmqError("socket option " + std::to_string(option) + " = " + std::to_string(value));
}

Status ZmqSocket::SetInt64(int option, std::int64_t value) {
  if (zmq_setsockopt(socket_, option, &value, sizeof(value)) == 0) return {};
  return ZmqError("socket option " + std::to_string(option) + " = " + std::to_string(value));
}

Status ZmqSocket::SetText(int option, std::string_view value) {
  if (zmq_setsockopt(socket_, option, value.data(), value.size()) == 0) return {};
  return ZmqError("socket option " + std::to_string(option));
}

Status ZmqSocket::Connect(const std::string& endpoint) {
  if (zmq_connect(socket_, endpoint.c_str()) == 0) return {};
  return ZmqError("connect " + endpoint);
}

Status ZmqSocket::Bind(const std::string& endpoint) {
  if (zmq_bind(socket_, endpoint.c_str()) == 0) return {};
  return ZmqError("bind " + endpoint);
}

Result<ZmqSocket> ZmqSocket::Monitor(const ZmqContext& context, int events) {
  const std::string name = NextMonitorName();
  if (zmq_socket_monitor(socket_, name.c_str(), events) != 0) return ZmqError("zmq monitor");
  CONDUCTOR_ASSIGN_OR_RETURN(ZmqSocket reader, Open(context, ZMQ_PAIR));
  CONDUCTOR_RETURN_IF_ERROR(reader.SetInt(ZMQ_RCVHWM, 0));  // An event must not be dropped.
  CONDUCTOR_RETURN_IF_ERROR(reader.Connect(name));
  return reader;
}

Result<int> ZmqSocket::Descriptor() const {
  int descriptor = -1;
  std::size_t size = sizeof(descriptor);
  if (zmq_getsockopt(socket_, ZMQ_FD, &descriptor, &size) != 0) return ZmqError("zmq descriptor");
  return descriptor;
}

Result<std::string> ZmqSocket::LastEndpoint() const {
  char text[512];
  std::size_t size = sizeof(text);
  if (zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, text, &size) != 0) return ZmqError("zmq endpoint");
  return std::string(text);
}

bool ZmqSocket::Receive(ZmqMessage& message) {
  message.count_ = 0;
  zmq_msg_t surplus;
  zmq_msg_init(&surplus);
  bool more = true;
  bool received = false;
  for (std::size_t part = 0; more; ++part) {
    zmq_msg_t* target = part < kMessagePartsMax ? &message.messages_[part] : &surplus;
    int size;
    do {
      size = zmq_msg_recv(target, socket_, ZMQ_DONTWAIT);
    } while (size < 0 && zmq_errno() == EINTR);
    if (size < 0) break;  // Only before the first part: messages arrive whole.
    received = true;
    more = zmq_msg_more(target) != 0;
    if (part >= kMessagePartsMax) continue;
    message.views_[part] = {static_cast<const std::uint8_t*>(zmq_msg_data(target)),
                            zmq_msg_size(target)};
    message.count_ = part + 1;
  }
  zmq_msg_close(&surplus);
  if (received) message.source_descriptor_ = zmq_msg_get(&message.messages_[0], ZMQ_SRCFD);
  return received;
}

Status ZmqSocket::Send(std::span<const std::string> parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int flags = ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0);
    int size;
    do {
      size = zmq_send(socket_, parts[i].data(), parts[i].size(), flags);
    } while (size < 0 && zmq_errno() == EINTR);
    if (size < 0) return ZmqError("send");
  }
  return {};
}

std::optional<ConnectionEvent> ReadConnectionEvent(const ZmqMessage& message) {
  // Part one: kind (16 bits) and value (32 bits) in host order, without padding.
  if (message.parts().empty() || message.parts()[0].size() < 6) return std::nullopt;
  ConnectionEvent event;
  std::memcpy(&event.kind, message.parts()[0].data(), sizeof(event.kind));
  std::memcpy(&event.value, message.parts()[0].data() + 2, sizeof(event.value));
  return event;
}

}  // namespace conductor
