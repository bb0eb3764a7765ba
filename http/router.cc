#include "http/router.h"

#include <chrono>

#include "http/error_status.h"
#include "http/request_bodies.h"
#include "http/status_page.h"

namespace conductor::http {

namespace {

HttpReply Success(std::string body, BodyFormat format) {
  return {200, std::string(ContentTypeOf(format)), std::move(body), {}};
}

HttpReply Failure(const Error& error, BodyFormat format) {
  return {
      FailureOf(error).status, std::string(ContentTypeOf(format)), WriteError(error, format), {}};
}

// Of an error that comes before the request's format is known to be valid.
BodyFormat BestEffortFormat(std::string_view content_type, std::string_view accept) {
  if (const auto accepted = ParseAccept(accept)) return *accepted;
  return ParseContentType(content_type).value_or(BodyFormat::kJson);
}

}  // namespace

HttpReply Router::Refusal(const Error& error, int status, std::string_view content_type,
                          std::string_view accept) {
  HttpReply reply = Failure(error, BestEffortFormat(content_type, accept));
  reply.status = status;
  return reply;
}

HttpReply Router::Handle(const HttpRequest& request) const {
  const auto start = std::chrono::steady_clock::now();
  const RouteRow& row = FindRoute(request.path);
  HttpReply reply = Dispatch(row, request);
  metrics_.CountRequest(row.route, reply.status, std::chrono::steady_clock::now() - start);
  return reply;
}

HttpReply Router::Dispatch(const RouteRow& row, const HttpRequest& request) const {
  // A GET without a preference is answered in msgpack, and so are its errors.
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  const auto best_effort = is_get ? ParseAccept(request.accept).value_or(BodyFormat::kMsgpack)
                                  : BestEffortFormat(request.content_type, request.accept);
  std::optional<BodyFormat> chosen = ParseAccept(request.accept);
  if (request.format) {
    const auto format = ParseFormatParameter(*request.format);
    if (!format) return Failure(format.error(), best_effort);
    chosen = *format;
  }
  if (row.route == Route::kUnknown) {
    const Error error{ErrorCode::kNotFound, "no such path: the routes are in docs/http.md",
                      "not_found", "", -1};
    return Failure(error, chosen.value_or(best_effort));
  }
  if (row.allow.find(request.method) == std::string_view::npos) {
    const Error error{
        ErrorCode::kInvalidArgument,
        std::string(row.path) + ": expected " + std::string(row.allow) + ", got " + request.method,
        "method_not_allowed", "", -1};
    HttpReply reply = Failure(error, chosen.value_or(best_effort));
    reply.headers.emplace_back("Allow", row.allow);
    return reply;
  }
  if (row.allow != "POST") {
    return Get(row.route, request, chosen.value_or(BodyFormat::kMsgpack));
  }
  const auto body_format = ParseContentType(request.content_type);
  if (!body_format) return Failure(body_format.error(), chosen.value_or(best_effort));
  return Post(row.route, request, {*body_format, chosen.value_or(*body_format)});
}

HttpReply Router::Post(Route route, const HttpRequest& request, Formats formats) const {
  if (route == Route::kQuery) return Query(QueryKind::kByTokens, request, formats);
  if (route == Route::kQueryByHash) return Query(QueryKind::kByHash, request, formats);
  Result<std::string> body = PostBody(route, request, formats);
  if (!body) return Failure(body.error(), formats.answer);
  return Success(std::move(*body), formats.answer);
}

Result<std::string> Router::PostBody(Route route, const HttpRequest& request,
                                     Formats formats) const {
  if (route == Route::kRegister) {
    auto registration = ParseRegistration(request.body, formats.request);
    if (!registration) return tl::unexpected(registration.error());
    const auto outcome = service_.Register(*registration);
    if (!outcome) return tl::unexpected(outcome.error());
    return WriteRegistered(*outcome, formats.answer);
  }
  const auto key = ParseUnregistration(request.body, formats.request);
  if (!key) return tl::unexpected(key.error());
  const auto removed = service_.Unregister(*key);
  if (!removed) return tl::unexpected(removed.error());
  return WriteUnregistered(*removed, formats.answer);
}

HttpReply Router::Query(QueryKind kind, const HttpRequest& request, Formats formats) const {
  const auto query = ParseQuery(request.body, formats.request, kind, limits_);
  if (!query) return Failure(query.error(), formats.answer);
  const auto answer = kind == QueryKind::kByTokens ? service_.Query(query->AsPromptQuery())
                                                   : service_.QueryByHash(query->AsHashQuery());
  if (!answer) return Failure(answer.error(), formats.answer);
  HttpReply reply =
      Success(WriteQueryAnswer(*answer, query->options.detail, formats.answer), formats.answer);
  reply.headers.emplace_back("Conductor-Log-Seq", std::to_string(answer->log_seq));
  if (!answer->degraded.empty()) {
    reply.headers.emplace_back("Conductor-Degraded", DegradedHeader(answer->degraded));
  }
  return reply;
}

HttpReply Router::Get(Route route, const HttpRequest& request, BodyFormat format) const {
  switch (route) {
    case Route::kGlobalView: {
      const auto contexts = service_.GetGlobalView();
      if (!contexts) return Failure(contexts.error(), format);
      return Success(WriteGlobalView(*contexts, format), format);
    }
    case Route::kServices: {
      const auto services = service_.ListServices();
      if (!services) return Failure(services.error(), format);
      return Success(WriteServices(*services, request.detail, format), format);
    }
    case Route::kHealthz:
      return Success(WriteHealth(format), format);
    case Route::kReadyz: {
      const Readiness readiness = service_.GetReadiness();
      HttpReply reply = Success(WriteReadiness(readiness, format), format);
      if (!readiness.ready) reply.status = 503;
      return reply;
    }
    case Route::kMetrics:
      return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_.Render(), {}};
    case Route::kVersion:
      return Success(WriteVersion(build_, format), format);
    case Route::kStatus: {
      const auto status = service_.GetStatus();
      if (!status) return Failure(status.error(), format);
      return Success(WriteStatus(*status, format), format);
    }
    case Route::kPage:
      return {200, "text/html; charset=utf-8", std::string(StatusPage()), {}};
    default:
      break;
  }
  return Failure({ErrorCode::kInternal, "route without a handler", "", "", -1}, format);
}

}  // namespace conductor::http
