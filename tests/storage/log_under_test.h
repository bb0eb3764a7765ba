// LogUnderTest: one shape for the logs that the contract test runs, with the ways they can fail.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/ports.h"

namespace conductor::storage {

class LogUnderTest {
 public:
  virtual ~LogUnderTest() = default;
  virtual EventLog& log() = 0;
  // The process is killed; log() is then the one of the next process.
  virtual void KillAndRestart() = 0;
  // The machine loses its power at once; log() is then the one after the restart.
  virtual void CutPowerAndRestart() = 0;
  // The next Append (or Sync) fails, once.
  virtual void FailNextAppend() = 0;
  virtual void FailNextSync() = 0;
  // The cause of the failure is gone; Reopen may succeed.
  virtual void Heal() = 0;
};

std::unique_ptr<LogUnderTest> MakeMemoryLogUnderTest();
std::unique_ptr<LogUnderTest> MakeRocksDbLogUnderTest();

}  // namespace conductor::storage
