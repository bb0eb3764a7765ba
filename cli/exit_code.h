// What a process of ours says when it ends. Scripts rely on the numbers.
#pragma once

#include "src/result.h"

namespace conductor::cli {

enum class ExitCode : int {
  kOk = 0,
  kNo = 1,           // conductorctl: the answer is "no"; daemon: not now, or the stop was forced
  kUsage = 2,        // command line, configuration, port or directory
  kUnreachable = 3,  // conductorctl: no daemon there
  kDamaged = 4,      // damaged data
};

// The daemon's, when it could not start, or could not read its state back. A full disk and one that fails are states that pass: 1
// tells whoever supervises the daemon to start it again. The rest needs somebody to do something.
inline ExitCode FailureExitCode(const Error& error) {
  switch (error.code) {
    case ErrorCode::kDataLoss:
      return ExitCode::kDamaged;
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kUnavailable:
      return ExitCode::kNo;
    default:
      return ExitCode::kUsage;
  }
}

}  // namespace conductor::cli
