// The best few of a walk that met only plain sets: every set has engines' devices only, and every
// instance one rank, so that an instance's answer is the depth to which it is in all sets.
//
// They are taken from the deepest set upwards, so thousands of instances that share a system prompt
// are not looked at one by one. Of those that are equally deep the first by instance id win; for a
// large set the thread remembers who those are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/index/context_table.h"
#include "src/index/holder_table.h"

namespace conductor {

// More than this many are not "a few".
inline constexpr std::size_t kBestFewMax = 16;

// Consecutive positions with one set of holders.
struct Stretch {
  const HolderSet* set = nullptr;
  StateId state = 0;
  std::uint64_t end = 0;  // tokens behind it
};

struct BestRow {
  std::uint32_t row = 0;
  std::uint32_t group = 0;
  HolderId holder = 0;
  std::uint64_t tokens = 0;
};

// The best `count` rows (at most kBestFewMax), or all that matched if those are fewer. False: it
// takes a closer look. Under an EpochGuard.
bool TakeBest(const HolderTable& holders, const RowView& rows, std::span<const Stretch> stretches,
              std::size_t count, std::vector<BestRow>* best);

}  // namespace conductor
