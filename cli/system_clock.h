// The Clock of the real world. Thread-safe.
#pragma once

#include <chrono>

#include "src/ports.h"

namespace conductor::cli {

class SystemClock final : public Clock {
 public:
  std::int64_t MonotonicMs() const override {
    return Milliseconds(std::chrono::steady_clock::now().time_since_epoch());
  }
  std::int64_t UnixMs() const override {
    return Milliseconds(std::chrono::system_clock::now().time_since_epoch());
  }

 private:
  template <typename Duration>
  static std::int64_t Milliseconds(Duration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  }
};

}  // namespace conductor::cli
