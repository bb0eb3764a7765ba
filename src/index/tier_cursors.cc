#include "src/index/tier_cursors.h"

#include <algorithm>
#include <tuple>

namespace conductor {
namespace {

// A thread keeps memory for contexts of this many rows.
constexpr std::size_t kKeptRowsMax = 65'536;

}  // namespace

TierCursors::Scratch& TierCursors::ThreadsScratch(std::size_t rows) {
  thread_local Scratch scratch;
  if (scratch.rows.size() > kKeptRowsMax && rows < kKeptRowsMax) {
    std::vector<RowState>().swap(scratch.rows);
  }
  if (scratch.rows.size() < rows) scratch.rows.resize(rows);
  ++scratch.stamp;
  scratch.touched.clear();
  scratch.matched.clear();
  scratch.by_length.clear();
  scratch.last_states.clear();
  scratch.stretches.clear();
  return scratch;
}

TierCursors::TierCursors(const HolderTable& holders, const ContextTable& contexts,
                         const RowView& rows, const RowView::Group* group, std::size_t best)
    : holders_(holders),
      contexts_(contexts),
      rows_(rows),
      group_(group),
      best_(best),
      scratch_(ThreadsScratch(rows.size())),
      keeping_(group == nullptr && rows.one_rank_each) {}

bool TierCursors::Wanted(std::uint32_t row) const {
  return rows_[row] != nullptr &&
         (group_ == nullptr || &rows_.groups[rows_.cards[row].group] == group_);
}

TierCursors::RowState& TierCursors::StateOf(std::uint32_t row) {
  RowState& state = scratch_.rows[row];
  if (state.stamp != scratch_.stamp) {
    state = RowState{};
    state.stamp = scratch_.stamp;
  }
  return state;
}

void TierCursors::MarkPresence(std::span<const StateId> states) {
  for (std::uint32_t row : scratch_.touched) scratch_.rows[row].presence = 0;
  scratch_.touched.clear();
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
      if (!IsOf(holder)) continue;
      RowState& row = StateOf(holder.row);
      if (row.presence == 0) scratch_.touched.push_back(holder.row);
      row.presence |= bit;
    }
  }
}

// The first position: whoever has it sets out.
void TierCursors::Start() {
  started_ = true;
  const std::vector<std::uint32_t>& candidates = everyone_ != 0 ? rows_.order : scratch_.touched;
  for (std::uint32_t row : candidates) {
    if (!Wanted(row)) continue;
    StateOf(row).active = true;
    scratch_.matched.push_back(row);
  }
  active_ = scratch_.matched.size();
}

// Past the tiers that do not have the position for an active row.
void TierCursors::AdvanceRow(std::uint32_t row) {
  RowState& state = scratch_.rows[row];
  const std::uint8_t present = state.presence | everyone_;
  while (state.phase < kTierCount && (present & (1u << state.phase)) == 0) {
    state.bounds[state.phase++] = tokens_;
  }
  if (state.phase == kTierCount) {
    state.active = false;
    --active_;
    scratch_.by_length.push_back(row);
    return;
  }
  const unsigned bit = 1u << state.phase;
  if (((state.presence | everyone_live_) & bit) == 0) state.rests_on_degraded = true;
}

// From one plain set to another: only rows of holders that left can fall. False: the sets are not
// plain, and everything has to be looked at.
bool TierCursors::AdvanceByDifference(StateId next) {
  if (scratch_.last_states.size() != 1) return false;
  const HolderSet* from = holders_.Find(scratch_.last_states[0]);
  const HolderSet* to = holders_.Find(next);
  if (from == nullptr || to == nullptr || !from->plain || !to->plain) return false;
  // Of two generations of one holder, the retired one leaves nothing behind.
  if (from->has_retired || to->has_retired) return false;
  const auto row_of = [&](HolderId id) -> RowState* {
    const Holder& holder = holders_.holder(id);
    return IsOf(holder) ? &StateOf(holder.row) : nullptr;
  };
  const auto bit_of = [&](HolderId id) {
    return static_cast<std::uint8_t>(1u << (static_cast<int>(holders_.holder(id).key.tier) - 1));
  };
  const auto lose = [&](HolderId id) {
    RowState* row = row_of(id);
    if (row == nullptr) return;
    row->presence &= static_cast<std::uint8_t>(~bit_of(id));
    if (row->active) scratch_.fallen.push_back(holders_.holder(id).row);
  };
  scratch_.fallen.clear();
  const auto fall = [&] {
    for (std::uint32_t row : scratch_.fallen) {
      if (scratch_.rows[row].active) AdvanceRow(row);
    }
  };
  // One holder less, as sets are mostly made: no need to compare them.
  if (from->size == to->size + 1) {
    for (const HolderId id : {from->via, to->via}) {
      if (id == 0 || from->set_hash - HolderTable::MixHolder(id) != to->set_hash) continue;
      lose(id);
      fall();
      return true;
    }
  }
  const HolderId* a = from->holders.get();
  const HolderId* b = to->holders.get();
  const HolderId* const a_end = a + from->size;
  const HolderId* const b_end = b + to->size;
  while (a != a_end || b != b_end) {
    std::tie(a, b) = std::mismatch(a, a_end, b, b_end);
    if (b == b_end || (a != a_end && *a < *b)) {
      if (a == a_end) break;
      lose(*a++);
    } else {
      RowState* row = row_of(*b);
      if (row != nullptr && !holders_.holder(*b).retired.load(std::memory_order_acquire)) {
        if (row->presence == 0) scratch_.touched.push_back(holders_.holder(*b).row);
        row->presence |= bit_of(*b);
      }
      ++b;
    }
  }
  fall();  // when all is known: a row may have it in another tier now
  return true;
}

void TierCursors::Replay() {
  keeping_ = false;
  for (const Stretch& stretch : scratch_.stretches) AdvanceNow({&stretch.state, 1}, stretch.end);
}

bool TierCursors::Advance(std::span<const StateId> states, std::uint64_t tokens_after) {
  if (keeping_) {
    const HolderSet* set = states.size() == 1 ? holders_.Find(states[0]) : nullptr;
    if (set != nullptr && Keep(states[0], *set, tokens_after)) return true;
    Replay();
  }
  return AdvanceNow(states, tokens_after);
}

bool TierCursors::AdvanceNow(std::span<const StateId> states, std::uint64_t tokens_after) {
  const bool same =
      started_ && std::equal(states.begin(), states.end(), scratch_.last_states.begin(),
                             scratch_.last_states.end());
  if (!same) {
    if (!started_ || states.size() != 1 || !AdvanceByDifference(states[0])) {
      MarkPresence(states);
      if (!started_) Start();
      for (std::uint32_t row : scratch_.matched) {
        if (scratch_.rows[row].active) AdvanceRow(row);
      }
    }
    scratch_.last_states.assign(states.begin(), states.end());
  }
  tokens_ = tokens_after;
  return active_ > 0;
}

void TierCursors::Finish() {
  if (keeping_) {
    const std::vector<Stretch>& stretches = scratch_.stretches;
    const bool few = best_ > 0 && best_ <= kBestFewMax;
    if (few ? TakeBest(holders_, rows_, stretches, best_, &scratch_.plain)
            : TakeAll(holders_, rows_, stretches, &scratch_.plain)) {
      return;
    }
    Replay();
  }
  for (std::uint32_t row : scratch_.matched) {
    RowState& state = scratch_.rows[row];
    if (!state.active) continue;
    for (int phase = state.phase; phase < kTierCount; ++phase) state.bounds[phase] = tokens_;
    scratch_.by_length.push_back(row);
  }
}

TierCursors::RowCounts TierCursors::Of(std::uint32_t row) const {
  const RowState& state = scratch_.rows[row];
  if (state.stamp != scratch_.stamp) return {};
  const std::uint64_t* b = state.bounds;
  return {{b[0], b[1], b[2], b[3]}, state.rests_on_degraded};
}

}  // namespace conductor
