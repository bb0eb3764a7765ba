// RowMatches: the answer of a walk without its texts: who matched how much, best first. For callers
// in the same process that ask often and want names of few. Instances that matched nothing are left
// out; a caller that keeps one from query to query spares the allocations.
//
//   EpochGuard guard;  // what it refers to is valid as long as this
//   MatchFingerprints(index, query, &matches);
//   for (std::size_t i = 0; i < matches.size(); ++i) Use(matches.InstanceAt(i),
//   matches.CountsAt(i));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/index/context_table.h"
#include "src/index/plain_rows.h"
#include "src/query.h"

namespace conductor {

// One instance in the order of an answer: by what it matched, then by id.
struct InstanceMatch {
  TierCounts best;
  std::uint32_t group = 0;

  bool operator<(const InstanceMatch& other) const {
    if (best.disk != other.best.disk) return best.disk > other.best.disk;
    if (best.device != other.best.device) return best.device > other.best.device;
    return group < other.group;
  }
};

class RowMatches {
 public:
  bool context_known() const { return rows_ != nullptr; }
  std::size_t size() const { return plain_.size() + others_.size(); }
  std::string_view InstanceAt(std::size_t i) const {
    return plain_.empty() ? rows_->InstanceOf(rows_->groups[others_[i].group])
                          : rows_->cards[plain_[i].row].instance_id();
  }
  TierCounts CountsAt(std::size_t i) const {
    if (plain_.empty()) return others_[i].best;
    const std::uint64_t tokens = plain_[i].tokens;
    return {tokens, tokens, tokens, tokens};
  }

 private:
  friend class RowMatchesFiller;
  const RowView* rows_ = nullptr;  // null: the context is unknown
  // One of them is empty.
  std::vector<PlainRow> plain_;
  std::vector<InstanceMatch> others_;
};

}  // namespace conductor
