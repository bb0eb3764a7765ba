// The chance of a random test: one stream of numbers, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace conductor::model {

// SplitMix64: the same numbers everywhere, unlike the standard distributions. Made from bytes, each
// choice takes one or two of them while they last, so that a fuzzer changes one choice with one
// byte; copies then continue at the same byte.
class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : state_(seed) {}
  explicit RandomSource(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint64_t Next() {
    if (!bytes_.empty()) return TakeBytes(2);
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t Below(std::uint64_t bound) {
    return (bytes_.empty() || bound > 256 ? Next() : TakeBytes(1)) % bound;
  }
  bool Percent(std::uint64_t percent) { return Below(100) < percent; }
  bool Permille(std::uint64_t permille) { return Below(1'000) < permille; }
  // Of the bytes; a source that was made from a seed has none.
  bool UsedUp() const { return bytes_.empty(); }

 private:
  std::uint64_t TakeBytes(std::size_t count) {
    std::uint64_t value = 0;
    for (; count > 0 && !bytes_.empty(); --count) {
      value = value << 8 | bytes_.front();
      bytes_ = bytes_.subspan(1);
    }
    return value;
  }

  std::uint64_t state_ = 0;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace conductor::model
