// The two readers behind ReadJson: the same events and the same refusals, on any body. Any thread.
#pragma once

#include <optional>
#include <string_view>

#include "http/body_format.h"

namespace conductor::http {

// Any document of any size. Errors: invalid_json with the position, or the sink's.
Status ReadJsonCarefully(std::string_view body, BodySink& sink);

enum class FastJson {
  kRead,
  kRefused,  // by the sink; `error` is its
  kInvalid,  // no JSON, or deeper than allowed; the other reader says where
};

// Documents that are an object, through simdjson. Takes several times the body in memory.
FastJson ReadJsonFast(std::string_view body, BodySink& sink, Error* error);

}  // namespace conductor::http
