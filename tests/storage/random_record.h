// Random records of every kind. The seed is printed first and taken from CONDUCTOR_SEED if set.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "src/fact.h"

namespace conductor::storage {

std::uint64_t TestSeed();

class RandomRecords {
 public:
  explicit RandomRecords(std::uint64_t seed) : random_(seed) {}

  Record NextRecord(std::size_t facts_max = 6);
  // A fact of the given kind (its index in the variant).
  Fact NextFact(std::size_t kind);
  // `origins`: of the frame that it is for.
  Event NextEvent(std::size_t kind, std::vector<PoolOrigin>& origins);
  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }

 private:
  bool Coin() { return Below(2) == 0; }
  std::uint64_t Number();
  std::string Text();
  BlockName Name();
  std::vector<BlockName> Names();
  Registration NextRegistration();
  Stored NextStored();
  template <typename Array>
  Array Bytes();
  template <typename Enum>
  Enum Value();
  template <typename PoolEvent>
  PoolEvent Pool(std::vector<PoolOrigin>& origins);

  std::mt19937_64 random_;
};

}  // namespace conductor::storage
