#include "src/index/mix.h"

#include <xxhash.h>

namespace conductor {

Sum128 FactMix(const void* bytes, std::size_t size) {
  constexpr XXH64_hash_t kSeed = 0x436f6e6475637431ull;  // "Conduct1"
  const XXH128_hash_t h = XXH3_128bits_withSeed(bytes, size, kSeed);
  return (Sum128{h.high64} << 64) | h.low64;
}

}  // namespace conductor
