// The best few of a walk that was kept (plain_rows.h).
//
// They are taken from the deepest set upwards, so thousands of instances that share a system prompt
// are not looked at one by one. Of those that are equally deep the first by instance id win; for a
// large set the thread remembers who those are.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/index/plain_rows.h"

namespace conductor {

// More than this many are not "a few".
inline constexpr std::size_t kBestFewMax = 16;

// The best `count` rows (at most kBestFewMax), or all that matched if those are fewer; longest
// first, equal ones by instance id. False: it takes a closer look. Under an EpochGuard.
bool TakeBest(const HolderTable& holders, const RowView& rows, std::span<const Stretch> stretches,
              std::size_t count, std::vector<PlainRow>* best);

}  // namespace conductor
