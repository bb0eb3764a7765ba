// SHA-256, the hash by which every supported engine names its blocks.
//
// OpenSSL's low-level calls with a context on the stack: no allocation, and about three times as
// fast on a 16-token block as a fresh EVP context. Pure functions; any thread may call.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "src/result.h"
#include "src/types.h"

namespace conductor {

Digest Sha256(std::span<const std::uint8_t> bytes);

// The hash of the parts one after the other, without copying them together.
Digest Sha256Concat(std::initializer_list<std::span<const std::uint8_t>> parts);

// The bytes of a text, as a part to hash.
inline std::span<const std::uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// 64 lower-case hex digits.
std::string HexDigest(const Digest& digest);

// Exactly 64 hex digits of either case; anything else is INVALID_ARGUMENT.
Result<Digest> ParseHexDigest(std::string_view text);

}  // namespace conductor
