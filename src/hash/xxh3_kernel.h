// The body of one kernel of xxh3.h, for the unit that includes it and for its instruction set.
// Nothing here may be shared with another unit: everything is internal, and no header of the
// standard library with inline functions is included.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/hash/xxh3.h"

namespace conductor {
namespace {

std::uint64_t Hash(const std::uint8_t* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

// The secret of the seed is derived once, not for every piece; short pieces do not use it.
void HashPieces(const Xxh3Pieces& pieces, std::uint64_t seed, std::size_t count,
                std::uint64_t* out) {
  static_assert(kXxh3ShortBytes == XXH3_MIDSIZE_MAX);
  alignas(64) std::uint8_t secret[XXH3_SECRET_DEFAULT_SIZE];
  XXH3_generateSecret_fromSeed(secret, seed);
  const std::uint8_t* piece = pieces.first;
  for (std::size_t i = 0; i < count; ++i, piece += pieces.stride) {
    out[i] = XXH3_64bits_withSecretandSeed(piece, pieces.bytes, secret, sizeof(secret), seed);
  }
}

}  // namespace
}  // namespace conductor
