#include "src/index/run_table.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#include "src/check.h"

namespace conductor {

// Breaks first, so that whoever sees a new state sees that the neighbours may differ; a bit goes
// only when both sides are equal again. A reader that sees the same breaks before and after it read
// a state knows how far it reaches.
void RunTable::View::SetStates(std::uint32_t slot, std::uint32_t count, StateId state) const {
  if (breaks == nullptr) {
    states[0].store(state, std::memory_order_release);
    return;
  }
  const std::uint64_t inside = count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  const std::uint64_t touched = inside << slot;
  const std::uint32_t end = slot + count;
  const std::uint64_t after = end < 64 ? std::uint64_t{1} << end : 0;
  std::uint64_t bits = breaks->load(std::memory_order_relaxed);
  breaks->store(bits | touched | after, std::memory_order_release);
  for (std::uint32_t i = slot; i < end; ++i) states[i].store(state, std::memory_order_release);
  bits &= ~touched;
  if (slot == 0 || states[slot - 1].load(std::memory_order_relaxed) != state) {
    bits |= std::uint64_t{1} << slot;
  }
  if (end < capacity && end < size() && states[end].load(std::memory_order_relaxed) != state) {
    bits |= after;
  } else {
    bits &= ~after;
  }
  breaks->store(bits, std::memory_order_release);
}

RunTable::RunTable(RetireList& retired)
    : retired_(retired),
      supers_(
          static_cast<std::atomic<Super*>*>(std::calloc(kSupersMax, sizeof(std::atomic<Super*>)))) {
  CHECK(supers_ != nullptr);
}

RunTable::~RunTable() {
  for (std::uint32_t i = 0; i < supers_end_; ++i) {
    if (Super* super = supers_[i].load()) ::operator delete(super);
  }
  std::free(supers_);
}

RunTable::View RunTable::Allocate(std::uint32_t slots) {
  const auto size_class = static_cast<std::uint32_t>(std::bit_width(slots - 1));
  Room& room = room_[size_class];
  const std::uint32_t index = room.count == 0 ? NewSuper(size_class) : room.First();
  Super& super = *supers_[index].load(std::memory_order_relaxed);
  EntryId base = super.free_head;
  if (base != 0) {
    super.free_head = super.runs[(base & kSlotMask) >> super.shift].next_sibling;
  } else {
    base = kInRun | (index << kSlotBits) | (super.fresh++ << super.shift);
  }
  ++super.used;
  ++in_use_;
  if (super.free_head == 0 && (super.fresh << super.shift) == kSlots) {
    SetRoom(index, false);
  }
  const View run = ViewIn(super, base);
  run.run->next_sibling = run.run->prev_sibling = 0;
  run.run->full_digest.store(0, std::memory_order_relaxed);
  run.run->size.store(0, std::memory_order_relaxed);
  run.run->written = 0;
  run.run->life.store(Run::kInUse, std::memory_order_relaxed);
  if (run.breaks != nullptr) run.breaks->store(1, std::memory_order_relaxed);
  if (run.next != nullptr) run.next->store(0, std::memory_order_relaxed);
  std::fill_n(run.children, run.capacity, EntryId{0});
  return run;
}

void RunTable::Retire(const View& run) {
  if (run.run->life.load(std::memory_order_relaxed) == Run::kInUse) {
    run.run->life.store(Run::kFree, std::memory_order_relaxed);
  }
  retired_.Retire(
      [](void* owner, std::uintptr_t base) {
        static_cast<RunTable*>(owner)->Release(static_cast<EntryId>(base));
      },
      this, run.base);
}

void RunTable::Release(EntryId base) {
  const std::uint32_t index = (base & ~kInRun) >> kSlotBits;
  Super& super = SuperOf(base);
  super.runs[(base & kSlotMask) >> super.shift].next_sibling = super.free_head;
  super.free_head = base;
  if (!super.has_room) SetRoom(index, true);
  // The last one with room stays, empty: the next run of its class is not far.
  if (--super.used == 0 && room_[super.shift].count > 1) FreeSuper(index);
  if (--in_use_ > 0) return;
  for (Room& room : room_) {
    while (room.count > 0) FreeSuper(room.First());
  }
}

bool RunTable::NextRun(std::uint32_t* position, View* run) const {
  while ((*position >> kSlotBits) < supers_end_) {
    const std::uint32_t index = *position >> kSlotBits;
    Super* super = supers_[index].load(std::memory_order_relaxed);
    // Rounded up: in a superblock that was made anew, the position may lie inside a run. That one
    // is younger than the superblock's first visit.
    const std::uint32_t shift = super == nullptr ? 0 : super->shift;
    const std::uint32_t at = ((*position & kSlotMask) + (1u << shift) - 1) >> shift;
    if (super == nullptr || at >= super->fresh) {
      *position = (index + 1) << kSlotBits;
      continue;
    }
    const EntryId base = kInRun | (index << kSlotBits) | (at << shift);
    *position = (base & ~kInRun) + (1u << shift);
    if (super->runs[at].life.load(std::memory_order_relaxed) != Run::kInUse) continue;
    *run = ViewIn(*super, base);
    return true;
  }
  return false;
}

// All of a superblock is one piece of memory, so that it comes and goes as one.
std::uint32_t RunTable::NewSuper(std::uint32_t size_class) {
  const std::uint32_t runs = kSlots >> size_class;
  const bool has_breaks = size_class > 0;
  const bool has_nexts = size_class == kClasses - 1;
  const std::size_t bytes = sizeof(Super) + runs * (has_breaks ? sizeof(std::uint64_t) : 0) +
                            kSlots * (2 * sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t)) +
                            runs * (sizeof(Run) + (has_nexts ? sizeof(EntryId) : 0));
  auto* super = new (::operator new(bytes)) Super;
  std::uintptr_t at = reinterpret_cast<std::uintptr_t>(super + 1);
  const auto take = [&at]<typename T>(T*& array, std::size_t count) {
    array = reinterpret_cast<T*>(at);
    at += count * sizeof(T);
  };
  take(super->fingerprints, kSlots);
  take(super->names, kSlots);
  if (has_breaks) take(super->breaks, runs);
  take(super->runs, runs);
  take(super->states, kSlots);
  take(super->children, kSlots);
  if (has_nexts) take(super->nexts, runs);
  // Their lifetimes begin here; what they hold is set when a run is allocated.
  for (std::uint32_t i = 0; i < runs; ++i) new (&super->runs[i]) Run;
  super->shift = size_class;
  super->bytes = bytes;
  bytes_ += bytes;
  std::uint32_t index = supers_end_;
  if (!free_supers_.empty()) {
    index = free_supers_.back();
    free_supers_.pop_back();
  } else {
    CHECK(supers_end_ < kSupersMax - 1);  // so that no id is all ones
    ++supers_end_;
  }
  supers_[index].store(super, std::memory_order_release);
  SetRoom(index, true);
  return index;
}

void RunTable::FreeSuper(std::uint32_t index) {
  SetRoom(index, false);
  Super* super = supers_[index].exchange(nullptr);
  bytes_ -= super->bytes;
  ::operator delete(super);
  free_supers_.push_back(index);
}

void RunTable::SetRoom(std::uint32_t index, bool has_room) {
  Super& super = *supers_[index].load(std::memory_order_relaxed);
  super.has_room = has_room;
  has_room ? room_[super.shift].Add(index) : room_[super.shift].Remove(index);
}

void RunTable::Room::Add(std::uint32_t index) {
  const std::size_t word = index / 64;
  if (word >= bits.size()) bits.resize(word + 1);
  bits[word] |= std::uint64_t{1} << (index % 64);
  first_word = std::min(first_word, word);
  ++count;
}

void RunTable::Room::Remove(std::uint32_t index) {
  bits[index / 64] &= ~(std::uint64_t{1} << (index % 64));
  --count;
}

std::uint32_t RunTable::Room::First() {
  while (bits[first_word] == 0) ++first_word;
  return static_cast<std::uint32_t>(first_word * 64) +
         static_cast<std::uint32_t>(std::countr_zero(bits[first_word]));
}

}  // namespace conductor
