// SegmentMap: 64-bit hash -> 32-bit ids, one writer, readers without a lock.
//
// Extendible hashing: a directory of small open-addressing segments. A full segment grows by half,
// then is split in two, by writing new ones and publishing them; the old one is retired, unchanged,
// so a reader always probes a consistent table. Growth is incremental: one step copies at most a
// segment, one doubling of the directory copies pointers. Emptied neighbours become one again.
//
// A slot keeps only 32 bits of the hash, its tag: the user compares keys in its own elements. Two
// styles, one per map:
//  * Chains (Find, Set, Erase): one id for each tag, the head of a chain that the user keeps.
//  * Flat (FindIf, Insert, Remove, Replace): an id for each key, several of one tag side by side.
//  For keys that are rarely equal: a probe passes all of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "src/index/epoch.h"

namespace conductor {

class SegmentMap {
 public:
  explicit SegmentMap(RetireList& retired);
  ~SegmentMap();
  SegmentMap(const SegmentMap&) = delete;
  SegmentMap& operator=(const SegmentMap&) = delete;

  // Readers: under an EpochGuard.
  // Chains: the head id of `hash`, or 0.
  std::uint32_t Find(std::uint64_t hash) const {
    return FindIf(hash, [](std::uint32_t) { return true; });
  }
  // Flat: the first id of this hash's tag that `is_it` accepts, or 0.
  template <typename Predicate>
  std::uint32_t FindIf(std::uint64_t hash, Predicate&& is_it) const;
  // Asks the processor for the slots of `hash` ahead of a look-up.
  void Prefetch(std::uint64_t hash) const;

  // Writer only. `id` is neither 0 nor 0xffffffff.
  void Set(std::uint64_t hash, std::uint32_t id);
  void Erase(std::uint64_t hash);
  void Insert(std::uint64_t hash, std::uint32_t id);
  // Flat: unless there is an id of this tag that `is_it` accepts, which is returned; else 0.
  template <typename Predicate>
  std::uint32_t InsertUnless(std::uint64_t hash, std::uint32_t id, Predicate&& is_it);
  void Remove(std::uint64_t hash, std::uint32_t id);
  void Replace(std::uint64_t hash, std::uint32_t old_id, std::uint32_t id);

  // Whether two hashes share a slot, and so a chain.
  static bool SameSlot(std::uint64_t a, std::uint64_t b) { return Tag(a) == Tag(b); }

  std::size_t bytes() const { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint32_t kTombstone = 0xffffffffu;
  struct Segment;
  struct Directory;
  struct Table {
    std::atomic<std::uint64_t>* slots;
    std::uint32_t capacity;
  };

  static std::uint32_t Tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  // A segment's tags share their high bits: a multiplication brings the low ones up.
  static std::uint32_t Home(std::uint32_t tag, std::uint32_t capacity) {
    const std::uint32_t mixed = tag * 0x9e3779b1u;
    return static_cast<std::uint32_t>((std::uint64_t{mixed} * capacity) >> 32);
  }
  static std::uint32_t Next(std::uint32_t i, std::uint32_t capacity) {
    return i + 1 == capacity ? 0 : i + 1;
  }
  static std::uint64_t Slot(std::uint32_t tag, std::uint32_t id) {
    return (std::uint64_t{tag} << 32) | id;
  }
  static std::uint32_t TagOf(std::uint64_t slot) { return static_cast<std::uint32_t>(slot >> 32); }
  static std::uint32_t IdOf(std::uint64_t slot) { return static_cast<std::uint32_t>(slot); }

  // Of a segment that is split into two of that depth: 1 is the upper one.
  static std::uint32_t HalfOf(std::uint64_t slot, std::uint32_t depth) {
    return (TagOf(slot) >> (32 - depth)) & 1;
  }

  // What the directory has for a segment: where it is, and its capacity in the lowest bits, so that
  // a look-up does not wait for the segment's head.
  using Handle = std::uintptr_t;
  static constexpr std::uintptr_t kClassMask = 15;
  static Handle HandleOf(const Segment* segment);
  static Segment* SegmentAt(Handle handle) {
    return reinterpret_cast<Segment*>(handle & ~kClassMask);
  }
  Handle HandleFor(std::uint32_t tag) const;
  Table Locate(std::uint32_t tag) const;
  Segment* SegmentOf(std::uint32_t tag) const;
  Segment* NewSegment(std::uint32_t depth, std::uint32_t capacity);
  void RetireSegment(Segment* segment);
  void AddSlot(std::uint32_t tag, std::uint32_t id);
  void Fill(Segment* segment, std::uint32_t tag, std::uint32_t i, std::uint32_t id);
  void EraseAt(Segment* segment, std::uint32_t tag, std::uint32_t i);
  void MakeRoom(Segment* segment, std::uint32_t tag);
  void Publish(std::uint32_t tag, std::uint32_t depth, Segment* low, Segment* high);
  void Copy(const Segment& from, Segment* low, Segment* high) const;
  void MergeWithBuddy(Segment* segment, std::uint32_t tag);
  void ResizeDirectory(std::uint32_t depth);

  RetireList& retired_;
  std::atomic<Directory*> directory_;
  std::size_t deepest_ = 1;  // segments as deep as the directory
  std::size_t bytes_ = 0;
  std::size_t size_ = 0;
};

// Slots: 0 = empty; id 0xffffffff = tombstone. Invariant: used counts tombstones, live does not.
struct alignas(16) SegmentMap::Segment {
  std::uint32_t depth = 0;
  std::uint32_t capacity = 0;
  std::uint32_t used = 0;
  std::uint32_t live = 0;
  std::atomic<std::uint64_t>* slots() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(const_cast<Segment*>(this) + 1);
  }
};

struct alignas(8) SegmentMap::Directory {
  std::uint32_t depth = 0;
  // One after the other.
  std::atomic<Handle>* handles() { return reinterpret_cast<std::atomic<Handle>*>(this + 1); }
  std::size_t size() const { return std::size_t{1} << depth; }
  std::size_t Index(std::uint32_t tag) const {
    return static_cast<std::size_t>((std::uint64_t{tag} << depth) >> 32);
  }
};

// A segment is born with the first capacity, grows to the second, and is split from there: on the
// average it is fuller than one that is split at once. One that cannot be split doubles.
inline constexpr std::uint32_t kSegmentCapacity = 512;
inline constexpr std::uint32_t kGrownCapacity = 768;
inline constexpr auto kCapacities = [] {
  std::array<std::uint32_t, 16> capacities{kSegmentCapacity, kGrownCapacity};
  for (std::size_t i = 2; i < capacities.size(); ++i) capacities[i] = capacities[i - 1] * 2;
  return capacities;
}();

inline SegmentMap::Handle SegmentMap::HandleFor(std::uint32_t tag) const {
  Directory* directory = directory_.load(std::memory_order_acquire);
  return directory->handles()[directory->Index(tag)].load(std::memory_order_acquire);
}

inline SegmentMap::Segment* SegmentMap::SegmentOf(std::uint32_t tag) const {
  return SegmentAt(HandleFor(tag));
}

inline SegmentMap::Table SegmentMap::Locate(std::uint32_t tag) const {
  const Handle handle = HandleFor(tag);
  return {SegmentAt(handle)->slots(), kCapacities[handle & kClassMask]};
}

inline void SegmentMap::Prefetch(std::uint64_t hash) const {
  const Handle handle = HandleFor(Tag(hash));
  const Segment* segment = SegmentAt(handle);
  __builtin_prefetch(segment, 1);  // who inserts counts there
  __builtin_prefetch(&segment->slots()[Home(Tag(hash), kCapacities[handle & kClassMask])], 1);
}

template <typename Predicate>
std::uint32_t SegmentMap::FindIf(std::uint64_t hash, Predicate&& is_it) const {
  const std::uint32_t tag = Tag(hash);
  const auto [slots, capacity] = Locate(tag);
  for (std::uint32_t i = Home(tag, capacity);; i = Next(i, capacity)) {
    // Acquire pairs with the release of the writer: the element behind the id is complete.
    const std::uint64_t slot = slots[i].load(std::memory_order_acquire);
    if (slot == 0) return 0;
    if (TagOf(slot) == tag && IdOf(slot) != kTombstone && is_it(IdOf(slot))) return IdOf(slot);
  }
}

template <typename Predicate>
std::uint32_t SegmentMap::InsertUnless(std::uint64_t hash, std::uint32_t id, Predicate&& is_it) {
  const std::uint32_t tag = Tag(hash);
  const Handle handle = HandleFor(tag);
  const std::uint32_t capacity = kCapacities[handle & kClassMask];
  const std::atomic<std::uint64_t>* slots = SegmentAt(handle)->slots();
  std::optional<std::uint32_t> tombstone;
  std::uint32_t i = Home(tag, capacity);
  for (std::uint64_t slot; (slot = slots[i].load(std::memory_order_relaxed)) != 0;
       i = Next(i, capacity)) {
    if (IdOf(slot) == kTombstone) {
      if (!tombstone) tombstone = i;
    } else if (TagOf(slot) == tag && is_it(IdOf(slot))) {
      return IdOf(slot);
    }
  }
  Fill(SegmentAt(handle), tag, tombstone.value_or(i), id);
  return 0;
}

}  // namespace conductor
