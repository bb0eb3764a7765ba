#include "bench/http_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "bench/harness.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kReadBytes = 64u << 10;

// The value of a header field, whose name is given in lower case with its colon.
std::string_view FindField(std::string_view header, std::string_view name) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  const auto at = std::search(header.begin(), header.end(), name.begin(), name.end(), same);
  if (at == header.end()) return {};
  std::string_view rest =
      header.substr(static_cast<std::size_t>(at - header.begin()) + name.size());
  rest = rest.substr(0, rest.find("\r\n"));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

}  // namespace

std::string MakePost(const std::string& path, const std::string& content_type,
                     const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: " + content_type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

Result<std::unique_ptr<HttpProbe>> HttpProbe::Connect(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Wrong("http probe: no socket");
  std::unique_ptr<HttpProbe> probe(new HttpProbe(fd));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Wrong("http probe: no connection to port " + std::to_string(port));
  }
  return probe;
}

HttpProbe::~HttpProbe() {
  close(fd_);
}

Result<HttpProbe::Answer> HttpProbe::Exchange(const std::string& request) {
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t n = send(fd_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return Wrong("http probe: the server does not read");
    sent += static_cast<std::size_t>(n);
  }
  buffer_.clear();
  std::size_t header_end = std::string::npos, length = 0;
  while (header_end == std::string::npos || buffer_.size() < header_end + length) {
    const std::size_t had = buffer_.size();
    buffer_.resize(had + kReadBytes);
    const ssize_t n = recv(fd_, buffer_.data() + had, kReadBytes, 0);
    buffer_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) return Wrong("http probe: the answer ends early");
    if (header_end != std::string::npos) continue;
    const std::size_t blank = buffer_.find("\r\n\r\n");
    if (blank == std::string::npos) continue;
    header_end = blank + 4;
    const auto field =
        FindField(std::string_view(buffer_).substr(0, header_end), "content-length:");
    length = std::strtoull(std::string(field).c_str(), nullptr, 10);
  }
  Answer answer;
  answer.status = std::atoi(buffer_.c_str() + buffer_.find(' '));
  answer.body = buffer_.substr(header_end);
  return answer;
}

}  // namespace conductor::bench
