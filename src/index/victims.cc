#include "src/index/victims.h"

#include <algorithm>

namespace conductor {
namespace {

// Runs and entries looked at in one slice: less than a millisecond.
constexpr std::size_t kVisitsMax = 16'384;
// A holder is one of the largest when it lacks less than this part of the largest one's blocks; and
// no more than that is taken before the holders are looked at again.
constexpr std::uint64_t kLargestPart = 8;

}  // namespace

// One call of Next.
class VictimSweep::Slice {
 public:
  Slice(const PrefixIndex& index, std::size_t blocks_max, std::size_t victims_max, bool of_anyone,
        std::vector<Victim>* victims)
      : index_(index), of_anyone_(of_anyone), victims_max_(victims_max), victims_(victims) {
    victims->clear();
    std::uint64_t largest = 0;
    for (const auto& [key, id] : index.holders().current()) {
      largest = std::max(largest, BlocksOf(id));
    }
    for (const auto& [key, id] : index.holders().current()) {
      if (BlocksOf(id) < largest - largest / kLargestPart) continue;
      if (id >= is_large_.size()) is_large_.resize(std::size_t{id} + 1);
      is_large_[id] = true;
    }
    blocks_max_ = std::min<std::uint64_t>(blocks_max, largest / kLargestPart + 1);
  }

  std::size_t taken() const { return taken_; }
  bool IsFull() const { return taken_ >= blocks_max_ || victims_->size() >= victims_max_; }

  // Takes the block if it may go, then what it leaves as a leaf, upwards. What nobody has (any
  // more: the cleanup comes later) is passed. Returns where to go on when the slice is full, else
  // 0.
  EntryId TakeUpwards(EntryId id) {
    EntryId below = 0;
    while (id != 0 && IsLeafWithout(id, below)) {
      if (IsFull()) return id;
      if (index_.IsHeld(id) && !(MayGo(id) && Take(id))) return 0;
      below = id;
      id = index_.ParentOf(id);
    }
    return 0;
  }

  // Whether an id from before is one still; the block may be another.
  bool IsBlock(EntryId id) const {
    RunTable::View run;
    if (!IsInRun(id)) return id < index_.entries_.end_id() && index_.entries_[id].in_use;
    return index_.runs().Find(id, &run) && index_.runs().IsInUse(id) && run.SlotOf(id) < run.size();
  }

 private:
  std::uint64_t BlocksOf(HolderId id) const {
    return index_.holders().holder(id).blocks.load(std::memory_order_relaxed);
  }

  // Whether nothing hangs below the block, but for `taken` (0: nothing).
  bool IsLeafWithout(EntryId id, EntryId taken) const {
    EntryId child = 0;
    if (IsInRun(id)) {
      const RunTable::View run = index_.runs().ViewOf(id);
      const std::uint32_t next = run.SlotOf(id) + 1;
      if (next < run.size() && taken != id + 1) return false;
      child = run.children[next - 1];
    } else {
      child = index_.entries_[id].first_child;
    }
    if (child != 0 && (child != taken || NextSibling(child) != 0)) return false;
    return !index_.HasOwnNames(index_.ContextOf(id)) || !HasChildrenByName(id, taken);
  }

  EntryId NextSibling(EntryId child) const {
    return IsInRun(child) ? index_.runs().ViewOf(child).run->next_sibling
                          : index_.entries_[child].next_sibling;
  }

  // Publishers' own blocks that name this one as their parent hang below an entry of their own.
  bool HasChildrenByName(EntryId id, EntryId taken) const {
    const Scope scope = index_.ScopeOf(id);
    bool any = false;
    index_.ForProjected(index_.ContextOf(id), index_.ProjectedOf(id), [&](EntryId own) {
      const Entry& e = index_.entries_[own];
      if (own == id || e.first_child == 0) return;
      const bool only_taken = e.first_child == taken && NextSibling(taken) == 0;
      any = any || (!only_taken && (scope == kSharedScope || scope == e.scope));
    });
    return any;
  }

  // Whether one of the largest holders has it. Neighbours mostly have the same state.
  bool MayGo(EntryId id) {
    const StateId state = index_.StateOf(id);
    if (of_anyone_) return true;
    if (state == judged_) return may_go_;
    judged_ = state;
    const HolderSet& set = *index_.holders().Find(state);
    may_go_ = std::any_of(set.holders.get(), set.holders.get() + set.size, [this](HolderId holder) {
      return holder < is_large_.size() && is_large_[holder];
    });
    return may_go_;
  }

  // False: the name alone would mean another block of one of its holders (an own one, forged); that
  // one goes first.
  bool Take(EntryId id) {
    const NameRef ref = index_.NameOf(id);
    const BlockName name{ref.projected, std::string(ref.digest)};
    const bool has_own_names = index_.HasOwnNames(index_.ContextOf(id));
    const HolderSet& set = *index_.holders().Find(index_.StateOf(id));
    const std::size_t first = victims_->size();
    for (std::uint32_t i = 0; i < set.size; ++i) {
      const Holder& holder = index_.holders().holder(set.holders[i]);
      if (holder.retired.load(std::memory_order_relaxed)) continue;
      const HolderKey& key = holder.key;
      if (has_own_names && key.pool == 0 &&
          index_.FindHeld(key.context, key.stream, key.tier, name).first != id) {
        victims_->resize(first);
        return false;
      }
      // A stream's pools lose the name together.
      const bool twice = key.pool != 0 &&
                         std::any_of(victims_->begin() + static_cast<std::ptrdiff_t>(first),
                                     victims_->end(), [&](const Victim& other) {
                                       return other.stream == key.stream && other.tier == key.tier;
                                     });
      if (twice) continue;
      victims_->push_back({key.stream, key.context, key.tier, name});
    }
    ++taken_;
    return true;
  }

  const PrefixIndex& index_;
  const bool of_anyone_;
  const std::size_t victims_max_;
  std::vector<Victim>* const victims_;
  std::vector<bool> is_large_;  // by holder id
  std::size_t blocks_max_ = 0, taken_ = 0;
  StateId judged_ = 0;  // the state that may_go_ is about
  bool may_go_ = false;
};

VictimSweep::Found VictimSweep::Next(const PrefixIndex& index, std::size_t blocks_max,
                                     std::size_t victims_max, std::vector<Victim>* victims) {
  Slice slice(index, blocks_max, victims_max, of_anyone_, victims);
  Found found;
  if (resume_ != 0 && slice.IsBlock(resume_)) {
    // By itself, so that the sweep does not meet what is taken here.
    resume_ = slice.TakeUpwards(resume_);
    found.blocks = slice.taken();
    found_ = found_ || found.blocks > 0;
    if (found.blocks > 0) return found;
  }
  for (std::size_t visits = 0; visits < kVisitsMax && !slice.IsFull(); ++visits) {
    if (entry_ == 0) {
      RunTable::View run;
      if (!index.runs().NextRun(&run_, &run)) {
        run_ = 0;
        entry_ = 1;
      } else if (run.size() > 0) {
        resume_ = slice.TakeUpwards(run.base + run.size() - 1);
      }
    } else if (entry_ < index.entries_.end_id()) {
      if (slice.IsBlock(entry_)) resume_ = slice.TakeUpwards(entry_);
      ++entry_;
    } else {
      // Once round. The slice ends here, so that it takes nothing twice.
      entry_ = 0;
      const bool any = found_ || slice.taken() > 0;
      found.exhausted = !any && of_anyone_;
      of_anyone_ = !any && !of_anyone_;
      found_ = false;
      found.blocks = slice.taken();
      return found;
    }
  }
  found.blocks = slice.taken();
  found_ = found_ || found.blocks > 0;
  return found;
}

}  // namespace conductor
