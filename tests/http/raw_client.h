// A TCP client that sends bytes as they are: for requests no HTTP library would send. Every wait
// has a deadline.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tests/slowness.h"

namespace conductor::http {

class RawClient {
 public:
  static constexpr std::chrono::seconds kPatience{20 * kSlowness};

  // `receive_buffer_bytes` 0: the system's.
  explicit RawClient(std::uint16_t port, int receive_buffer_bytes = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer_bytes > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  ~RawClient() { Close(); }

  bool connected() const { return connected_; }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  // False: the server took no more (or closed) before everything was sent.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (!Wait(POLLOUT)) return false;
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Reads until `text` is in what has come since the last call, the end, or the deadline.
  std::string ReceiveUntil(std::string_view text) {
    while (received_.find(text) == std::string::npos && ReceiveSome()) {
    }
    return std::exchange(received_, {});
  }
  std::string ReceiveAll() {
    while (ReceiveSome()) {
    }
    return std::exchange(received_, {});
  }
  // Something to read without waiting?
  bool HasAnswer() {
    pollfd waiting{fd_, POLLIN, 0};
    return ::poll(&waiting, 1, 0) > 0;
  }
  // The server ended the connection (or it broke) before the deadline.
  bool AwaitEnd() {
    ReceiveAll();
    return ended_;
  }

 private:
  bool Wait(short events) {
    pollfd waiting{fd_, events, 0};
    const auto patience_ms =
        static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count());
    return ::poll(&waiting, 1, patience_ms) > 0;
  }
  bool ReceiveSome() {
    std::array<char, 65'536> buffer;
    if (ended_ || !Wait(POLLIN)) return false;
    const ssize_t count = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (count <= 0) {
      ended_ = true;
      return false;
    }
    received_.append(buffer.data(), static_cast<std::size_t>(count));
    return true;
  }

  int fd_;
  bool connected_ = false;
  bool ended_ = false;
  std::string received_;
};

}  // namespace conductor::http
