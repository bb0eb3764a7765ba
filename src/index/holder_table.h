// Holders and holder sets.
//
// A holder is one generation of (stream, context, tier): what one publisher has in one tier since
// it last lost everything there; of a store's stream, one for each backend and tenant (pool).
// Retiring a holder is one step, whatever it has: queries skip it,
// the digest drops its sum, block counts drop the sets that have nobody else. The entries are
// cleaned up later, in slices (prefix_index.h), which changes no answer.
//
// A state is the *set* of holders that have a block, interned: equal sets are one object. Sets are
// immutable once published; readers follow state ids under an EpochGuard.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/index/chunked_array.h"
#include "src/index/entry.h"
#include "src/index/epoch.h"
#include "src/index/mix.h"
#include "src/index/pool_table.h"

namespace conductor {

struct HolderKey {
  StreamId stream = 0;
  ContextId context = 0;
  Tier tier = Tier::kDevice;
  bool unproven = false;
  PoolId pool = 0;  // 0: an engine's
  auto operator<=>(const HolderKey&) const = default;
};

// What a pool has is no row of a context.
inline constexpr std::uint32_t kNoRow = 0xffffffffu;

struct Holder {
  HolderKey key;          // constant while the id is in use
  std::uint32_t row = 0;  // of the context's row table; constant while in use
  std::atomic<bool> retired{false};
  bool current = false;  // exactly when it is among current()
  Sum128 sum = 0;        // of its blocks' mixes
  // Blocks it has. Invariant: equals memberships until it is retired; meaningless from then on.
  std::atomic<std::uint64_t> blocks{0};
  // Entries and slots whose set names it. Invariant: the id is not used again before it is 0.
  std::uint64_t memberships = 0;
  // Invariant: every set that names it and was not freed is among them. Stale ids may be too, until
  // the list is compacted.
  std::vector<StateId> states;
  std::size_t compact_at = 64;
  StateId alone = 0;  // the set of this holder only, as it was made last
};

struct alignas(64) HolderSet {
  // What readers need, in the first cache line.
  // No other set of this process ever has it: ids of sets and holders are used again.
  std::uint64_t serial = 0;
  std::uint64_t set_hash = 0;           // sum of the holders' mixes
  std::unique_ptr<HolderId[]> holders;  // ascending, of one context; at least one
  // The holder by which it differed from the set it was made from. Of one that it has: its mix, row
  // and stream, so that who is in this set and not in the next is told without looking it up.
  std::uint64_t via_mix = 0;
  StreamId via_stream = 0;
  std::uint32_t via_row = 0;
  HolderId via = 0;
  std::uint32_t size = 0;
  std::atomic<std::uint32_t> live_engines{0};  // holders that are not retired, and no pools
  std::atomic<bool> has_retired{false};        // exactly when live < size
  // Every holder is an engine's, verified, of a tier that is its own: each (row, tier) is there
  // once, and means that row alone.
  bool plain = true;
  bool device_only = true;  // plain, and of the device tier
  // Of the second line.
  std::atomic<std::uint32_t> live{0};  // holders that are not retired
  ContextId context = 0;
  // Writer only. Entries and slots that have this state, and those of them known by name only.
  // Invariant: a set that was freed has none.
  std::uint64_t entries = 0, fragments = 0;
  StateId without_retired = 0;  // what WithoutRetired made last
  bool idle = false;            // in the queue of sets that may be freed
  bool freed = false;           // only readers that met it before may still look at it
  struct Transition {
    HolderId holder = 0;
    StateId target = 0;
  };
  Transition add[4], remove[4];
  std::uint8_t next_add = 0, next_remove = 0;

  bool Contains(HolderId holder) const;
};

class HolderTable {
 public:
  HolderTable(RetireList& retired) : retired_(retired) {}
  ~HolderTable();

  // The current generation for `key`, created if there is none.
  HolderId Current(const HolderKey& key, std::uint32_t row);
  HolderId FindCurrent(const HolderKey& key) const;  // 0: none
  // The next Current makes a new generation; the old one keeps what it has until it is retired.
  void Detach(const HolderKey& key);
  Holder& holder(HolderId id) const { return holders_[id]; }
  // Ids handed out so far are below this. In their order all are looked at faster than in that of
  // current(), which leads through memory at random.
  HolderId end_id() const { return holders_.end_id(); }
  // Current holders, in key order.
  const std::map<HolderKey, HolderId>& current() const { return current_; }

  // Readers: nullptr for 0.
  const HolderSet* Find(StateId id) const {
    return id == 0 ? nullptr : sets_[id].load(std::memory_order_acquire);
  }
  // Writer: nullptr for a set that was freed, which readers may still find.
  HolderSet* Mutable(StateId id) const {
    HolderSet* set = id == 0 ? nullptr : sets_[id].load(std::memory_order_relaxed);
    return set == nullptr || set->freed ? nullptr : set;
  }
  // Whether an engine has it: it is a block.
  bool IsLive(StateId id) const {
    const HolderSet* set = Find(id);
    return set != nullptr && set->live_engines.load(std::memory_order_acquire) > 0;
  }
  // Whether anyone has it: a block, or a name that pools have.
  bool IsHeld(StateId id) const {
    const HolderSet* set = Find(id);
    return set != nullptr && set->live.load(std::memory_order_acquire) > 0;
  }

  // The set of these, ascending and of one context.
  StateId SetOf(std::vector<HolderId> holders);
  StateId WithHolder(StateId state, HolderId holder);
  StateId WithoutHolder(StateId state, HolderId holder);
  // Of a set that has retired holders: the set of the others.
  StateId WithoutRetired(StateId state);

  // Marks the holder as gone and lists its sets. The caller takes it out of each one's counts
  // (Leave) and cleans up.
  std::vector<StateId> Retire(HolderId holder);
  static void Leave(HolderSet& set, const HolderKey& key);
  // The id may be recycled: no entry names it any more.
  void Recycle(HolderId holder);
  // A set lost its last entry; it is kept for a while, because sets come back.
  void NoteEmpty(StateId state);

  // A set's hash is the sum of its holders'.
  static std::uint64_t MixHolder(HolderId id) { return HashMix(id, 0x686f6c646572ull); }

  std::size_t bytes() const;
  std::size_t set_count() const { return set_count_; }
  // For tests: which invariants of sets and holders are broken, in words. `named`: how many entries
  // and slots have each state; `unclean`: retired holders that some of them still name.
  std::string Inconsistency(const std::map<StateId, std::uint64_t>& named,
                            std::uint64_t unclean) const;

 private:
  StateId Intern(std::vector<HolderId> holders, std::uint64_t set_hash, ContextId context,
                 HolderId via);
  void FreeSet(StateId id);
  void AddState(HolderId id, StateId state);
  void CompactStates(HolderId id);

  RetireList& retired_;
  ChunkedArray<Holder, 10, 1 << 14> holders_;
  ChunkedArray<std::atomic<HolderSet*>, 10, 1 << 16> sets_;
  std::map<HolderKey, HolderId> current_;  // no retired ones
  // By set_hash: exactly the sets that were not freed. Looked up, never iterated.
  std::unordered_multimap<std::uint64_t, StateId> interned_;
  std::deque<StateId> idle_;   // those with `idle`, and some that were freed since
  std::size_t bytes_ = 0;      // of the sets, until they are unpublished, and of the holders' lists
  std::size_t set_count_ = 0;  // that were not freed
};

}  // namespace conductor
