// TierCursors: turns "who has block i" into per-rank tier boundaries while a walk goes along.
//
// Per rank one cursor and four ordered phases, device -> cpu_local -> cpu_share -> disk. Each phase
// consumes consecutive blocks present in its tier for that rank; the cursor never goes back to a
// higher tier. Ranks are looked at only where the set of holders changes (a break point), and only
// those that hold something, so the cost grows neither with instances x blocks nor with the
// instances that have nothing.
//
// Where all sets are of the plainest kind (engines' devices, one rank for each instance), not even
// those are looked at one by one: the walk is kept as its list of sets, from which the rows, or the
// best few of them, are taken at its end (plain_rows.h, best_few.h).
//
// Used by one reader, under its EpochGuard; one at a time on a thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/index/best_few.h"
#include "src/index/context_table.h"
#include "src/index/holder_table.h"
#include "src/query.h"

namespace conductor {

class TierCursors {
 public:
  // `group`: the only instance that is asked for, as a group of `rows`; none: all.
  // `best`: how many instances will be taken, best first; 0: all.
  TierCursors(const HolderTable& holders, const ContextTable& contexts, const RowView& rows,
              const RowView::Group* group, std::size_t best);

  // The next position: the sets of its live entries (sorted, distinct), and the boundary in tokens
  // behind it. False: no rank goes on. The same for a stretch of positions that have these sets.
  bool Advance(std::span<const StateId> states, std::uint64_t tokens_after);
  // The same for one set, if that only has to be kept. False: it has to go through Advance.
  bool Keep(StateId state, const HolderSet& set, std::uint64_t tokens_after) {
    if (!keeping_) return false;
    std::vector<Stretch>& stretches = scratch_.stretches;
    if (!stretches.empty() && stretches.back().state == state) {
      stretches.back().end = tokens_after;
      return true;
    }
    if (!set.device_only || set.has_retired.load(std::memory_order_acquire)) return false;
    stretches.push_back({&set, state, tokens_after});
    return true;
  }
  // No position follows.
  void Finish();

  struct RowCounts {
    TierCounts counts;
    // It counts a block that only others have, none of whose streams is live.
    bool rests_on_degraded = false;
  };
  // After Finish, of a walk that met only plain sets: the rows that matched something, in the order
  // of an answer, with all tokens on the device; with `best`, maybe only the best of them. What
  // follows is not for such a walk.
  bool is_plain() const { return keeping_; }
  std::span<const PlainRow> plain_rows() const { return scratch_.plain; }
  void SwapPlainRows(std::vector<PlainRow>* rows) { scratch_.plain.swap(*rows); }

  // What a row matched.
  RowCounts Of(std::uint32_t row) const;
  // The rows that matched something.
  std::span<const std::uint32_t> matched() const { return scratch_.matched; }
  // The same rows by ascending longest match.
  std::span<const std::uint32_t> by_length() const { return scratch_.by_length; }

 private:
  // What a query needs of a row; older stamps mean nothing.
  struct RowState {
    std::uint64_t stamp = 0;
    std::uint8_t presence = 0;  // bit t = present in tier t+1 for that rank
    std::uint8_t phase = 0;
    bool rests_on_degraded = false;
    bool active = false;  // its cursor goes on
    std::uint64_t bounds[kTierCount] = {};
  };
  // A thread's, kept from query to query: nothing is allocated or cleared for rows that hold
  // nothing.
  struct Scratch {
    std::uint64_t stamp = 0;
    std::vector<RowState> rows;
    std::vector<std::uint32_t> touched;  // rows whose presence is not zero
    std::vector<std::uint32_t> matched;  // rows that were ever active
    std::vector<std::uint32_t> fallen;   // active rows that lost a tier
    // Rows whose cursors ended, in that order, which is the order of what they matched.
    std::vector<std::uint32_t> by_length;
    std::vector<StateId> last_states;
    std::vector<Stretch> stretches;  // of a walk that is only kept so far
    std::vector<PlainRow> plain;
  };
  static Scratch& ThreadsScratch(std::size_t rows);

  void MarkPresence(std::span<const StateId> states);
  void Replay();
  bool AdvanceNow(std::span<const StateId> states, std::uint64_t tokens_after);
  bool IsOf(const Holder& holder) const { return rows_.IsOf(holder.row, holder.key.stream); }
  void Start();
  void AdvanceRow(std::uint32_t row);
  bool AdvanceByDifference(StateId state);
  bool Wanted(std::uint32_t row) const;
  RowState& StateOf(std::uint32_t row);

  const HolderTable& holders_;
  const ContextTable& contexts_;
  const RowView& rows_;
  const RowView::Group* group_;
  std::size_t best_;
  Scratch& scratch_;
  bool keeping_;  // nothing was looked at row by row: the walk is in scratch_.stretches
  std::uint8_t everyone_ = 0;       // tiers present for every rank
  std::uint8_t everyone_live_ = 0;  // those of them that a live stream vouches for
  std::uint64_t tokens_ = 0;
  std::size_t active_ = 0;
  bool started_ = false;
};

}  // namespace conductor
