#include "http/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "http/http_limits.h"

namespace conductor::http {

namespace {

Connection::Io FromErrno() {
  return errno == EAGAIN || errno == EWOULDBLOCK ? Connection::Io::kWouldBlock
                                                 : Connection::Io::kEnded;
}

// recv that goes on after a signal.
ssize_t Receive(int fd, char* target, std::size_t size) {
  for (;;) {
    const ssize_t count = ::recv(fd, target, size, 0);
    if (count >= 0 || errno != EINTR) return count;
  }
}

}  // namespace

Connection::Io Connection::ReadRequest(std::size_t bytes_max) {
  if (!unread_.empty()) {
    const std::string pending = std::exchange(unread_, {});
    const std::size_t taken = framing.Feed(pending);
    unread_ = pending.substr(taken);
  }
  std::array<char, kReadBytes> buffer;
  std::size_t total = 0;
  while (!framing.Finished() && total < bytes_max) {
    if (framing.TakeExpectContinue()) SendContinue();
    const ssize_t count = Receive(fd(), buffer.data(), buffer.size());
    if (count < 0) return FromErrno();
    if (count == 0) return Io::kEnded;
    total += static_cast<std::size_t>(count);
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    const std::size_t taken = framing.Feed(bytes);
    if (taken < bytes.size()) unread_ = bytes.substr(taken);
  }
  return Io::kDone;
}

void Connection::SetOutput(std::string bytes) {
  output_ = std::move(bytes);
  output_done_ = 0;
}

Connection::Io Connection::Flush() {
  while (output_done_ < output_.size()) {
    const ssize_t count =
        ::send(fd(), output_.data() + output_done_, output_.size() - output_done_, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      return FromErrno();
    }
    output_done_ += static_cast<std::size_t>(count);
  }
  output_ = {};
  output_done_ = 0;
  return Io::kDone;
}

Connection::Io Connection::Discard() {
  std::array<char, kReadBytes> buffer;
  while (lingered_bytes_ < kLingerBytesMax) {
    const ssize_t count = Receive(fd(), buffer.data(), buffer.size());
    if (count < 0) return FromErrno();
    if (count == 0) return Io::kEnded;
    lingered_bytes_ += static_cast<std::size_t>(count);
  }
  return Io::kDone;
}

void Connection::SendContinue() {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  [[maybe_unused]] const auto sent = ::send(fd(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL);
}

void Connection::StartNextRequest() {
  framing.Reset();
  request_started = false;
  step = Step::kReading;
}

std::size_t Connection::BufferedBytes() const {
  return framing.BufferedBytes() + unread_.size() + output_.size();
}

void Connection::Shutdown() const {
  ::shutdown(fd(), SHUT_RDWR);
}

void Connection::ShutdownWrite() const {
  ::shutdown(fd(), SHUT_WR);
}

}  // namespace conductor::http
