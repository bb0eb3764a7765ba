// SGLang's page hash: the prior digest, if any, and the page's tokens as little-endian 32-bit
// words. Internal to the hash folder; callers use BlockHasher. Pure; any thread may call.
#pragma once

#include <cstdint>
#include <span>

#include "src/result.h"
#include "src/types.h"

namespace conductor {

// One word per token. The tokens are not negative.
Digest HashSglangPage(const Digest* prior, std::span<const std::int32_t> tokens);

// Two words per position: tokens i and i + 1, for every i but the last.
Digest HashSglangBigramPage(const Digest* prior, std::span<const std::int32_t> tokens);

// INVALID_ARGUMENT naming the first negative token. `first_index` is the place of tokens[0] in the
// request or event.
Status CheckSglangTokens(std::span<const std::int32_t> tokens, std::size_t first_index);

}  // namespace conductor
