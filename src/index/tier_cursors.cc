#include "src/index/tier_cursors.h"

#include <algorithm>

namespace conductor {

TierCursors::TierCursors(const HolderTable& holders, const ContextTable& contexts,
                         const RowView& rows, const std::string& instance_id)
    : holders_(holders),
      contexts_(contexts),
      rows_(rows),
      instance_id_(instance_id),
      presence_(rows.size(), 0),
      rests_on_degraded_(rows.size(), false),
      phase_(rows.size(), 0),
      bounds_(rows.size() * kTierCount, 0) {}

bool TierCursors::Wanted(std::uint32_t row) const {
  return rows_[row] != nullptr && (instance_id_.empty() || rows_[row]->instance_id == instance_id_);
}

void TierCursors::MarkPresence(std::span<const StateId> states) {
  for (std::uint32_t row : touched_) presence_[row] = 0;
  touched_.clear();
  everyone_ = everyone_live_ = 0;
  for (StateId state : states) {
    const HolderSet* set = holders_.Find(state);
    for (std::uint32_t i = 0; set != nullptr && i < set->size; ++i) {
      const Holder& holder = holders_.holder(set->holders[i]);
      if (holder.retired.load(std::memory_order_acquire)) continue;
      const auto bit = static_cast<std::uint8_t>(1u << (static_cast<int>(holder.key.tier) - 1));
      if (holder.key.pool != 0 || holder.key.tier == Tier::kCpuShare) {
        everyone_ |= bit;
        const StreamShared* stream = contexts_.FindStream(holder.key.stream);
        if (stream != nullptr && stream->Trust() == StreamState::kLive) everyone_live_ |= bit;
        continue;
      }
      // The row may be newer than this reader's view of the rows, or belong to another stream.
      if (holder.row >= rows_.size() || rows_[holder.row] == nullptr ||
          rows_[holder.row]->stream != holder.key.stream) {
        continue;
      }
      if (presence_[holder.row] == 0) touched_.push_back(holder.row);
      presence_[holder.row] |= bit;
    }
  }
}

bool TierCursors::Advance(std::span<const StateId> states, std::uint64_t tokens_after) {
  if (started_ &&
      std::equal(states.begin(), states.end(), last_states_.begin(), last_states_.end())) {
    tokens_ = tokens_after;
    return !active_.empty();
  }
  MarkPresence(states);
  last_states_.assign(states.begin(), states.end());
  if (!started_) {
    started_ = true;
    if (everyone_ != 0) {
      for (std::uint32_t row = 0; row < rows_.size(); ++row) {
        if (Wanted(row)) active_.push_back(row);
      }
    } else {
      for (std::uint32_t row : touched_) {
        if (Wanted(row)) active_.push_back(row);
      }
    }
  }
  std::erase_if(active_, [&](std::uint32_t row) {
    const std::uint8_t present = presence_[row] | everyone_;
    std::uint8_t& phase = phase_[row];
    while (phase < kTierCount && (present & (1u << phase)) == 0) {
      bounds_[row * kTierCount + phase] = tokens_;
      ++phase;
    }
    if (phase == kTierCount) return true;
    const unsigned bit = 1u << phase;
    if (((presence_[row] | everyone_live_) & bit) == 0) rests_on_degraded_[row] = true;
    return false;
  });
  tokens_ = tokens_after;
  return !active_.empty();
}

std::vector<TierCursors::RowCounts> TierCursors::Finish() {
  for (std::uint32_t row : active_) {
    for (int phase = phase_[row]; phase < kTierCount; ++phase) {
      bounds_[row * kTierCount + phase] = tokens_;
    }
  }
  std::vector<RowCounts> result;
  result.reserve(rows_.size());
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    if (!Wanted(row)) continue;
    const std::uint64_t* b = &bounds_[row * kTierCount];
    result.push_back({rows_[row], {b[0], b[1], b[2], b[3]}, rests_on_degraded_[row]});
  }
  return result;
}

}  // namespace conductor
