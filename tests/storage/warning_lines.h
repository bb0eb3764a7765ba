// What RocksDB warns of, a line each, from any of its threads. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace conductor::storage {

class WarningLines {
 public:
  void Add(std::string_view line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    text_ += line;
  }
  std::string text() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;  // guarded by mutex_
};

}  // namespace conductor::storage
