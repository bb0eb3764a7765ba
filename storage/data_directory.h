// The data directory as such: that it is there, that it is a directory, that it is ours.
//
// One process may write to a data directory. The right is an exclusive flock on the file `owner`,
// held for as long as the log is open; the kernel takes it back however the process ends, so no
// stale lock can keep a restart out. The pid inside is only for the message of the one who lost,
// and may be missing.
#pragma once

#include <memory>
#include <string>

#include "src/result.h"

namespace conductor::storage {

// Makes sure that `data_dir` is a directory; creates it (not its parents) when `create` says so.
Status PrepareDataDirectory(const std::string& data_dir, bool create);

// Whether a RocksDB database is there. kDataLoss: some of its files are, but not the one that
// names the others; going on would let RocksDB delete them.
Result<bool> HasDatabase(const std::string& data_dir);

class OwnerLock {
 public:
  // kFailedPrecondition: another process (or another log of this one) has it.
  static Result<std::unique_ptr<OwnerLock>> Acquire(const std::string& data_dir);
  ~OwnerLock();
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

 private:
  explicit OwnerLock(int file) : file_(file) {}
  int file_;
};

}  // namespace conductor::storage
