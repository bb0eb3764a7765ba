// RebuildProgress: how far the state is, how fast it goes and how long it will take, for readiness,
// status and the log. Thread-safe: the apply thread reports, others look.
#pragma once

#include <cstdint>
#include <string>

#include "src/mutex.h"
#include "src/service.h"
#include "src/service/recover.h"

namespace conductor {

class RebuildProgress {
 public:
  void Start(std::int64_t now_ms);
  // A line for the log when the last one is a while ago; else empty.
  std::string Report(const RecoverProgress& progress, std::int64_t now_ms);
  std::int64_t ElapsedMs(std::int64_t now_ms) const;
  // Fills phase, blocks_done, blocks_per_s, percent and seconds_left.
  void Fill(Readiness* readiness) const;

 private:
  mutable Mutex mutex_;
  std::int64_t started_ms_ GUARDED_BY(mutex_) = 0;
  std::int64_t phase_ms_ GUARDED_BY(mutex_) = 0;   // when this phase began
  std::int64_t logged_ms_ GUARDED_BY(mutex_) = 0;  // when it was last logged
  bool loading_ GUARDED_BY(mutex_) = false;
  std::uint64_t blocks_ GUARDED_BY(mutex_) = 0;
  double blocks_per_s_ GUARDED_BY(mutex_) = 0, percent_ GUARDED_BY(mutex_) = 0;
  double seconds_left_ GUARDED_BY(mutex_) = -1;
};

}  // namespace conductor
