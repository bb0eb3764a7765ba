#include "tests/rpc/raw_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "src/check.h"

namespace conductor::rpc {

RawServer::RawServer(std::function<void(int fd)> serve)
    : listen_fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  CHECK(listen(listen_fd_, 16) == 0);
  socklen_t size = sizeof(address);
  CHECK(getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  if (!serve) return;
  thread_ = std::thread([this, serve = std::move(serve)] {
    while (true) {
      const int fd = accept(listen_fd_, nullptr, nullptr);
      if (fd < 0) return;
      ++accepted_;
      serve(fd);
      close(fd);
    }
  });
}

RawServer::~RawServer() {
  shutdown(listen_fd_, SHUT_RDWR);  // wakes accept
  if (thread_.joinable()) thread_.join();
  close(listen_fd_);
}

void ReadToEnd(int fd) {
  std::array<char, 4096> buffer;
  while (read(fd, buffer.data(), buffer.size()) > 0) {
  }
}

void WriteAll(int fd, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
}

}  // namespace conductor::rpc
