// RunTable: where runs live. A run is a stretch of up to 64 consecutive shared blocks of one
// context: contiguous fingerprints, names and states. A longer stretch is a chain of runs, and a
// divergence hangs a child at any slot of a run without splitting it.
//
// A block in a run is named by an EntryId with kInRun set: superblock, run and slot in one number.
// A superblock has 4,096 slots, cut into runs of one capacity (1, 2, 4 .. 64), so that a short run
// costs a short run's memory:
//
//   EntryId  | 1 | superblock: 19 bits | slot: 12 bits |      run = slot >> shift
//
//   superblock of capacity 4:   headers      [ run 0 ][ run 1 ] ...
//                               fingerprints [ 0 1 2 3 ][ 0 1 2 3 ] ...      8 bytes a slot
//                               names        [ 0 1 2 3 ][ 0 1 2 3 ] ...      8
//                               states       [ 0 1 2 3 ][ 0 1 2 3 ] ...      4
//                               children     [ 0 1 2 3 ][ 0 1 2 3 ] ...      4
//                               breaks       [ run 0 ][ run 1 ] ...          8 a run
//
// This file knows the layout and nothing of what blocks mean (index_runs.cc does). One writer;
// readers under an EpochGuard follow ids they got from published data.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "src/index/entry.h"
#include "src/index/epoch.h"

namespace conductor {

inline constexpr EntryId kInRun = 0x80000000u;
inline bool IsInRun(EntryId id) {
  return (id & kInRun) != 0;
}

inline constexpr std::uint32_t kRunSlotsMax = 64;

struct Run {
  // What slot 0 hangs below: a root, a placeholder, or a block. Changes when that moves.
  std::atomic<EntryId> parent{0};
  // The parent's other children; writer only. Of a free run: the next free one.
  EntryId next_sibling = 0, prev_sibling = 0;
  // (id of a full digest << 6 | slot it belongs to), or 0. A cache: answers never depend on it.
  std::atomic<std::uint32_t> full_digest{0};
  ContextId context = 0;
  // Slots in use. Fingerprints and names below it never change while the run is reachable.
  std::atomic<std::uint8_t> size{0};
  // Slots that were ever in use. Invariant: size <= written; only size == written may grow, because
  // a reader may still look at a slot that was given up.
  std::uint8_t written = 0;
  // What every block's link says besides the fingerprint (LinkFacts); writer only.
  std::uint8_t facts = 0;
  // kMoved: its blocks have other ids now, in a run that may know more of what follows.
  enum Life : std::uint8_t { kFree, kInUse, kMoved };
  std::atomic<std::uint8_t> life{kFree};
};
static_assert(sizeof(Run) == 24);

class RunTable {
 public:
  // One run, all its arrays. `base` is slot 0's id.
  struct View {
    Run* run;
    std::atomic<std::uint64_t>* breaks;  // null for capacity 1
    std::atomic<EntryId>* next;          // null but for capacity 64
    std::uint64_t* fingerprints;
    std::uint64_t* names;
    std::atomic<StateId>* states;
    EntryId* children;  // per slot: the first of what hangs there, next slot aside; writer only
    EntryId base;
    std::uint32_t capacity;

    std::uint32_t SlotOf(EntryId id) const { return id - base; }
    std::uint32_t size() const { return run->size.load(std::memory_order_acquire); }
    // Bit i: slot i's state may differ from slot i-1's. Invariant, also in between: where two
    // neighbours differ the bit is set.
    std::uint64_t Breaks() const {
      return breaks == nullptr ? 1 : breaks->load(std::memory_order_acquire);
    }
    void SetState(std::uint32_t slot, StateId state) const { SetStates(slot, 1, state); }
    void SetStates(std::uint32_t slot, std::uint32_t count, StateId state) const;
  };

  explicit RunTable(RetireList& retired);
  ~RunTable();
  RunTable(const RunTable&) = delete;
  RunTable& operator=(const RunTable&) = delete;

  View ViewOf(EntryId id) const;
  // Of an id that may be gone: false when there is no memory for it. Writer only.
  bool Find(EntryId id, View* run) const {
    if (supers_[(id & ~kInRun) >> kSlotBits].load(std::memory_order_relaxed) == nullptr) {
      return false;
    }
    *run = ViewOf(id);
    return true;
  }
  std::uint64_t NameOf(EntryId id) const {
    const Super& super = SuperOf(id);
    return super.names[id & kSlotMask];
  }
  bool IsInUse(EntryId id) const {
    const Super& super = SuperOf(id);
    return super.runs[(id & kSlotMask) >> super.shift].life.load(std::memory_order_acquire) ==
           Run::kInUse;
  }
  bool Is(EntryId id, ContextId context, std::uint64_t name) const {
    const Super& super = SuperOf(id);
    const std::uint32_t slot = id & kSlotMask;
    return super.names[slot] == name && super.runs[slot >> super.shift].context == context;
  }
  StateId StateOf(EntryId id) const {
    return SuperOf(id).states[id & kSlotMask].load(std::memory_order_acquire);
  }

  // --- writer -----------------------------------------------------------------------------------
  // An empty run for at least `slots` blocks (at most 64).
  View Allocate(std::uint32_t slots);
  // Nothing published leads to the run any more. A moved one is marked (kMoved) before that.
  void Retire(const View& run);
  // The first run in use at or after `position` (0: from the start); position moves behind it.
  // False: there is none.
  bool NextRun(std::uint32_t* position, View* run) const;
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::uint32_t kSlotBits = 12;
  static constexpr std::uint32_t kSlots = 1u << kSlotBits;
  static constexpr std::uint32_t kSlotMask = kSlots - 1;
  static constexpr std::uint32_t kSupersMax = 1u << (31 - kSlotBits);
  static constexpr std::uint32_t kClasses = 7;  // capacity 1 << class

  struct Super {
    std::uint32_t shift = 0;
    std::uint32_t used = 0;   // runs that are allocated or wait to be reclaimed
    std::uint32_t fresh = 0;  // runs from here on were never allocated
    EntryId free_head = 0;    // of the others: chained by next_sibling
    bool has_room = false;    // in its class's Room
    Run* runs = nullptr;
    std::atomic<std::uint64_t>* breaks = nullptr;
    std::atomic<EntryId>* nexts = nullptr;
    std::uint64_t* fingerprints = nullptr;
    std::uint64_t* names = nullptr;
    std::atomic<StateId>* states = nullptr;
    EntryId* children = nullptr;
    std::size_t bytes = 0;
  };

  // The superblocks of a class that have a free run. The first is filled first: so free runs come
  // together in the last ones, which become empty and are given back; the last one of a class only
  // when no run of any class is in use.
  struct Room {
    std::vector<std::uint64_t> bits;  // by index of superblock
    std::size_t first_word = 0;       // no bit is set before it
    std::uint32_t count = 0;

    void Add(std::uint32_t index);
    void Remove(std::uint32_t index);
    std::uint32_t First();  // there is one
  };

  Super& SuperOf(EntryId id) const {
    return *supers_[(id & ~kInRun) >> kSlotBits].load(std::memory_order_acquire);
  }
  View ViewIn(Super& super, EntryId base) const;
  std::uint32_t NewSuper(std::uint32_t size_class);
  void FreeSuper(std::uint32_t index);
  void SetRoom(std::uint32_t index, bool has_room);
  void Release(EntryId base);

  RetireList& retired_;
  std::atomic<Super*>* supers_;  // kSupersMax of them; untouched pages cost nothing
  std::uint32_t supers_end_ = 0;
  std::vector<std::uint32_t> free_supers_;
  std::array<Room, kClasses> room_;
  std::size_t in_use_ = 0;  // runs that are allocated or wait to be reclaimed
  std::size_t bytes_ = 0;
};

inline RunTable::View RunTable::ViewIn(Super& super, EntryId base) const {
  const std::uint32_t slot = base & kSlotMask;
  const std::uint32_t index = slot >> super.shift;
  return {&super.runs[index],
          super.breaks == nullptr ? nullptr : &super.breaks[index],
          super.nexts == nullptr ? nullptr : &super.nexts[index],
          &super.fingerprints[slot],
          &super.names[slot],
          &super.states[slot],
          &super.children[slot],
          base,
          1u << super.shift};
}

inline RunTable::View RunTable::ViewOf(EntryId id) const {
  Super& super = SuperOf(id);
  return ViewIn(super, id & ~((1u << super.shift) - 1));
}

}  // namespace conductor
