#include "storage/rocksdb_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include <utility>

namespace conductor::storage {
namespace {

// The log is written in order and read in order, at start. Memory beyond the table being filled
// buys nothing.
constexpr std::size_t kWriteBufferBytes = 32u << 20;
constexpr std::uint64_t kWalBytesMax = 128u << 20;
constexpr std::size_t kBlockCacheBytes = 8u << 20;
constexpr std::size_t kBlockBytes = 32u << 10;
constexpr std::size_t kReadAheadBytes = 2u << 20;
constexpr std::uint64_t kTableBytes = 64u << 20;
constexpr int kOpenFilesMax = 256;

}  // namespace

rocksdb::DBOptions MakeDbOptions(rocksdb::Env* env, std::shared_ptr<rocksdb::Logger> logger) {
  rocksdb::DBOptions options;
  options.env = env != nullptr ? env : rocksdb::Env::Default();
  options.create_if_missing = false;
  options.create_missing_column_families = false;
  options.paranoid_checks = true;
  // A torn last record is the normal trace of a kill; what it may hide is judged in log_store.cc.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.recycle_log_file_num = 0;
  options.avoid_flush_during_recovery = false;
  // Each write() is made before Append returns, so that a kill of the process loses nothing.
  options.manual_wal_flush = false;
  options.max_total_wal_size = kWalBytesMax;
  options.wal_bytes_per_sync = 0;
  options.bytes_per_sync = 1u << 20;
  options.use_fsync = false;
  options.enable_pipelined_write = false;
  options.atomic_flush = false;
  options.max_background_jobs = 2;
  options.max_subcompactions = 1;
  // A failed write ends the handle; recovery is Reopen's business, never RocksDB's own.
  options.max_bgerror_resume_count = 0;
  options.max_open_files = kOpenFilesMax;
  options.db_host_id = "";  // no name of a machine in data that is copied around
  options.skip_stats_update_on_db_open = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log = std::move(logger);
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.keep_log_file_num = 1;
  return options;
}

rocksdb::ColumnFamilyOptions MakeFamilyOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  table.block_size = kBlockBytes;
  table.checksum = rocksdb::kCRC32c;
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = kWriteBufferBytes;
  options.max_write_buffer_number = 3;
  options.target_file_size_base = kTableBytes;
  // Names and fingerprints are random bits.
  options.compression = rocksdb::kNoCompression;
  options.bottommost_compression = rocksdb::kNoCompression;
  return options;
}

rocksdb::WriteOptions MakeWriteOptions(bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  options.disableWAL = false;
  options.no_slowdown = false;
  return options;
}

rocksdb::ReadOptions MakeReadOptions() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = kReadAheadBytes;
  return options;
}

}  // namespace conductor::storage
