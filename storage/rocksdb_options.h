// Every option RocksDB is opened, written and read with, explicit and in one place.
#pragma once

#include <rocksdb/options.h>

#include <memory>

namespace conductor::storage {

// `env` is borrowed; none: the default one.
rocksdb::DBOptions MakeDbOptions(rocksdb::Env* env, std::shared_ptr<rocksdb::Logger> logger);
rocksdb::ColumnFamilyOptions MakeFamilyOptions();
rocksdb::WriteOptions MakeWriteOptions(bool sync);
rocksdb::ReadOptions MakeReadOptions();

}  // namespace conductor::storage
