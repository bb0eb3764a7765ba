// TierCursors: turns "who has block i" into per-rank tier boundaries while a walk goes along.
//
// Per rank one cursor and four ordered phases, device -> cpu_local -> cpu_share -> disk. Each phase
// consumes consecutive blocks present in its tier for that rank; the cursor never goes back to a
// higher tier. Ranks are looked at only where the set of holders changes (a break point), so the
// cost does not grow with instances x blocks.
//
// Used by one reader, under its EpochGuard.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/index/context_table.h"
#include "src/index/holder_table.h"
#include "src/query.h"

namespace conductor {

class TierCursors {
 public:
  // `instance_id` empty: every row.
  TierCursors(const HolderTable& holders, const ContextTable& contexts, const RowView& rows,
              const std::string& instance_id);

  // The next position: the sets of its live entries (sorted, distinct), and the boundary in tokens
  // behind it. False: no rank goes on.
  bool Advance(std::span<const StateId> states, std::uint64_t tokens_after);

  // Rows in slot order, with their final counts. Null rows are skipped.
  struct RowCounts {
    const Row* row;
    TierCounts counts;
    // It counts a block that only others have, none of whose streams is live.
    bool rests_on_degraded;
  };
  std::vector<RowCounts> Finish();

 private:
  void MarkPresence(std::span<const StateId> states);
  bool Wanted(std::uint32_t row) const;

  const HolderTable& holders_;
  const ContextTable& contexts_;
  const RowView& rows_;
  const std::string& instance_id_;
  std::vector<StateId> last_states_;
  std::vector<std::uint8_t> presence_;  // per row: bit t = present in tier t+1 for that rank
  std::vector<std::uint32_t> touched_;  // rows whose presence is not zero
  std::uint8_t everyone_ = 0;           // tiers present for every rank
  std::uint8_t everyone_live_ = 0;      // those of them that a live stream vouches for
  std::vector<bool> rests_on_degraded_;
  std::vector<std::uint8_t> phase_;
  std::vector<std::uint64_t> bounds_;  // rows x 4
  std::vector<std::uint32_t> active_;
  std::uint64_t tokens_ = 0;
  bool started_ = false;
};

}  // namespace conductor
