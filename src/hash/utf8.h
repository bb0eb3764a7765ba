// Strict UTF-8, as Python's encoder produces it: no overlong forms, no surrogates, nothing above
// U+10FFFF. The engines hash texts as UTF-8, so a text that is none has no block hash.
#pragma once

#include <string_view>

namespace conductor {

bool IsValidUtf8(std::string_view text);

}  // namespace conductor
