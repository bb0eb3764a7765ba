// While one lives, the first SIGINT or SIGTERM is an answer to Interrupted() and not the end of the
// process, so that what was begun can be put away; the second ends it. One at a time, one thread.
#pragma once

#include <csignal>

namespace conductor::cli {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool Interrupted();
  // Returns early when interrupted.
  static void Pause(int ms);

 private:
  struct sigaction old_interrupt_ = {}, old_terminate_ = {};
};

}  // namespace conductor::cli
