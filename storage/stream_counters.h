// The counters of a stream in the order of the snapshot format: one is added at the end, with a
// new format version; none is moved.
#pragma once

#include <array>

#include "src/state/stream_facts.h"

namespace conductor::storage {

// `Facts` is StreamFacts, const or not: the result points into it.
template <typename Facts>
auto StreamCounters(Facts& facts) {
  return std::array{&facts.frames,         &facts.blocks_stored,   &facts.blocks_removed,
                    &facts.remove_unknown, &facts.blocks_rejected, &facts.fragments_rejected,
                    &facts.clears,         &facts.epoch_changes,   &facts.numbers_lost,
                    &facts.drops,          &facts.evictions,       &facts.snapshots};
}

}  // namespace conductor::storage
