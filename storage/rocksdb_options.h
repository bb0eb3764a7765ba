// Every option RocksDB is opened, written and read with, explicit and in one place.
#pragma once

#include <rocksdb/options.h>

#include <cstddef>
#include <memory>

namespace conductor::storage {

// So many appended bytes begin a new table and a new write-ahead file (BeginTable). RocksDB's own
// limits are far behind it: what it counts is up to three times that for small records.
inline constexpr std::size_t kTableBegunBytes = 16u << 20;

// `env` is borrowed; none: the default one.
rocksdb::DBOptions MakeDbOptions(rocksdb::Env* env, std::shared_ptr<rocksdb::Logger> logger);
rocksdb::ColumnFamilyOptions MakeFamilyOptions();
rocksdb::WriteOptions MakeWriteOptions(bool sync);
rocksdb::ReadOptions MakeReadOptions();

}  // namespace conductor::storage
