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

}  // namespace conductor::storage
