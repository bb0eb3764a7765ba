// Mixing functions. HashMix places keys in the hash maps; its values never reach state or disk.
// FactMix is the state digest's 128-bit mix: constant key, part of what two processes compare.
#pragma once

#include <cstddef>
#include <cstdint>

namespace conductor {

using Sum128 = unsigned __int128;

// What HashMix is keyed with. A server draws its own, so that publishers that choose their names
// cannot choose their places.
inline std::uint64_t hash_mix_key = 0x9e3779b97f4a7c15ull;
// Before the first index is made.
inline void SetHashMixKey(std::uint64_t key) {
  hash_mix_key = key;
}

inline std::uint64_t HashMix(std::uint64_t a, std::uint64_t b) {
  const Sum128 product = Sum128{a ^ hash_mix_key} * (b ^ 0xd1b54a32d192ed03ull) ^ (Sum128{b} << 17);
  std::uint64_t x = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  return x ^ (x >> 29);
}

// XXH3-128 of the bytes under a fixed seed.
Sum128 FactMix(const void* bytes, std::size_t size);

}  // namespace conductor
