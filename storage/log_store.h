// LogStore: an open RocksDB database that was found to be a Conductor log of a known format.
//
// Opening for writing looks before it touches: a first, read-only opening judges what is there
// (format, damage), so that a refusal leaves every byte as it was found. Not thread-safe to open;
// an open store's members are RocksDB's and as thread-safe as they are.
#pragma once

#include <rocksdb/db.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"
#include "src/types.h"
#include "storage/recovery_report.h"

namespace conductor::storage {

struct LogStoreOptions {
  std::string data_dir;
  bool create_if_missing = true;
  bool read_only = false;
  rocksdb::Env* env = nullptr;  // borrowed; none: the default one
  std::function<void(std::string_view)> on_warning = nullptr;
};

struct LogStore {
  ~LogStore();

  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;  // owned by this, freed before db
  rocksdb::ColumnFamilyHandle* log = nullptr;
  rocksdb::ColumnFamilyHandle* meta = nullptr;
  RecoveryReport report;  // report.first and .last: the positions found
};

// kNotFound: no log is there. kFailedPrecondition: another database, or a newer format.
// kDataLoss: damage.
Result<std::unique_ptr<LogStore>> OpenLogStore(const LogStoreOptions& options);

}  // namespace conductor::storage
