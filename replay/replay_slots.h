// How many replays may be open at once, over all publishers: a restart of ours must not make every
// publisher send its whole history in the same second. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace conductor {

class ReplaySlots {
 public:
  explicit ReplaySlots(std::uint32_t slots_max) : free_(slots_max) {}

  // False: all are taken; ask again later.
  bool TryTake() {
    // Relaxed: the count protects nothing but itself.
    std::uint32_t free = free_.load(std::memory_order_relaxed);
    while (free > 0) {
      if (free_.compare_exchange_weak(free, free - 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void Return() { free_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> free_;
};

}  // namespace conductor
