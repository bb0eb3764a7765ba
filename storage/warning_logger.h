// WarningLogger: takes RocksDB's warnings and errors instead of an info log file.
//
// During recovery RocksDB says only here how many bytes of the write-ahead log it dropped and why;
// TakeDrops hands that over. Every line also goes to `on_warning`. RocksDB calls from any thread.
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace conductor::storage {

// "000012.log: dropping 117 bytes; Corruption: truncated record body", in parts.
struct WalDrop {
  std::string file;
  std::uint64_t bytes = 0;
  std::string reason;
};

class WarningLogger : public rocksdb::Logger {
 public:
  explicit WarningLogger(std::function<void(std::string_view)> on_warning)
      : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL), on_warning_(std::move(on_warning)) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;

  // What was dropped since the last call.
  std::vector<WalDrop> TakeDrops();

 private:
  const std::function<void(std::string_view)> on_warning_;
  std::mutex mutex_;
  std::vector<WalDrop> drops_;  // guarded by mutex_
};

}  // namespace conductor::storage
