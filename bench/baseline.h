// What both baselines answer. They are rivals of our own writing that stand for the two published
// approaches; simple, single-threaded, without tiers, salts, ranks, clears or a digest, so each of
// them does less than ours does for the same prompt.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace conductor::bench {

using Owner = std::uint32_t;  // an instance, from 0

// How many leading blocks of a prompt an owner has; owners without any are left out.
struct Depth {
  Owner owner = 0;
  std::size_t blocks = 0;
};

// Deepest first, then by number: the order of our own answers.
inline void SortDepths(std::vector<Depth>& depths) {
  std::sort(depths.begin(), depths.end(), [](const Depth& a, const Depth& b) {
    return a.blocks != b.blocks ? a.blocks > b.blocks : a.owner < b.owner;
  });
}

}  // namespace conductor::bench
