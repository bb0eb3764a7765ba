// SyncedMark: a position known to be on disk, in a file of its own.
//
// RocksDB's recovery stops at the first record it cannot read and drops the rest. That is right for
// a torn tail, which nobody was promised, and wrong for damage in the middle, behind which
// acknowledged records lie. The mark tells the two apart: it is written after each sync of the log
// and never runs ahead of it. It is not synced itself; an old mark only sees less.
//
// Read is for any thread; Advance and Reset may be called by several.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/result.h"
#include "src/types.h"

namespace conductor::storage {

class SyncedMark {
 public:
  // Nothing when the file is missing or unreadable: then nothing is known.
  static std::optional<Seq> Read(const std::string& data_dir);

  static Result<std::unique_ptr<SyncedMark>> Open(const std::string& data_dir);
  ~SyncedMark();
  SyncedMark(const SyncedMark&) = delete;
  SyncedMark& operator=(const SyncedMark&) = delete;

  // Everything up to `seq` is on disk. Errors are ignored: the older mark stays true.
  void Advance(Seq seq);
  // The log begins again after `seq`: what was behind it is given up.
  void Reset(Seq seq);

 private:
  explicit SyncedMark(int file) : file_(file) {}
  void Write(Seq seq);

  int file_;
  std::mutex mutex_;
  Seq seq_ = 0;  // guarded by mutex_
};

}  // namespace conductor::storage
