// Baseline H: a hash map from block name to the set of its owners. A query computes the prompt's
// SHA-256 chain, looks every block up and keeps the owners that have had all of them so far.
#pragma once

#include <span>
#include <unordered_map>

#include "bench/baseline.h"
#include "src/hash/chain.h"

namespace conductor::bench {

class HashMapBaseline {
 public:
  explicit HashMapBaseline(const HashProfile& profile) : hasher_(profile) {}

  void Store(Owner owner, std::span<const std::uint64_t> names);
  void Remove(Owner owner, std::span<const std::uint64_t> names);
  // Unsorted. The prompt's tokens, whole blocks.
  std::vector<Depth> Match(std::span<const std::int32_t> tokens) const;

  std::size_t blocks() const { return owners_.size(); }

 private:
  BlockHasher hasher_;
  // Invariant: every set is sorted and not empty.
  std::unordered_map<std::uint64_t, std::vector<Owner>> owners_;
};

}  // namespace conductor::bench
