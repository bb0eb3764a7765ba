// Which of the two body formats a request has and which one its answer gets (contract, HTTP):
// the answer follows the request; `Accept` overrides that, and `?format=` overrides both.
#pragma once

#include <optional>
#include <string_view>

#include "http/body_event.h"
#include "src/result.h"

namespace conductor::http {

enum class BodyFormat { kJson, kMsgpack };

std::string_view ContentTypeOf(BodyFormat format);

// By the request's Content-Type. None at all and what plain `curl -d` sends are JSON.
// Error: unsupported_content_type.
Result<BodyFormat> ParseContentType(std::string_view content_type);

// What `Accept` prefers among the two; nothing when it names neither.
std::optional<BodyFormat> ParseAccept(std::string_view accept);

// The value of `?format=`. Error: invalid_value.
Result<BodyFormat> ParseFormatParameter(std::string_view value);

// Sends every event of `body` to `sink`. Errors: invalid_json, invalid_msgpack, or the sink's.
Status ReadBody(std::string_view body, BodyFormat format, BodySink& sink);
Status ReadJson(std::string_view body, BodySink& sink);
Status ReadMsgpack(std::string_view body, BodySink& sink);

}  // namespace conductor::http
