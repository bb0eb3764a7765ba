#include "src/service/rebuild_progress.h"

#include <algorithm>
#include <cstdio>

namespace conductor {
namespace {

constexpr std::int64_t kLogEveryMs = 5'000;
// Below this a rate says nothing.
constexpr std::int64_t kRateAfterMs = 200;

}  // namespace

void RebuildProgress::Start(std::int64_t now_ms) {
  MutexLock lock(mutex_);
  started_ms_ = phase_ms_ = logged_ms_ = now_ms;
  loading_ = false;
  blocks_ = 0;
  blocks_per_s_ = percent_ = 0;
  seconds_left_ = -1;
}

std::string RebuildProgress::Report(const RecoverProgress& progress, std::int64_t now_ms) {
  MutexLock lock(mutex_);
  if (progress.loading_snapshot != loading_) {
    loading_ = progress.loading_snapshot;
    phase_ms_ = now_ms;
    blocks_per_s_ = 0;
    seconds_left_ = -1;
  }
  blocks_ = progress.blocks;
  const double done = loading_ ? static_cast<double>(progress.blocks)
                               : static_cast<double>(progress.seq - progress.first);
  const double all = loading_ ? static_cast<double>(progress.blocks_total)
                              : static_cast<double>(progress.last - progress.first);
  percent_ = all > 0 ? std::min(100.0, done / all * 100) : 0;
  const std::int64_t elapsed_ms = now_ms - phase_ms_;
  if (elapsed_ms >= kRateAfterMs) {
    blocks_per_s_ = static_cast<double>(blocks_) * 1'000 / static_cast<double>(elapsed_ms);
    seconds_left_ = done > 0 && all > 0
                        ? static_cast<double>(elapsed_ms) / 1'000 * std::max(all - done, 0.0) / done
                        : -1;
  }
  if (now_ms - logged_ms_ < kLogEveryMs) return "";
  logged_ms_ = now_ms;
  char line[256];
  std::snprintf(line, sizeof(line),
                "event=rebuilding phase=%s percent=%.1f seq=%llu of=%llu blocks=%llu "
                "blocks_per_s=%.0f seconds_left=%.0f",
                loading_ ? "loading_snapshot" : "rebuilding", percent_,
                static_cast<unsigned long long>(progress.seq),
                static_cast<unsigned long long>(progress.last),
                static_cast<unsigned long long>(blocks_), blocks_per_s_, seconds_left_);
  return line;
}

std::int64_t RebuildProgress::ElapsedMs(std::int64_t now_ms) const {
  MutexLock lock(mutex_);
  return now_ms - started_ms_;
}

void RebuildProgress::Fill(Readiness* readiness) const {
  MutexLock lock(mutex_);
  readiness->phase = loading_ ? "loading_snapshot" : "rebuilding";
  readiness->blocks_done = blocks_;
  readiness->blocks_per_s = blocks_per_s_;
  readiness->percent = percent_;
  readiness->seconds_left = seconds_left_;
}

}  // namespace conductor
