#include "http/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "http/http_limits.h"

namespace conductor::http {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

void FileDescriptor::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int FileDescriptor::Release() {
  return std::exchange(fd_, -1);
}

namespace {

struct AddressListDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

std::string Errno() {
  return std::strerror(errno);
}

std::uint16_t BoundPort(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  if (bound.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port);
  }
  return ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

// Empty: listening.
std::string TryListen(const addrinfo& address, FileDescriptor& fd) {
  fd = FileDescriptor(::socket(
      address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (!fd.IsOpen()) return "socket: " + Errno();
  const int on = 1;
  const int off = 0;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
    return "SO_REUSEADDR: " + Errno();
  }
  if (address.ai_family == AF_INET6 &&
      ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) {
    return "IPV6_V6ONLY: " + Errno();
  }
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) return "bind: " + Errno();
  if (::listen(fd.get(), kListenBacklog) != 0) return "listen: " + Errno();
  return "";
}

}  // namespace

Result<ListenSocket> OpenListenSocket(const std::string& address, int port) {
  const std::string where = "HTTP server on " + address + " port " + std::to_string(port) + ": ";
  if (port < 0 || port > 65'535) {
    return InvalidField("out_of_range", "http_server_port", where + "expected a port in 0..65535");
  }
  std::string host = address;
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int resolved = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (resolved != 0) {
    return InvalidField("invalid_value", "listen_address", where + ::gai_strerror(resolved));
  }
  const std::unique_ptr<addrinfo, AddressListDeleter> list(found);
  std::string reason = "no address";
  for (const addrinfo* candidate = found; candidate != nullptr; candidate = candidate->ai_next) {
    ListenSocket socket;
    reason = TryListen(*candidate, socket.fd);
    if (!reason.empty()) continue;
    socket.port = BoundPort(socket.fd.get());
    return socket;
  }
  return MakeError(ErrorCode::kUnavailable, where + reason);
}

}  // namespace conductor::http
