#include "src/index/segment_map.h"

#include <algorithm>
#include <new>

#include "src/check.h"

namespace conductor {
namespace {

constexpr std::uint32_t kDepthMax = 22;  // 4M segments; beyond it segments grow instead

// Two halves with less than this are one again.
constexpr std::uint32_t kMergeBelow = 64;

// Every probe meets an empty slot soon.
std::uint32_t UsedMax(std::uint32_t capacity) {
  return capacity - capacity / 8;
}

// What a half with so many gets: an even one the first capacity; one that got nearly all must
// double from here on.
std::uint32_t CapacityOfHalf(std::uint32_t live) {
  for (const std::uint32_t capacity : {kSegmentCapacity, kGrownCapacity}) {
    if (live <= UsedMax(capacity) * 7 / 8) return capacity;
  }
  return kGrownCapacity * 2;
}

}  // namespace

SegmentMap::SegmentMap(RetireList& retired) : retired_(retired), directory_(nullptr) {
  void* memory = ::operator new(sizeof(Directory) + sizeof(std::atomic<Handle>));
  auto* directory = new (memory) Directory;
  new (directory->handles()) std::atomic<Handle>(HandleOf(NewSegment(0, kSegmentCapacity)));
  directory_.store(directory);
}

SegmentMap::~SegmentMap() {
  Directory* directory = directory_.load();
  Segment* last = nullptr;  // a segment's directory entries are neighbours
  for (std::size_t i = 0; i < directory->size(); ++i) {
    Segment* segment = SegmentAt(directory->handles()[i].load());
    if (segment != last) ::operator delete(segment);
    last = segment;
  }
  ::operator delete(directory);
}

SegmentMap::Handle SegmentMap::HandleOf(const Segment* segment) {
  const auto capacity = std::find(kCapacities.begin(), kCapacities.end(), segment->capacity);
  CHECK(capacity != kCapacities.end());
  return reinterpret_cast<Handle>(segment) | static_cast<Handle>(capacity - kCapacities.begin());
}

SegmentMap::Segment* SegmentMap::NewSegment(std::uint32_t depth, std::uint32_t capacity) {
  const std::size_t size = sizeof(Segment) + capacity * sizeof(std::atomic<std::uint64_t>);
  auto* segment = new (::operator new(size)) Segment;
  segment->depth = depth;
  segment->capacity = capacity;
  for (std::uint32_t i = 0; i < capacity; ++i) {
    new (&segment->slots()[i]) std::atomic<std::uint64_t>(0);
  }
  bytes_ += size;
  return segment;
}

void SegmentMap::RetireSegment(Segment* segment) {
  bytes_ -= sizeof(Segment) + segment->capacity * sizeof(std::atomic<std::uint64_t>);
  retired_.Retire(
      [](void*, std::uintptr_t object) { ::operator delete(reinterpret_cast<void*>(object)); },
      nullptr, reinterpret_cast<std::uintptr_t>(segment));
}

void SegmentMap::Set(std::uint64_t hash, std::uint32_t id) {
  const std::uint32_t tag = Tag(hash);
  const auto [slots, capacity] = Locate(tag);
  for (std::uint32_t i = Home(tag, capacity);; i = Next(i, capacity)) {
    const std::uint64_t slot = slots[i].load(std::memory_order_relaxed);
    if (slot == 0) break;
    if (TagOf(slot) == tag && IdOf(slot) != kTombstone) {
      slots[i].store(Slot(tag, id), std::memory_order_release);
      return;
    }
  }
  AddSlot(tag, id);
}

void SegmentMap::Insert(std::uint64_t hash, std::uint32_t id) {
  AddSlot(Tag(hash), id);
}

// In the first slot that is empty or a tombstone.
void SegmentMap::AddSlot(std::uint32_t tag, std::uint32_t id) {
  const auto [slots, capacity] = Locate(tag);
  std::uint32_t i = Home(tag, capacity);
  std::uint64_t slot = slots[i].load(std::memory_order_relaxed);
  while (slot != 0 && IdOf(slot) != kTombstone) {
    i = Next(i, capacity);
    slot = slots[i].load(std::memory_order_relaxed);
  }
  Fill(SegmentOf(tag), tag, i, id);
}

// The place is empty or a tombstone.
void SegmentMap::Fill(Segment* segment, std::uint32_t tag, std::uint32_t i, std::uint32_t id) {
  std::atomic<std::uint64_t>& place = segment->slots()[i];
  const bool was_empty = place.load(std::memory_order_relaxed) == 0;
  place.store(Slot(tag, id), std::memory_order_release);
  ++size_;
  ++segment->live;
  if (was_empty && ++segment->used > UsedMax(segment->capacity)) MakeRoom(segment, tag);
}

void SegmentMap::Erase(std::uint64_t hash) {
  const std::uint32_t tag = Tag(hash);
  Segment* segment = SegmentOf(tag);
  for (std::uint32_t i = Home(tag, segment->capacity);; i = Next(i, segment->capacity)) {
    const std::uint64_t slot = segment->slots()[i].load(std::memory_order_relaxed);
    if (slot == 0) return;
    if (TagOf(slot) == tag && IdOf(slot) != kTombstone) return EraseAt(segment, Tag(hash), i);
  }
}

void SegmentMap::Remove(std::uint64_t hash, std::uint32_t id) {
  const std::uint64_t wanted = Slot(Tag(hash), id);
  Segment* segment = SegmentOf(Tag(hash));
  for (std::uint32_t i = Home(Tag(hash), segment->capacity);; i = Next(i, segment->capacity)) {
    const std::uint64_t slot = segment->slots()[i].load(std::memory_order_relaxed);
    CHECK(slot != 0);  // it was inserted
    if (slot == wanted) return EraseAt(segment, Tag(hash), i);
  }
}

void SegmentMap::Replace(std::uint64_t hash, std::uint32_t old_id, std::uint32_t id) {
  const std::uint64_t wanted = Slot(Tag(hash), old_id);
  const auto [slots, capacity] = Locate(Tag(hash));
  std::uint32_t i = Home(Tag(hash), capacity);
  for (std::uint64_t slot; (slot = slots[i].load(std::memory_order_relaxed)) != wanted;) {
    CHECK(slot != 0);  // it was inserted
    i = Next(i, capacity);
  }
  slots[i].store(Slot(Tag(hash), id), std::memory_order_release);
}

void SegmentMap::EraseAt(Segment* segment, std::uint32_t tag, std::uint32_t i) {
  std::atomic<std::uint64_t>* slots = segment->slots();
  --size_;
  --segment->live;
  slots[i].store(Slot(tag, kTombstone), std::memory_order_release);
  // Tombstones in front of an empty slot end no probe early: they can be empty themselves.
  while (slots[Next(i, segment->capacity)].load(std::memory_order_relaxed) == 0) {
    const std::uint64_t here = slots[i].load(std::memory_order_relaxed);
    if (here == 0 || IdOf(here) != kTombstone) break;
    slots[i].store(0, std::memory_order_release);
    --segment->used;
    i = i == 0 ? segment->capacity - 1 : i - 1;
  }
  if (segment->live < kMergeBelow && segment->depth > 0) MergeWithBuddy(segment, tag);
}

// Puts what lives in `from` into unpublished segments; `high` takes what has the next bit set.
void SegmentMap::Copy(const Segment& from, Segment* low, Segment* high) const {
  // No branch on a bit that nobody can foresee.
  Segment* const halves[] = {low, high};
  for (std::uint32_t i = 0; i < from.capacity; ++i) {
    const std::uint64_t slot = from.slots()[i].load(std::memory_order_relaxed);
    if (slot == 0 || IdOf(slot) == kTombstone) continue;
    Segment* target = low == high ? low : halves[HalfOf(slot, high->depth)];
    std::uint32_t at = Home(TagOf(slot), target->capacity);
    while (target->slots()[at].load(std::memory_order_relaxed) != 0) {
      at = Next(at, target->capacity);
    }
    target->slots()[at].store(slot, std::memory_order_relaxed);
    ++target->used;
    ++target->live;
  }
}

// Keys of one tag cannot be split apart, so a segment whose halves are as lopsided as that grows.
void SegmentMap::MakeRoom(Segment* segment, std::uint32_t tag) {
  const bool mostly_tombstones = segment->live <= UsedMax(segment->capacity) * 2 / 3;
  const bool split =
      !mostly_tombstones && segment->capacity == kGrownCapacity && segment->depth < kDepthMax;
  if (!split) {
    std::uint32_t capacity = segment->capacity;
    if (!mostly_tombstones) capacity = capacity < kGrownCapacity ? kGrownCapacity : capacity * 2;
    Segment* copy = NewSegment(segment->depth, capacity);
    Copy(*segment, copy, copy);
    Publish(tag, segment->depth, copy, copy);
    RetireSegment(segment);
    return;
  }
  const std::uint32_t depth = segment->depth + 1;
  std::uint32_t upper = 0;
  for (std::uint32_t i = 0; i < segment->capacity; ++i) {
    const std::uint64_t slot = segment->slots()[i].load(std::memory_order_relaxed);
    if (slot != 0 && IdOf(slot) != kTombstone) upper += HalfOf(slot, depth);
  }
  Segment* low = NewSegment(depth, CapacityOfHalf(segment->live - upper));
  Segment* high = NewSegment(depth, CapacityOfHalf(upper));
  Copy(*segment, low, high);
  if (depth > directory_.load()->depth) ResizeDirectory(depth);
  if (depth == directory_.load()->depth) deepest_ += 2;
  Publish(tag, segment->depth, low, high);
  RetireSegment(segment);
}

// Two neighbours that were one segment before it was split, with little left in both.
void SegmentMap::MergeWithBuddy(Segment* segment, std::uint32_t tag) {
  Segment* buddy = SegmentOf(tag ^ (std::uint32_t{1} << (32 - segment->depth)));
  if (buddy->depth != segment->depth || segment->live + buddy->live > 2 * kMergeBelow) return;
  Segment* whole = NewSegment(segment->depth - 1, kSegmentCapacity);
  Copy(*segment, whole, whole);
  Copy(*buddy, whole, whole);
  Publish(tag, whole->depth, whole, whole);
  if (segment->depth == directory_.load()->depth) deepest_ -= 2;
  RetireSegment(segment);
  RetireSegment(buddy);
  if (deepest_ == 0) ResizeDirectory(directory_.load()->depth - 1);
  // Emptying the last segment of a whole table brings it back to one.
  if (whole->live < kMergeBelow && whole->depth > 0) MergeWithBuddy(whole, tag);
}

// Replaces what the directory has for tags that begin with the first `depth` bits of `tag`.
void SegmentMap::Publish(std::uint32_t tag, std::uint32_t depth, Segment* low, Segment* high) {
  Directory* directory = directory_.load();
  const std::size_t span = std::size_t{1} << (directory->depth - depth);
  const std::size_t first = directory->Index(tag) & ~(span - 1);
  for (std::size_t i = 0; i < span; ++i) {
    const Segment* segment = (low != high && i >= span / 2) ? high : low;
    directory->handles()[first + i].store(HandleOf(segment), std::memory_order_release);
  }
}

// One bit more, or one less when no segment needs it.
void SegmentMap::ResizeDirectory(std::uint32_t depth) {
  Directory* old = directory_.load();
  const std::size_t size = std::size_t{1} << depth;
  auto* fresh =
      new (::operator new(sizeof(Directory) + size * sizeof(std::atomic<Handle>))) Directory;
  fresh->depth = depth;
  deepest_ = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t from = depth > old->depth ? i >> 1 : i << 1;
    const Handle handle = old->handles()[from].load(std::memory_order_relaxed);
    new (&fresh->handles()[i]) std::atomic<Handle>(handle);
    if (SegmentAt(handle)->depth == depth) ++deepest_;
  }
  bytes_ += size * sizeof(Handle);
  bytes_ -= old->size() * sizeof(Handle);
  directory_.store(fresh, std::memory_order_release);
  retired_.Retire(
      [](void*, std::uintptr_t object) { ::operator delete(reinterpret_cast<void*>(object)); },
      nullptr, reinterpret_cast<std::uintptr_t>(old));
}

}  // namespace conductor
