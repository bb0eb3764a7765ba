// One request in, one reply out: content negotiation, the route, Service, the answer. Knows neither
// sockets nor the HTTP library. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/answers.h"
#include "http/body_format.h"
#include "http/http_metrics.h"
#include "http/request_bodies.h"
#include "http/routes.h"
#include "src/limits.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor::http {

struct HttpRequest {
  std::string method, path, content_type, accept;
  std::optional<std::string> format;  // of ?format=
  bool detail = false;                // of ?detail=
  std::string_view body;              // borrowed for the call
};

struct HttpReply {
  int status = 200;
  std::string content_type, body;
  std::vector<std::pair<std::string, std::string>> headers;
};

class Router {
 public:
  // The references must outlive the router.
  Router(Service& service, HttpMetrics& metrics, Limits limits, BuildInfo build)
      : service_(service), metrics_(metrics), limits_(limits), build_(std::move(build)) {}

  HttpReply Handle(const HttpRequest& request) const;
  // The reply to a request that has none of its own: refused by the transport or the library.
  static HttpReply Refusal(const Error& error, int status, std::string_view content_type,
                           std::string_view accept);

 private:
  // The format of the answer, and (POST) of the body.
  struct Formats {
    BodyFormat request = BodyFormat::kJson;
    BodyFormat answer = BodyFormat::kJson;
  };

  HttpReply Dispatch(const RouteRow& row, const HttpRequest& request) const;
  HttpReply Post(Route route, const HttpRequest& request, Formats formats) const;
  HttpReply Get(Route route, const HttpRequest& request, BodyFormat format) const;
  Result<std::string> PostBody(Route route, const HttpRequest& request, Formats formats) const;
  HttpReply Query(QueryKind kind, const HttpRequest& request, Formats formats) const;

  Service& service_;
  HttpMetrics& metrics_;
  const Limits limits_;
  const BuildInfo build_;
};

}  // namespace conductor::http
