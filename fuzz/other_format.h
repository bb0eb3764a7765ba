// A request body in the other of the two formats, value by value and in the same order, repeated
// keys included. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/body_format.h"

namespace conductor::fuzz {

struct Rewritten {
  bool readable = false;            // the body is whole
  std::optional<std::string> body;  // none: it holds a value the other format has no word for
};

Rewritten InOtherFormat(std::string_view body, http::BodyFormat format);

}  // namespace conductor::fuzz
