#include "http/plain_exchange.h"

#include <algorithm>
#include <utility>

#include "http/error_status.h"
#include "http/http_limits.h"

namespace conductor::http {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
// A media type or a host; the library has a limit of its own.
constexpr std::size_t kPlainValueBytesMax = 1'024;

// Printable, and without the escapes that the library decodes.
bool IsPlain(std::string_view value) {
  return !value.empty() && value.size() <= kPlainValueBytesMax &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != '%'; });
}

// Takes the next line off `text`; false: there is none.
bool NextLine(std::string_view& text, std::string_view* line) {
  const auto end = text.find(kLineEnd);
  if (end == std::string_view::npos) return false;
  *line = text.substr(0, end);
  text.remove_prefix(end + kLineEnd.size());
  return true;
}

// Whether `header` is all there is to say, and then `request` says it.
bool ReadHeader(std::string_view header, HttpRequest* request) {
  std::string_view line;
  if (!NextLine(header, &line)) return false;
  if (line == "POST /query HTTP/1.1") {
    request->path = "/query";
  } else if (line == "POST /query_by_hash HTTP/1.1") {
    request->path = "/query_by_hash";
  } else {
    return false;
  }
  request->method = "POST";
  while (NextLine(header, &line) && !line.empty()) {
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) return false;
    const std::string_view name = line.substr(0, colon), value = line.substr(colon + 2);
    if (!IsPlain(value)) return false;
    if (name == "host") continue;
    std::string* const out = name == "content-type" ? &request->content_type
                             : name == "accept"     ? &request->accept
                                                    : nullptr;
    if (out == nullptr || !out->empty()) return false;
    *out = value;
  }
  return true;
}

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append(kLineEnd);
}

std::string Write(const HttpReply& reply) {
  static const std::string keep_alive = "timeout=" + std::to_string(kIdleMsMax / 1'000) +
                                        ", max=" + std::to_string(kRequestsPerConnectionShown);
  std::string bytes;
  bytes.reserve(256 + reply.body.size());
  bytes.append("HTTP/1.1 ").append(std::to_string(reply.status)).append(" ");
  bytes.append(StatusText(reply.status)).append(kLineEnd);
  for (const auto& [name, value] : reply.headers) AppendField(bytes, name, value);
  AppendField(bytes, "Content-Length", std::to_string(reply.body.size()));
  AppendField(bytes, "Content-Type", reply.content_type);
  AppendField(bytes, "Keep-Alive", keep_alive);
  return bytes.append(kLineEnd).append(reply.body);
}

}  // namespace

std::optional<std::string> RunPlain(const Router& router, std::string_view header,
                                    std::string_view body) {
  HttpRequest request;
  if (!ReadHeader(header, &request)) return std::nullopt;
  request.body = body;
  try {
    return Write(router.Handle(request));
  } catch (...) {  // out of memory, say: this request's loss alone
    const Error error{ErrorCode::kInternal, "internal error", "", "", -1};
    return Write(Router::Refusal(error, 500, request.content_type, request.accept));
  }
}

}  // namespace conductor::http
