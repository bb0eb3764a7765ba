// One keep-alive HTTP connection that sends prepared bytes and reads the answer: the least a client
// can do, so that what is measured is the server. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/result.h"

namespace conductor::bench {

// A POST with its header, ready to be sent again and again.
std::string MakePost(const std::string& path, const std::string& content_type,
                     const std::string& body);

class HttpProbe {
 public:
  struct Answer {
    int status = 0;
    std::string body;
  };

  // To 127.0.0.1.
  static Result<std::unique_ptr<HttpProbe>> Connect(std::uint16_t port);
  ~HttpProbe();
  HttpProbe(const HttpProbe&) = delete;
  HttpProbe& operator=(const HttpProbe&) = delete;

  // The answer must say its length.
  Result<Answer> Exchange(const std::string& request);

 private:
  explicit HttpProbe(int fd) : fd_(fd) {}
  int fd_;
  std::string buffer_;
};

}  // namespace conductor::bench
