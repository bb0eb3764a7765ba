// The rows of an answer: which instances it names, in what order, and what it says of each.
// Readers only, under the walk's EpochGuard.
#pragma once

#include <cstddef>

#include "src/index/context_table.h"
#include "src/index/row_matches.h"
#include "src/index/tier_cursors.h"
#include "src/query.h"

namespace conductor {

// After TierCursors::Finish: instances sorted and trimmed as the contract says. `only_group`: of
// the instance that the options name; the number of groups when there is none.
QueryAnswer AssembleAnswer(const TierCursors& cursors, const RowView& rows, std::size_t only_group,
                           const QueryOptions& options);

// The same without texts.
class RowMatchesFiller {
 public:
  static void Fill(TierCursors& cursors, const RowView& rows, std::size_t only_group,
                   const QueryOptions& options, RowMatches* matches);
  static void Clear(RowMatches* matches);  // of an unknown context
};

}  // namespace conductor
