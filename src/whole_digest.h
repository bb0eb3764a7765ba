// The bytes of a block's name when it is more than an integer: one engine digest, at most 32 bytes.
// The log's format takes a little more (storage/log_format.h); no decoder makes such a name.
#pragma once

#include "src/inline_text.h"

namespace conductor {

using WholeDigest = InlineText<32>;

}  // namespace conductor
