#include "src/index/segment_map.h"

#include <new>

#include "src/check.h"

namespace conductor {
namespace {

constexpr std::uint32_t kSegmentCapacity = 512;
constexpr std::uint32_t kDepthMax = 22;  // 4M segments; beyond it segments grow instead
constexpr std::uint32_t kTombstone = 0xffffffffu;

std::uint64_t Slot(std::uint32_t tag, std::uint32_t id) {
  return (std::uint64_t{tag} << 32) | id;
}
std::uint32_t SlotTag(std::uint64_t slot) {
  return static_cast<std::uint32_t>(slot >> 32);
}
std::uint32_t SlotId(std::uint64_t slot) {
  return static_cast<std::uint32_t>(slot);
}

}  // namespace

// Slots: 0 = empty; id 0xffffffff = tombstone. Invariant: used counts tombstones, live does not.
struct SegmentMap::Segment {
  std::uint32_t depth = 0;
  std::uint32_t capacity = 0;
  std::uint32_t used = 0;
  std::uint32_t live = 0;
  std::unique_ptr<std::atomic<std::uint64_t>[]> slots;

  std::uint32_t Next(std::uint32_t i) const { return (i + 1) & (capacity - 1); }
  std::uint32_t Home(std::uint32_t tag) const { return tag & (capacity - 1); }

  // Writer, on an unpublished segment that has room.
  void InsertNew(std::uint64_t slot) {
    std::uint32_t i = Home(SlotTag(slot));
    while (slots[i].load(std::memory_order_relaxed) != 0) i = Next(i);
    slots[i].store(slot, std::memory_order_relaxed);
    ++used;
    ++live;
  }
};

struct SegmentMap::Directory {
  std::uint32_t depth = 0;
  std::unique_ptr<std::atomic<Segment*>[]> segments;

  explicit Directory(std::uint32_t d)
      : depth(d), segments(new std::atomic<Segment*>[std::size_t{1} << d]()) {}
  std::size_t size() const { return std::size_t{1} << depth; }
  std::size_t Index(std::uint32_t tag) const {
    return depth == 0 ? 0 : std::size_t{tag >> (32 - depth)};
  }
};

SegmentMap::SegmentMap(RetireList& retired) : retired_(retired), directory_(new Directory(0)) {
  directory_.load()->segments[0].store(NewSegment(0, kSegmentCapacity));
}

SegmentMap::~SegmentMap() {
  Directory* directory = directory_.load();
  Segment* last = nullptr;  // a segment's directory entries are neighbours
  for (std::size_t i = 0; i < directory->size(); ++i) {
    Segment* segment = directory->segments[i].load();
    if (segment != last) delete segment;
    last = segment;
  }
  delete directory;
}

SegmentMap::Segment* SegmentMap::NewSegment(std::uint32_t depth, std::uint32_t capacity) {
  auto* segment = new Segment;
  segment->depth = depth;
  segment->capacity = capacity;
  segment->slots.reset(new std::atomic<std::uint64_t>[capacity]());
  bytes_ += capacity * sizeof(std::uint64_t) + sizeof(Segment);
  return segment;
}

void SegmentMap::RetireSegment(Segment* segment) {
  bytes_ -= segment->capacity * sizeof(std::uint64_t) + sizeof(Segment);
  retired_.RetireObject(segment);
}

SegmentMap::Segment* SegmentMap::Locate(std::uint32_t tag) const {
  const Directory* directory = directory_.load(std::memory_order_acquire);
  return directory->segments[directory->Index(tag)].load(std::memory_order_acquire);
}

std::uint32_t SegmentMap::Find(std::uint64_t hash) const {
  const std::uint32_t tag = Tag(hash);
  const Segment* segment = Locate(tag);
  for (std::uint32_t i = segment->Home(tag);; i = segment->Next(i)) {
    // Acquire pairs with the release in Set: the element behind the id is complete.
    const std::uint64_t slot = segment->slots[i].load(std::memory_order_acquire);
    if (slot == 0) return 0;
    if (SlotTag(slot) == tag && SlotId(slot) != kTombstone) return SlotId(slot);
  }
}

void SegmentMap::Set(std::uint64_t hash, std::uint32_t id) {
  const std::uint32_t tag = Tag(hash);
  Segment* segment = Locate(tag);
  std::uint32_t i = segment->Home(tag);
  std::int64_t reusable = -1;
  for (;; i = segment->Next(i)) {
    const std::uint64_t slot = segment->slots[i].load(std::memory_order_relaxed);
    if (slot == 0) break;
    if (SlotId(slot) == kTombstone) {
      if (reusable < 0) reusable = i;
    } else if (SlotTag(slot) == tag) {
      segment->slots[i].store(Slot(tag, id), std::memory_order_release);
      return;
    }
  }
  ++size_;
  if (reusable >= 0) {
    segment->slots[static_cast<std::uint32_t>(reusable)].store(Slot(tag, id),
                                                               std::memory_order_release);
    ++segment->live;
    return;
  }
  segment->slots[i].store(Slot(tag, id), std::memory_order_release);
  ++segment->used;
  ++segment->live;
  // At most three quarters used, so every probe meets an empty slot soon.
  if (segment->used > segment->capacity - segment->capacity / 4) MakeRoom(segment, tag);
}

void SegmentMap::Erase(std::uint64_t hash) {
  const std::uint32_t tag = Tag(hash);
  Segment* segment = Locate(tag);
  for (std::uint32_t i = segment->Home(tag);; i = segment->Next(i)) {
    const std::uint64_t slot = segment->slots[i].load(std::memory_order_relaxed);
    if (slot == 0) return;
    if (SlotTag(slot) != tag || SlotId(slot) == kTombstone) continue;
    --size_;
    --segment->live;
    segment->slots[i].store(Slot(tag, kTombstone), std::memory_order_release);
    // Tombstones in front of an empty slot end no probe early: they can be empty themselves.
    if (segment->slots[segment->Next(i)].load(std::memory_order_relaxed) != 0) return;
    const std::uint32_t mask = segment->capacity - 1;
    while (true) {
      const std::uint64_t here = segment->slots[i].load(std::memory_order_relaxed);
      if (here == 0 || SlotId(here) != kTombstone) return;
      segment->slots[i].store(0, std::memory_order_release);
      --segment->used;
      i = (i - 1) & mask;
    }
  }
}

void SegmentMap::MakeRoom(Segment* segment, std::uint32_t tag) {
  const bool mostly_tombstones = segment->live <= segment->capacity / 2;
  const bool split = !mostly_tombstones && segment->depth < kDepthMax;
  const std::uint32_t capacity =
      mostly_tombstones || split ? segment->capacity : segment->capacity * 2;
  const std::uint32_t depth = split ? segment->depth + 1 : segment->depth;
  Segment* low = NewSegment(depth, capacity);
  Segment* high = split ? NewSegment(depth, capacity) : low;
  for (std::uint32_t i = 0; i < segment->capacity; ++i) {
    const std::uint64_t slot = segment->slots[i].load(std::memory_order_relaxed);
    if (slot == 0 || SlotId(slot) == kTombstone) continue;
    const bool upper = split && ((SlotTag(slot) >> (32 - depth)) & 1) != 0;
    (upper ? high : low)->InsertNew(slot);
  }
  const std::uint32_t old_depth = segment->depth;
  if (split && depth > directory_.load()->depth) DoubleDirectory();
  Publish(tag, old_depth, low, high);
  RetireSegment(segment);
}

// Replaces the segment of `tag`, whose directory entries are the 2^(dir - depth) neighbours.
void SegmentMap::Publish(std::uint32_t tag, std::uint32_t depth, Segment* low, Segment* high) {
  Directory* directory = directory_.load();
  const std::size_t span = std::size_t{1} << (directory->depth - depth);
  const std::size_t first = directory->Index(tag) & ~(span - 1);
  for (std::size_t i = 0; i < span; ++i) {
    Segment* segment = (low != high && i >= span / 2) ? high : low;
    directory->segments[first + i].store(segment, std::memory_order_release);
  }
}

void SegmentMap::DoubleDirectory() {
  Directory* old = directory_.load();
  auto* bigger = new Directory(old->depth + 1);
  for (std::size_t i = 0; i < old->size(); ++i) {
    Segment* segment = old->segments[i].load(std::memory_order_relaxed);
    bigger->segments[2 * i].store(segment, std::memory_order_relaxed);
    bigger->segments[2 * i + 1].store(segment, std::memory_order_relaxed);
  }
  bytes_ += (bigger->size() - old->size()) * sizeof(void*);
  directory_.store(bigger, std::memory_order_release);
  retired_.RetireObject(old);
}

}  // namespace conductor
