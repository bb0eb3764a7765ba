#include "rpc/http2/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace conductor::rpc {
namespace {

constexpr std::size_t kReceiveBytes = 64u << 10;

// The one place where errno becomes an Error.
tl::unexpected<Error> SystemError(const char* what, int error_number) {
  return MakeError(ErrorCode::kUnavailable,
                   std::string(what) + ": " + std::generic_category().message(error_number));
}

tl::unexpected<Error> Late(const char* what) {
  return MakeError(ErrorCode::kDeadlineExceeded, std::string(what) + ": the deadline passed");
}

// Waits for `events`. Interrupted waits go on; errors of the socket count as "ready", because the
// next call on it tells what they are.
Status Await(int fd, short events, Deadline deadline, const char* what) {
  while (true) {
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(deadline.RemainingMs()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return SystemError(what, errno);
    if (deadline.Passed()) return Late(what);
  }
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::Open(const SocketAddress& address,
                                                     Deadline deadline) {
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError("socket", errno);
  std::unique_ptr<Connection> connection(new Connection(fd));
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    if (errno != EINPROGRESS) return SystemError("connect", errno);
    CONDUCTOR_RETURN_IF_ERROR(Await(fd, POLLOUT, deadline, "connect"));
    int failure = 0;
    socklen_t size = sizeof(failure);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) return SystemError("connect", failure);
  }
  return connection;
}

Connection::~Connection() {
  close(fd_);
}

Status Connection::AwaitSettings(Deadline deadline) {
  while (!session_.settings_received()) CONDUCTOR_RETURN_IF_ERROR(Step(deadline));
  return {};
}

bool Connection::IsReusable() {
  bool closed = false;
  return Receive(&closed).has_value() && !closed && session_.CanStart();
}

Result<Reply> Connection::Exchange(std::string_view header_block,
                                   std::span<const std::uint8_t> body, Deadline deadline) {
  session_.Start(header_block, body);
  while (!session_.done()) CONDUCTOR_RETURN_IF_ERROR(Step(deadline));
  return session_.TakeReply();
}

Status Connection::Step(Deadline deadline) {
  CONDUCTOR_RETURN_IF_ERROR(Send());
  const bool more = !session_.Output().empty();
  CONDUCTOR_RETURN_IF_ERROR(
      Await(fd_, static_cast<short>(more ? POLLIN | POLLOUT : POLLIN), deadline, "request"));
  bool closed = false;
  CONDUCTOR_RETURN_IF_ERROR(Receive(&closed));
  if (closed && !session_.done()) {
    return MakeError(ErrorCode::kUnavailable, "the server closed the connection");
  }
  return {};
}

Status Connection::Send() {
  while (true) {
    const std::string_view output = session_.Output();
    if (output.empty()) return {};
    const ssize_t sent = send(fd_, output.data(), output.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      session_.Sent(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (errno == EPIPE || errno == ECONNRESET) {
      // What the server said before it closed may still be there to read, and says why.
      return {};
    } else if (errno != EINTR) {
      return SystemError("send", errno);
    }
  }
}

Status Connection::Receive(bool* closed) {
  std::array<std::uint8_t, kReceiveBytes> buffer;
  while (true) {
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
    if (got == 0) {
      *closed = true;
      return {};
    }
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      return SystemError("receive", errno);
    }
    CONDUCTOR_RETURN_IF_ERROR(session_.Receive({buffer.data(), static_cast<std::size_t>(got)}));
    if (static_cast<std::size_t>(got) < buffer.size()) return {};
  }
}

}  // namespace conductor::rpc
