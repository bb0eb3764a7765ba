// Epochs: how the one writer frees what readers may still look at, without a lock for the readers.
//
// A reader pins the current epoch for the length of one walk:
//
//   EpochGuard guard;             // no lock, no allocation after a thread's first use
//   ... follow pointers and ids published by the writer ...
//
// The writer unpublishes an object, hands it to its RetireList and calls Reclaim() now and then;
// the object is freed once no reader pins an epoch as old as the retirement. Epochs and reader
// slots are process-wide; a RetireList belongs to one writer thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace conductor {

// Threads that may read at the same time. A thread takes a slot at its first guard and gives it
// back when it ends.
inline constexpr std::size_t kReaderSlotsMax = 1'024;

class EpochGuard {
 public:
  EpochGuard();
  ~EpochGuard();
  EpochGuard(const EpochGuard&) = delete;
  EpochGuard& operator=(const EpochGuard&) = delete;
};

class RetireList {
 public:
  using Free = void (*)(void* owner, std::uintptr_t object);

  RetireList() = default;
  ~RetireList() { FreeAll(); }
  RetireList(const RetireList&) = delete;
  RetireList& operator=(const RetireList&) = delete;

  // `object` is no longer reachable for new readers; call `free(owner, object)` when that is true
  // for the old ones too.
  void Retire(Free free, void* owner, std::uintptr_t object);

  template <typename T>
  void RetireObject(T* object) {
    Retire([](void*, std::uintptr_t p) { delete reinterpret_cast<T*>(p); }, nullptr,
           reinterpret_cast<std::uintptr_t>(object));
  }

  // Frees what is safe to free. Cheap: a look at the slots in use.
  void Reclaim();

  // Frees everything. No reader may be active any more.
  void FreeAll();

  std::size_t pending() const { return items_.size(); }

 private:
  struct Item {
    std::uint64_t epoch;
    Free free;
    void* owner;
    std::uintptr_t object;
  };
  std::deque<Item> items_;  // Invariant: epochs ascend.
};

}  // namespace conductor
