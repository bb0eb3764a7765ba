// What a process of ours says when it ends. Scripts rely on the numbers.
#pragma once

#include "src/result.h"

namespace conductor::cli {

enum class ExitCode : int {
  kOk = 0,
  kNo = 1,           // conductorctl: the answer is "no"; daemon: the stop had to be forced
  kUsage = 2,        // command line, configuration, port or directory
  kUnreachable = 3,  // conductorctl: no daemon there
  kDamaged = 4,      // damaged data
};

// The daemon's: everything that keeps it from starting is 2, unless the data is damaged.
inline ExitCode StartExitCode(const Error& error) {
  return error.code == ErrorCode::kDataLoss ? ExitCode::kDamaged : ExitCode::kUsage;
}

}  // namespace conductor::cli
