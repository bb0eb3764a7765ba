// What errno says about a file or directory that cannot be made: a state that passes, or not ours
// to make. (What lies in the data directory is storage/'s, and so are its errors.) Any thread.
#pragma once

#include <cerrno>

#include "src/result.h"

namespace conductor::cli {

inline ErrorCode DiskErrorCode(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return ErrorCode::kResourceExhausted;
    case EIO:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kPermissionDenied;
  }
}

}  // namespace conductor::cli
