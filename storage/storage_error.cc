#include "storage/storage_error.h"

#include <cerrno>
#include <system_error>

namespace conductor::storage {
namespace {

// RocksDB keeps of most errno values the text alone.
bool IsNotAllowed(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  for (const int error_number : {EACCES, EPERM, EROFS}) {
    if (text.ends_with(": " + std::generic_category().message(error_number))) return true;
  }
  return false;
}

ErrorCode CodeOf(const rocksdb::Status& status) {
  if (status.IsCorruption()) return ErrorCode::kDataLoss;
  if (status.IsNoSpace() || status.IsMemoryLimit() ||
      status.subcode() == rocksdb::Status::kSpaceLimit) {
    return ErrorCode::kResourceExhausted;
  }
  if (status.IsNotFound() || status.IsPathNotFound()) return ErrorCode::kNotFound;
  if (status.IsIOError() && IsNotAllowed(status)) return ErrorCode::kPermissionDenied;
  if (status.IsIOError() || status.IsBusy() || status.IsTimedOut() || status.IsTryAgain()) {
    return ErrorCode::kUnavailable;
  }
  if (status.IsAborted() || status.IsShutdownInProgress()) return ErrorCode::kAborted;
  if (status.IsInvalidArgument()) return ErrorCode::kFailedPrecondition;
  if (status.IsNotSupported()) return ErrorCode::kUnimplemented;
  return ErrorCode::kInternal;
}

ErrorCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return ErrorCode::kResourceExhausted;
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENAMETOOLONG:
    case ELOOP:
      return ErrorCode::kFailedPrecondition;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

Error FromRocksDb(const rocksdb::Status& status, const std::string& what) {
  return Error{CodeOf(status), what + ": " + status.ToString(), "", "", -1};
}

bool IsEcho(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return text.find("has previous error") != std::string::npos ||
         text.find("Seen error") != std::string::npos;
}

Error FromErrno(int error_number, const std::string& what) {
  return Error{CodeOf(error_number), what + ": " + std::generic_category().message(error_number),
               "", "", -1};
}

Error WithAdvice(Error error) {
  const char* advice = "";
  if (error.code == ErrorCode::kDataLoss) advice = kRestoreAdvice;
  if (error.code == ErrorCode::kPermissionDenied) advice = kRightsAdvice;
  if (error.message.find(advice) == std::string::npos) error.message += std::string("; ") + advice;
  return error;
}

}  // namespace conductor::storage
