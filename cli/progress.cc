#include "cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>

#include "cli/views.h"

namespace conductor::cli {

namespace {

constexpr std::int64_t kBarIntervalMs = 100;
constexpr std::int64_t kLineIntervalMs = 1'000;
constexpr int kBarCells = 24;
// The line's start, and everything to the right of it gone.
constexpr char kWipe[] = "\r\x1b[K";

std::string Format(const char* format, double number) {
  char text[48];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string Rate(double blocks_per_s) {
  if (blocks_per_s >= 1e6) return Format("%.2f M blocks/s", blocks_per_s / 1e6);
  return Format("%.0f blocks/s", blocks_per_s);
}

}  // namespace

struct Progress::Stage {
  double fraction = 0;  // 0 to 1
  double blocks_per_s = 0;
  std::int64_t left_ms = -1;  // -1: not known
  bool loading_snapshot = false;
  Seq seq = 0, last = 0;
};

Progress::~Progress() {
  if (style_ == ProgressStyle::kBar && drawn_) out_ << kWipe << std::flush;
}

Status Progress::Update(const RecoverProgress& progress) {
  if (style_ == ProgressStyle::kNone) return {};
  const std::int64_t now_ms = clock_.MonotonicMs();
  if (!started_ || progress.loading_snapshot != loading_snapshot_) {
    started_ = true;
    loading_snapshot_ = progress.loading_snapshot;
    stage_start_ms_ = now_ms;
    first_blocks_ = progress.blocks;
  }
  const std::int64_t interval_ms = style_ == ProgressStyle::kBar ? kBarIntervalMs : kLineIntervalMs;
  if (drawn_ && now_ms - drawn_ms_ < interval_ms) return {};

  Stage stage;
  stage.loading_snapshot = progress.loading_snapshot;
  stage.seq = progress.seq;
  stage.last = progress.last;
  const double done = progress.loading_snapshot
                          ? static_cast<double>(progress.blocks)
                          : static_cast<double>(progress.seq - progress.first);
  const double total = progress.loading_snapshot
                           ? static_cast<double>(progress.blocks_total)
                           : static_cast<double>(progress.last - progress.first);
  stage.fraction = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
  const std::int64_t elapsed_ms = now_ms - stage_start_ms_;
  if (elapsed_ms > 0) {
    stage.blocks_per_s = static_cast<double>(progress.blocks - first_blocks_) * 1e3 /
                         static_cast<double>(elapsed_ms);
    if (stage.fraction > 0) {
      stage.left_ms = static_cast<std::int64_t>(static_cast<double>(elapsed_ms) *
                                                (1 - stage.fraction) / stage.fraction);
    }
  }
  Draw(stage);
  drawn_ = true;
  drawn_ms_ = now_ms;
  return {};
}

void Progress::Draw(const Stage& stage) {
  std::string text = stage.loading_snapshot ? "snapshot " : "log ";
  if (style_ == ProgressStyle::kBar) {
    const auto full = static_cast<std::size_t>(stage.fraction * kBarCells);
    text += "[" + std::string(full, '#') + std::string(kBarCells - full, '.') + "] ";
  }
  text += Format("%.1f %%", stage.fraction * 100);
  if (!stage.loading_snapshot) {
    text += ", record " + std::to_string(stage.seq) + " of " + std::to_string(stage.last);
  }
  if (stage.blocks_per_s > 0) text += ", " + Rate(stage.blocks_per_s);
  if (stage.left_ms >= 0) text += ", " + DescribeMs(stage.left_ms) + " left";
  if (style_ == ProgressStyle::kBar) {
    out_ << kWipe << text << std::flush;
  } else {
    out_ << text << "\n" << std::flush;
  }
}

}  // namespace conductor::cli
