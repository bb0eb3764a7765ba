// The one place where RocksDB's statuses and errno become our errors. Pure functions, any thread.
#pragma once

#include <rocksdb/status.h>

#include <string>

#include "src/result.h"

namespace conductor::storage {

// `what` says what failed, on what: "data directory /var/lib/conductor: append of record 17".
Error FromRocksDb(const rocksdb::Status& status, const std::string& what);
// Whether RocksDB only says that something failed before, in another call.
bool IsEcho(const rocksdb::Status& status);
Error FromErrno(int error_number, const std::string& what);

// What an operator can do about damage and about missing rights (docs/damage.md).
inline constexpr char kRestoreAdvice[] = "restore a checkpoint";
inline constexpr char kRightsAdvice[] =
    "start as the owner of the directory, which must be writable; who only reads needs no more "
    "than to read it";
// The error with the advice for its code at its end, unless it has it already.
Error WithAdvice(Error error);

}  // namespace conductor::storage
