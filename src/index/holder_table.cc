#include "src/index/holder_table.h"

#include <algorithm>

#include "src/check.h"
#include "src/index/heap_bytes.h"

namespace conductor {
namespace {

// Empty sets that are kept because the next block often makes them again.
constexpr std::size_t kIdleSetsMax = 4'096;

// Of an interning node: the next one, the hash and the id; and of a node of `current_`.
constexpr std::size_t kInternedBytes = HeapBytes(3 * sizeof(void*));
constexpr std::size_t kCurrentBytes = HeapBytes(4 * sizeof(void*) + sizeof(HolderKey) + 8);

// Aligned: the gap before the next one is lost.
std::size_t SetBytes(const HolderSet& set) {
  return sizeof(HolderSet) + alignof(HolderSet) + HeapBytes(set.size * sizeof(HolderId)) +
         kInternedBytes;
}

std::size_t StatesBytes(const Holder& holder) {
  return HeapBytes(holder.states.capacity() * sizeof(StateId));
}

}  // namespace

bool HolderSet::Contains(HolderId holder) const {
  return std::binary_search(holders.get(), holders.get() + size, holder);
}

HolderTable::~HolderTable() {
  for (StateId id = 1; id < sets_.end_id(); ++id) delete sets_[id].load();
}

HolderId HolderTable::FindCurrent(const HolderKey& key) const {
  auto it = current_.find(key);
  return it == current_.end() ? 0 : it->second;
}

HolderId HolderTable::Current(const HolderKey& key, std::uint32_t row) {
  auto [it, inserted] = current_.try_emplace(key, 0);
  if (!inserted) return it->second;
  const HolderId id = holders_.Allocate();
  Holder& holder = holders_[id];
  holder.key = key;
  holder.row = row;
  holder.retired.store(false, std::memory_order_relaxed);
  holder.current = true;
  holder.sum = 0;
  holder.blocks.store(0, std::memory_order_relaxed);
  holder.memberships = 0;
  holder.compact_at = 64;
  holder.alone = 0;
  it->second = id;
  return id;
}

StateId HolderTable::Intern(std::vector<HolderId> holders, std::uint64_t set_hash,
                            ContextId context, HolderId via) {
  auto [begin, end] = interned_.equal_range(set_hash);
  for (auto it = begin; it != end; ++it) {
    const HolderSet& set = *Mutable(it->second);
    if (set.size == holders.size() &&
        std::equal(holders.begin(), holders.end(), set.holders.get())) {
      return it->second;
    }
  }
  static std::atomic<std::uint64_t> serials{0};
  auto* set = new HolderSet;
  set->serial = serials.fetch_add(1, std::memory_order_relaxed) + 1;
  set->context = context;
  set->size = static_cast<std::uint32_t>(holders.size());
  set->holders.reset(new HolderId[holders.size()]);
  std::copy(holders.begin(), holders.end(), set->holders.get());
  set->set_hash = set_hash;
  set->via = via;
  if (std::binary_search(holders.begin(), holders.end(), via)) {
    set->via_mix = MixHolder(via);
    set->via_stream = holders_[via].key.stream;
    set->via_row = holders_[via].row;
  }
  const StateId id = sets_.Allocate();
  std::uint32_t live = 0, live_engines = 0;
  for (HolderId h : holders) {
    AddState(h, id);
    const HolderKey& key = holders_[h].key;
    if (key.pool != 0 || key.unproven || key.tier == Tier::kCpuShare) set->plain = false;
    if (!set->plain || key.tier != Tier::kDevice) set->device_only = false;
    if (holders_[h].retired.load(std::memory_order_relaxed)) {
      set->has_retired = true;
    } else {
      ++live;
      if (holders_[h].key.pool == 0) ++live_engines;
    }
  }
  set->live.store(live, std::memory_order_relaxed);
  set->live_engines.store(live_engines, std::memory_order_relaxed);
  bytes_ += SetBytes(*set);
  ++set_count_;
  interned_.emplace(set_hash, id);
  // Release pairs with Find: readers see the whole set.
  sets_[id].store(set, std::memory_order_release);
  return id;
}

namespace {

// A cached transition is valid when its target is still the set it was made for.
StateId CachedTarget(const HolderTable& table, const HolderSet::Transition (&cache)[4],
                     HolderId holder, std::uint64_t set_hash, std::uint32_t size) {
  for (const auto& transition : cache) {
    if (transition.holder != holder) continue;
    const HolderSet* target = table.Mutable(transition.target);
    if (target != nullptr && target->set_hash == set_hash && target->size == size) {
      return transition.target;
    }
  }
  return 0;
}

}  // namespace

StateId HolderTable::SetOf(std::vector<HolderId> holders) {
  std::uint64_t set_hash = 0;
  for (const HolderId holder : holders) set_hash += MixHolder(holder);
  const ContextId context = holders_[holders.front()].key.context;
  return Intern(std::move(holders), set_hash, context, 0);
}

StateId HolderTable::WithHolder(StateId state, HolderId holder) {
  const std::uint64_t mixed = MixHolder(holder);
  if (state == 0) {
    Holder& h = holders_[holder];
    const HolderSet* alone = Mutable(h.alone);
    if (alone == nullptr || alone->size != 1 || alone->holders[0] != holder) {
      h.alone = Intern({holder}, mixed, h.key.context, holder);
    }
    return h.alone;
  }
  HolderSet& set = *Mutable(state);
  const std::uint64_t set_hash = set.set_hash + mixed;
  if (StateId hit = CachedTarget(*this, set.add, holder, set_hash, set.size + 1)) return hit;
  std::vector<HolderId> holders(set.holders.get(), set.holders.get() + set.size);
  holders.insert(std::lower_bound(holders.begin(), holders.end(), holder), holder);
  const StateId target = Intern(std::move(holders), set_hash, set.context, holder);
  set.add[set.next_add++ & 3] = {holder, target};
  return target;
}

StateId HolderTable::WithoutHolder(StateId state, HolderId holder) {
  HolderSet& set = *Mutable(state);
  if (set.size == 1) return 0;
  const std::uint64_t set_hash = set.set_hash - MixHolder(holder);
  if (StateId hit = CachedTarget(*this, set.remove, holder, set_hash, set.size - 1)) return hit;
  std::vector<HolderId> holders;
  holders.reserve(set.size - 1);
  for (std::uint32_t i = 0; i < set.size; ++i) {
    if (set.holders[i] != holder) holders.push_back(set.holders[i]);
  }
  const StateId target = Intern(std::move(holders), set_hash, set.context, holder);
  set.remove[set.next_remove++ & 3] = {holder, target};
  return target;
}

StateId HolderTable::WithoutRetired(StateId state) {
  HolderSet& set = *Mutable(state);
  std::vector<HolderId> holders;
  std::uint64_t set_hash = 0;
  for (std::uint32_t i = 0; i < set.size; ++i) {
    if (holders_[set.holders[i]].retired.load(std::memory_order_relaxed)) continue;
    holders.push_back(set.holders[i]);
    set_hash += MixHolder(set.holders[i]);
  }
  if (holders.empty()) return 0;
  const HolderSet* last = Mutable(set.without_retired);
  if (last != nullptr && last->set_hash == set_hash && last->size == holders.size()) {
    return set.without_retired;
  }
  set.without_retired = Intern(std::move(holders), set_hash, set.context, 0);
  return set.without_retired;
}

void HolderTable::AddState(HolderId id, StateId state) {
  Holder& holder = holders_[id];
  if (holder.states.size() >= holder.compact_at) CompactStates(id);
  bytes_ -= StatesBytes(holder);
  // By a quarter: with thousands of holders these lists are as large as the sets.
  const std::size_t size = holder.states.size();
  if (size == holder.states.capacity()) holder.states.reserve(size + size / 4 + 4);
  holder.states.push_back(state);
  bytes_ += StatesBytes(holder);
}

// Drops ids of sets that were freed, or whose id was given to another set.
void HolderTable::CompactStates(HolderId id) {
  std::vector<StateId>& states = holders_[id].states;
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
  std::erase_if(states, [&](StateId state) {
    const HolderSet* set = Mutable(state);
    return set == nullptr || !set->Contains(id);
  });
  holders_[id].compact_at = states.size() * 2 + 64;
}

void HolderTable::Detach(const HolderKey& key) {
  const auto it = current_.find(key);
  if (it == current_.end()) return;
  holders_[it->second].current = false;
  current_.erase(it);
}

std::vector<StateId> HolderTable::Retire(HolderId id) {
  Holder& holder = holders_[id];
  holder.retired.store(true, std::memory_order_release);
  holder.sum = 0;
  // Unless a newer generation has taken its place.
  if (holder.current) Detach(holder.key);
  CompactStates(id);
  return holder.states;
}

void HolderTable::Leave(HolderSet& set, const HolderKey& key) {
  set.has_retired = true;
  if (key.pool == 0) set.live_engines.fetch_sub(1, std::memory_order_acq_rel);
  set.live.fetch_sub(1, std::memory_order_acq_rel);
}

void HolderTable::Recycle(HolderId id) {
  // Sets without entries may still name the holder; they must not be found again under its next
  // owner.
  for (StateId state : std::vector<StateId>(holders_[id].states)) {
    const HolderSet* set = Mutable(state);
    if (set != nullptr && set->entries == 0 && set->Contains(id)) FreeSet(state);
  }
  bytes_ -= StatesBytes(holders_[id]);
  holders_[id].states = {};
  retired_.Retire(
      [](void* owner, std::uintptr_t object) {
        static_cast<HolderTable*>(owner)->holders_.Release(static_cast<HolderId>(object));
      },
      this, id);
}

void HolderTable::NoteEmpty(StateId id) {
  HolderSet& set = *Mutable(id);
  if (set.has_retired) {
    FreeSet(id);
    return;
  }
  if (!set.idle) {
    set.idle = true;
    idle_.push_back(id);
  }
  while (idle_.size() > kIdleSetsMax) {
    const StateId oldest = idle_.front();
    idle_.pop_front();
    HolderSet* candidate = Mutable(oldest);
    if (candidate == nullptr || !candidate->idle) continue;
    candidate->idle = false;
    if (candidate->entries == 0) FreeSet(oldest);
  }
}

std::size_t HolderTable::bytes() const {
  return bytes_ + holders_.bytes() + sets_.bytes() + current_.size() * kCurrentBytes +
         HeapBytes(interned_.bucket_count() * sizeof(void*)) +
         HeapBytes(idle_.size() * sizeof(StateId));
}

void HolderTable::FreeSet(StateId id) {
  HolderSet* set = Mutable(id);
  CHECK(set->entries == 0);
  auto [begin, end] = interned_.equal_range(set->set_hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second == id) {
      interned_.erase(it);
      break;
    }
  }
  bytes_ -= SetBytes(*set);
  --set_count_;
  set->freed = true;
  // Readers that loaded the id from an entry before still need the set behind it.
  retired_.Retire(
      [](void* owner, std::uintptr_t object) {
        auto* table = static_cast<HolderTable*>(owner);
        const auto freed = static_cast<StateId>(object);
        delete table->sets_[freed].exchange(nullptr);
        table->sets_.Release(freed);
      },
      this, id);
}

}  // namespace conductor
