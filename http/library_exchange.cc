#include "http/library_exchange.h"

#include <httplib.h>
#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "http/error_status.h"
#include "http/http_limits.h"
#include "http/plain_exchange.h"

namespace conductor::http {

namespace {

// Reads from a buffer, writes to a string.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string_view input) : input_(input) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* target, std::size_t size) override {
    const std::size_t count = std::min(size, input_.size());
    std::memcpy(target, input_.data(), count);
    input_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* source, std::size_t size) override {
    output_.append(source, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  // Only compared with FD_SETSIZE.
  socket_t socket() const override { return 0; }

  std::string TakeOutput() { return std::move(output_); }

 private:
  std::string_view input_;
  std::string output_;
};

HttpRequest FromLibrary(const httplib::Request& source) {
  HttpRequest request;
  request.method = source.method;
  request.path = source.path;
  request.content_type = source.get_header_value("Content-Type");
  request.accept = source.get_header_value("Accept");
  for (std::size_t i = 1; i < source.get_header_value_count("Accept"); ++i) {
    request.accept += "," + source.get_header_value("Accept", i);
  }
  if (source.has_param("format")) request.format = source.get_param_value("format");
  if (source.has_param("detail")) {
    const std::string value = source.get_param_value("detail");
    request.detail = value != "0" && value != "false";
  }
  return request;
}

void ToLibrary(HttpReply reply, httplib::Response& target) {
  target.status = reply.status;
  for (auto& [name, value] : reply.headers) target.set_header(name, value);
  target.set_header("Content-Type", reply.content_type);
  target.body = std::move(reply.body);
}

}  // namespace

class LibraryExchange::Server : public httplib::Server {
 public:
  explicit Server(const Router& router) : router_(router) {
    // Every route is ours: the library's own dispatch is never reached.
    set_pre_routing_handler([&router](const httplib::Request& source, httplib::Response& target) {
      HttpRequest request = FromLibrary(source);
      request.body = source.body;
      ToLibrary(router.Handle(request), target);
      return HandlerResponse::Handled;
    });
    set_exception_handler(
        [](const httplib::Request& source, httplib::Response& target, const std::exception_ptr&) {
          const Error error{ErrorCode::kInternal, "internal error", "", "", -1};
          ToLibrary(Router::Refusal(error, 500, source.get_header_value("Content-Type"),
                                    source.get_header_value("Accept")),
                    target);
        });
    set_keep_alive_timeout(kIdleMsMax / 1'000);
    set_keep_alive_max_count(kRequestsPerConnectionShown);
  }

  ExchangeResult Run(std::string_view header, std::string body) {
    if (auto answer = RunPlain(router_, header, body)) return {*std::move(answer), false};
    MemoryStream stream(header);
    ExchangeResult result;
    bool parsed = false;
    const bool answered =
        process_request(stream, false, result.close, [&](httplib::Request& request) {
          parsed = true;
          request.body = std::move(body);
        });
    if (!parsed) return {RefuseRequestLine(header), true};
    result.bytes = stream.TakeOutput();
    if (!answered) result.close = true;
    return result;
  }

 private:
  static std::string RefuseRequestLine(std::string_view header) {
    const bool too_long = header.find('\n') > CPPHTTPLIB_REQUEST_URI_MAX_LENGTH;
    const Error error{
        ErrorCode::kInvalidArgument,
        too_long ? "request: the URI is too long" : "request: expected a request line of HTTP/1.1",
        too_long ? "too_large" : "invalid_value", "", -1};
    return WriteRefusal(Router::Refusal(error, too_long ? 414 : 400, "", ""));
  }

  const Router& router_;
};

LibraryExchange::LibraryExchange(const Router& router)
    : server_(std::make_unique<Server>(router)) {}

LibraryExchange::~LibraryExchange() = default;

ExchangeResult LibraryExchange::Run(std::string_view header, std::string body) const {
  return server_->Run(header, std::move(body));
}

std::string LibraryExchange::WriteRefusal(const HttpReply& reply) {
  std::string bytes = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  bytes += StatusText(reply.status);
  bytes += "\r\nConnection: close\r\nContent-Type: " + reply.content_type +
           "\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n";
  bytes += reply.body;
  return bytes;
}

}  // namespace conductor::http
