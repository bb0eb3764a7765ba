// Progress of a long recovery, for people: on a terminal a bar that is drawn over itself, elsewhere
// plain lines when they were asked for. Owns nothing; one thread.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "src/ports.h"
#include "src/result.h"
#include "src/service/recover.h"

namespace conductor::cli {

enum class ProgressStyle : std::uint8_t { kNone, kLines, kBar };

class Progress {
 public:
  Progress(ProgressStyle style, std::ostream& out, const Clock& clock)
      : style_(style), out_(out), clock_(clock) {}
  ~Progress();  // wipes the bar, so that the next line begins at the left
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws when it is time to. Never fails: the shape RecoverOptions asks for.
  Status Update(const RecoverProgress& progress);

 private:
  struct Stage;
  void Draw(const Stage& stage);

  const ProgressStyle style_;
  std::ostream& out_;
  const Clock& clock_;
  bool drawn_ = false;
  // Of the stage that runs: snapshot, then log. Each has a rate and an end of its own.
  bool started_ = false, loading_snapshot_ = false;
  std::int64_t stage_start_ms_ = 0, drawn_ms_ = 0;
  std::uint64_t first_blocks_ = 0;
};

}  // namespace conductor::cli
