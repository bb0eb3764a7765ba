#include "http/http_server.h"

#include <utility>

#include "http/connection_loop.h"
#include "http/http_metrics.h"
#include "http/library_exchange.h"
#include "http/listen_socket.h"
#include "http/router.h"

namespace conductor {

struct HttpServer::Parts {
  Parts(Service& service, Options options)
      : metrics(service),
        router(service, metrics, options.limits,
               {std::move(options.version), std::move(options.commit), std::move(options.formats)}),
        exchange(router) {}

  http::HttpMetrics metrics;
  http::Router router;
  http::LibraryExchange exchange;
  std::uint16_t port = 0;
  std::unique_ptr<http::ConnectionLoop> loop;  // last: its threads use the others
};

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

HttpServer::~HttpServer() {
  Stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(Service& service, Options options) {
  CONDUCTOR_ASSIGN_OR_RETURN(auto socket,
                             http::OpenListenSocket(options.listen_address, options.port));
  const Limits limits = options.limits;
  http::LoopOptions loop_options;
  loop_options.framing = {limits.header_bytes_max, limits.body_bytes_max};
  loop_options.threads = limits.http_threads;
  loop_options.request_ms_max = limits.request_send_ms_max;
  loop_options.buffered_bytes_max = limits.body_bytes_max * limits.http_threads;

  auto parts = std::make_unique<Parts>(service, std::move(options));
  parts->port = socket.port;
  CONDUCTOR_ASSIGN_OR_RETURN(
      parts->loop, http::ConnectionLoop::Start(std::move(socket), loop_options, parts->exchange,
                                               parts->metrics));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
}

std::uint16_t HttpServer::port() const {
  return parts_->port;
}

void HttpServer::Stop() {
  parts_->loop->Stop();
}

}  // namespace conductor
