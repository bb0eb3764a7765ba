// A point in time by which something must have ended, on the monotonic clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace conductor::rpc {

class Deadline {
 public:
  static Deadline AfterMs(std::uint32_t ms) {
    return Deadline(Clock::now() + std::chrono::milliseconds(ms));
  }
  // The earlier of this one and `ms` from now.
  Deadline Sooner(std::uint32_t ms) const { return Deadline(std::min(at_, AfterMs(ms).at_)); }

  bool Passed() const { return Clock::now() >= at_; }
  // Rounded up, so that a wait of this length never wakes before the deadline; 0 once it passed.
  std::uint32_t RemainingMs() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return left <= 0 ? 0 : static_cast<std::uint32_t>(left);
  }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace conductor::rpc
