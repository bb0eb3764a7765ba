#include "http/body_format.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace conductor::http {

namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string MediaType(std::string_view value) {
  return LowerCase(Trim(value.substr(0, value.find(';'))));
}

std::optional<BodyFormat> FormatOfMediaType(const std::string& type) {
  if (type == "application/json" || type == "text/json") return BodyFormat::kJson;
  if (type == "application/msgpack" || type == "application/x-msgpack" ||
      type == "application/vnd.msgpack") {
    return BodyFormat::kMsgpack;
  }
  return std::nullopt;
}

// The weight of one element of Accept in thousandths; "q=0.75" is 750, none is 1000.
int Weight(std::string_view element) {
  const std::string lower = LowerCase(element);
  const auto at = lower.find("q=");
  if (at == std::string::npos) return 1'000;
  int weight = 0;
  int scale = 1'000;
  for (char c : std::string_view(lower).substr(at + 2)) {
    if (c == '.') continue;
    if (c < '0' || c > '9' || scale == 0) break;
    weight += (c - '0') * scale;
    scale /= 10;
  }
  return std::min(weight, 1'000);
}

}  // namespace

std::string_view ContentTypeOf(BodyFormat format) {
  return format == BodyFormat::kJson ? "application/json" : "application/msgpack";
}

Result<BodyFormat> ParseContentType(std::string_view content_type) {
  const std::string type = MediaType(content_type);
  if (type.empty() || type == "application/x-www-form-urlencoded") return BodyFormat::kJson;
  if (auto format = FormatOfMediaType(type)) return *format;
  return InvalidField(
      "unsupported_content_type", "",
      "Content-Type: expected application/msgpack or application/json, got '" + type + "'");
}

std::optional<BodyFormat> ParseAccept(std::string_view accept) {
  std::optional<BodyFormat> best;
  int best_weight = 0;
  while (!accept.empty()) {
    const auto comma = std::min(accept.find(','), accept.size());
    const std::string_view element = accept.substr(0, comma);
    accept.remove_prefix(std::min(comma + 1, accept.size()));
    const auto format = FormatOfMediaType(MediaType(element));
    if (!format) continue;
    const int weight = Weight(element);
    if (weight > best_weight) {
      best = format;
      best_weight = weight;
    }
  }
  return best;
}

Result<BodyFormat> ParseFormatParameter(std::string_view value) {
  if (value == "json") return BodyFormat::kJson;
  if (value == "msgpack") return BodyFormat::kMsgpack;
  return InvalidField("invalid_value", "format",
                      "format: expected json or msgpack, got '" + std::string(value) + "'");
}

Status ReadBody(std::string_view body, BodyFormat format, BodySink& sink) {
  return format == BodyFormat::kJson ? ReadJson(body, sink) : ReadMsgpack(body, sink);
}

}  // namespace conductor::http
