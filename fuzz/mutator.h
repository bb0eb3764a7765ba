// Blind mutations of seeds, the same on every machine: what the plain build has instead of
// libFuzzer's guided ones. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace conductor::fuzz {

// Larger inputs are cut: their seeds have run whole already.
inline constexpr std::size_t kMutatedBytesMax = 4'096;

class Mutator {
 public:
  // `seeds` outlives the mutator and is not empty.
  Mutator(std::uint64_t seed, const std::vector<std::string>& seeds)
      : state_(seed), seeds_(seeds) {}

  std::string Next();

 private:
  std::uint64_t Random();
  std::size_t Below(std::size_t bound) { return static_cast<std::size_t>(Random() % bound); }
  void Change(std::string& input);

  std::uint64_t state_;
  const std::vector<std::string>& seeds_;
};

}  // namespace conductor::fuzz
