// The chance of a simulation: one stream of numbers from one seed (SplitMix64), the same on every
// machine.
#pragma once

#include <cstdint>

namespace conductor::simulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }
  bool Permille(std::uint64_t permille) { return Below(1'000) < permille; }
  bool Percent(std::uint64_t percent) { return Below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace conductor::simulation
