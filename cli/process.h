// What a process asks of its system: file descriptors, termination signals, a last resort against a
// stop that hangs. Linux only. Errors say which call failed and why.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "src/result.h"

namespace conductor::cli {

// Raises the soft limit of open files to the hard one and returns it.
Result<std::uint64_t> RaiseOpenFilesLimit();

// SIGTERM and SIGINT (and SIGHUP, unless the parent ignores it) as something to wait for. Open it
// before any thread starts: threads inherit the mask. One thread waits; Wake is for any thread.
class StopSignals {
 public:
  static Result<StopSignals> Open();
  StopSignals(StopSignals&& other) noexcept;
  StopSignals& operator=(StopSignals&&) = delete;
  ~StopSignals();

  enum class Event { kTimeout, kWoken, kSignal };
  // `*signal_number` is set with kSignal.
  Event Wait(std::chrono::milliseconds timeout, int* signal_number);
  void Wake();

 private:
  StopSignals(int signals, int wake) : signals_(signals), wake_(wake) {}
  int signals_;
  int wake_;
};

// Ends the process with `exit_code` when it is not disarmed in time, with one line on stderr.
class StopWatchdog {
 public:
  StopWatchdog(std::chrono::milliseconds deadline, int exit_code);
  ~StopWatchdog();  // disarms

 private:
  std::mutex mutex_;
  std::condition_variable disarm_;
  bool disarmed_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace conductor::cli
