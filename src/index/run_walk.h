// The fast part of a walk by content: along runs, many blocks at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/index/prefix_index.h"
#include "src/index/prompt_blocks.h"
#include "src/index/tier_cursors.h"

namespace conductor {

struct RunStretch {
  bool ended = false;      // no rank goes on: the walk is over
  std::size_t blocks = 0;  // positions that were matched
  EntryId last = 0;        // the last one's block
  // The full digest (its id) of the last verified block passed that has one, and where; 0: none.
  DigestId checkpoint = 0;
  std::size_t checkpoint_at = 0;
};

// Matches positions from `begin` on, which hang below `above`, for as long as blocks of runs match
// and somebody has them. Calls for a context where the same content is nowhere else.
RunStretch WalkRuns(const PrefixIndex& index, ContextId context, PromptBlocks& blocks,
                    TierCursors& cursors, EntryId above, std::size_t begin);

// How many of the first `count` values are equal.
std::size_t MatchLength(const std::uint64_t* a, const std::uint64_t* b, std::size_t count);

// What MatchLength chooses from, once: all give the same results.
using MatchKernel = std::size_t (*)(const std::uint64_t* a, const std::uint64_t* b,
                                    std::size_t count);
MatchKernel PortableMatchKernel();
MatchKernel SupportedAvx2MatchKernel();  // null: the machine has no AVX2

}  // namespace conductor
