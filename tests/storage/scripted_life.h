// ScriptedLife: everything a daemon does to its data directory, once, on a file system that may
// fail; and what must be true afterwards, whatever failed: what was acknowledged as synced is
// there, once and in order; nothing stands behind a hole; log and snapshots reach each other. One
// thread.
#pragma once

#include <rocksdb/env.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/rocksdb_event_log.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/temp_dir.h"
#include "tests/storage/warning_lines.h"

namespace conductor::storage {

class ScriptedLife {
 public:
  // Runs until something fails, which is returned. It can be run again: it goes on from what is
  // there.
  Status Run();
  // How often the log is synced in it; like the daemon's policies.
  enum class Policy { kAlways, kInterval, kNever };
  void set_policy(Policy policy) { policy_ = policy; }

  // After an error: what the apply thread does. The log is opened again and what is not there is
  // written again.
  Status Recover();
  // The process ends; and starts again.
  void Stop();
  Status Start();

  // Checks the promise above; "" or what is broken. After a power cut more may be gone: give
  // Recover no chance before it.
  std::string Broken() const;

  FaultFs& fs() { return *fs_; }
  std::string warnings() const { return warnings_.text(); }
  std::string data_dir() const { return dir_.data_dir(); }

 private:
  Status Append(int records, bool acknowledged);
  Status Sync();
  Status Snapshot();
  Status DropOld();
  std::string BrokenLog() const;
  std::string BrokenSnapshots() const;

  TempDir dir_;
  const std::shared_ptr<FaultFs> fs_ = std::make_shared<FaultFs>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeFaultEnv(fs_);
  Policy policy_ = Policy::kAlways;
  WarningLines warnings_;
  std::unique_ptr<RocksDbEventLog> log_;
  Seq appended_ = 0;  // handed to the log; record n says n
  Seq synced_ = 0;    // acknowledged
  Seq snapshot_ = 0;  // the newest that Finish acknowledged
  Seq first_ = 1;     // the last one that DropBelow acknowledged
};

// Calls `try_at` with 0, 1, 2, ... until it says false (there is no such place) or a test has
// failed. Lives mostly wait for threads of RocksDB, so several are lived at once. Returns how many
// places there were.
int TryEverywhere(const std::function<bool(int)>& try_at);

}  // namespace conductor::storage
