// Waiting for a condition with a deadline. Who may have made it true calls Notify; what nobody
// announces is seen at the next look. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tests/slowness.h"

namespace conductor::durability {

inline constexpr std::chrono::seconds kPatience{30 * kSlowness};
inline constexpr std::chrono::milliseconds kLookAgain{2};

class Awaiter {
 public:
  // Takes no lock, so it may be called under any.
  void Notify() { changed_.notify_all(); }

  template <typename Condition>
  bool Await(const Condition& condition) {
    std::unique_lock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      changed_.wait_for(lock, kLookAgain);
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace conductor::durability
