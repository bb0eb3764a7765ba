// MemoryCap: when blocks are given up, how many, and as which facts. The apply thread's.
//
// Which blocks go is the sweep's (src/index/victims.h). Here is how many: above a cap, blocks go
// until 1 % below it (kLowWaterPart), so that not every frame evicts. The decision depends on
// configuration and memory, so it is no part of Apply: it ends as Evicted facts in the log.
//
// max_bytes becomes a cap on blocks too. The memory of evicted blocks is used again, but seldom
// given back at once: the gauge does not fall with every block. So when the bytes reach the line a
// little below max_bytes, the number of blocks there is at that moment is the most there may be;
// when the bytes grow nevertheless (short runs take more for each block than long ones), it is
// lowered in proportion; when they have fallen, it is lifted.
#pragma once

#include <cstdint>
#include <limits>

#include "src/index/victims.h"
#include "src/limits.h"
#include "src/state/state_machine.h"

namespace conductor {

class MemoryCap {
 public:
  explicit MemoryCap(const Limits& limits);

  // What to give up next, a bounded slice; no facts: nothing for now. The record is applied before
  // the next call.
  Record NextSlice(const StateMachine& state);
  // More blocks than there may be: frames wait. Not while there is nothing that could go.
  bool IsOver(const StateMachine& state) const {
    return !exhausted_ && state.index().blocks() > Cap();
  }
  // Above the low-water mark still.
  bool IsEvicting() const { return evicting_; }
  // What was chosen did not go: as if nothing had been found.
  void GiveUp() { exhausted_ = true; }
  // The cleanup came to its end: there may be leaves that were none.
  void LookAgain() { exhausted_ = false; }
  // Above a cap, and a whole look found nothing to give up.
  bool exhausted() const { return exhausted_; }

 private:
  static constexpr std::uint64_t kNoCap = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t Cap() const { return max_blocks_ < byte_cap_ ? max_blocks_ : byte_cap_; }
  void LookAtBytes(const PrefixIndex& index);
  // byte_cap_: `most`, less the blocks that so many bytes are worth.
  void Lower(std::uint64_t most, double bytes, const PrefixIndex& index);

  const std::uint64_t max_blocks_;   // kNoCap: none
  const std::uint64_t line_bytes_;   // a little less: here it begins
  std::uint64_t byte_cap_ = kNoCap;  // blocks
  std::uint64_t highest_bytes_ = 0;  // that byte_cap_ has answered
  bool evicting_ = false;
  bool exhausted_ = false;
  std::uint64_t exhausted_at_ = 0;  // blocks; tried again when their number is another
  VictimSweep sweep_;
};

}  // namespace conductor
