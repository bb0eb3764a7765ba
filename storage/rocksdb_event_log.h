// RocksDbEventLog: the log on disk (docs/log_format.md), its snapshots (docs/snapshot_format.md)
// and its checkpoints. docs/damage.md says what opening does about each kind of damage.
//
// One process owns a data directory at a time; others may open it read-only meanwhile and see what
// had been written when they opened it. Append returns when the bytes were handed to the kernel (a
// kill of the process loses nothing), Sync when they are on disk (a power cut loses nothing).
//
// One thread appends and reopens; everything else is for any thread. Read's
// visitor must not call Reopen. After an error of Append or Sync only Reopen brings the log back;
// the one exception is kInvalidArgument (a record the format cannot hold): nothing was touched.
//
//   auto log = RocksDbEventLog::Open({.data_dir = "/var/lib/conductor"});
//   if (!log) return Fail(log.error());
//   Print(ToLine((*log)->GetRecoveryReport()));
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/ports.h"
#include "src/snapshot_store.h"
#include "storage/recovery_report.h"
#include "storage/snapshot_files.h"

namespace rocksdb {
class Env;
class Status;
}  // namespace rocksdb

namespace conductor::storage {

struct LogStore;
struct LogStoreOptions;
class OwnerLock;
class SyncedMark;
class WalSyncFs;

struct RocksDbEventLogOptions {
  std::string data_dir = {};
  bool create_if_missing = true;  // the directory itself too, but not its parents
  bool read_only = false;         // needs no lock and leaves no trace
  // With read_only: takes the lock nevertheless, so that snapshots and checkpoints can be removed.
  // Nothing else is written (but for the pid in the lock file), which is what a full disk allows.
  bool may_remove = false;
  // Where RocksDB's files go; borrowed, must outlive the log. None: the default one.
  rocksdb::Env* env = nullptr;
  // RocksDB's warnings and errors, a line each, from any thread. None: dropped.
  std::function<void(std::string_view)> on_warning = nullptr;
};

class RocksDbEventLog : public EventLog, public SnapshotStore {
 public:
  using Options = RocksDbEventLogOptions;

  // kFailedPrecondition: in use, no directory, another database, a newer format. kNotFound: no log
  // and not to be created. kPermissionDenied: not writable. kDataLoss: damaged.
  static Result<std::unique_ptr<RocksDbEventLog>> Open(Options options);
  ~RocksDbEventLog() override;

  Result<Seq> Append(std::span<const Record> records, Durability durability) override;
  Status Sync() override;
  Result<Seq> Reopen() override;
  Seq FirstSeq() const override { return first_.load(std::memory_order_acquire); }
  Seq LastSeq() const override { return last_.load(std::memory_order_acquire); }
  Status Read(Seq from, Seq to,
              const std::function<Status(Seq, const Record&)>& visit) const override;

  // kInvalidArgument: records before `first` are not on disk yet.
  Status DropBelow(Seq first) override;

  std::unique_ptr<ImageEncoder> NewEncoder() const override;
  // The file borrows the log. Its Finish is kFailedPrecondition while the log itself is not on disk
  // up to `seq`: behind a power cut the same positions would be given to other records.
  Result<std::unique_ptr<ImageFile>> CreateImage(Seq seq) override;
  Result<std::vector<SnapshotInfo>> ListSnapshots() const override;
  Status ReadSnapshot(Seq seq, ImageVisitor& visitor) const override;
  Status RemoveSnapshot(Seq seq) override;
  Status SetAside(Seq seq) override;

  Result<SnapshotInfo> CreateCheckpoint() override;
  Result<std::vector<SnapshotInfo>> ListCheckpoints() const override;
  Status RemoveCheckpoint(const std::string& path) override;
  Result<std::vector<SnapshotInfo>> RemoveOldCheckpoints() override;

  // What the last Open or Reopen found.
  RecoveryReport GetRecoveryReport() const;
  const std::string& data_dir() const { return options_.data_dir; }

 private:
  explicit RocksDbEventLog(Options options);
  LogStoreOptions StoreOptions() const;
  Status OpenStore();
  Status GoOnBehind(const std::vector<SnapshotInfo>& snapshots);
  void GiveBackSpace();
  Status SyncFiles();
  rocksdb::Status StoppedBy() const;
  void NoteSynced(Seq seq);
  void Warn(const std::string& line) const;
  Status CheckWritable() const;
  Status CheckMayRemove() const;
  Status RemoveLeftovers();
  tl::unexpected<Error> End(const rocksdb::Status& status, const std::string& what);
  tl::unexpected<Error> End(Error error, bool echo = false);
  tl::unexpected<Error> EndOfAppend(const rocksdb::Status& status, const std::string& what);
  tl::unexpected<Error> Forgotten(Seq seq) const;
  std::string Named() const { return "data directory " + options_.data_dir; }

  const Options options_;
  rocksdb::Env* const base_env_;
  const std::shared_ptr<WalSyncFs> wal_syncs_;
  const std::unique_ptr<rocksdb::Env> env_;  // base_env_ with wal_syncs_; outlives store_
  SnapshotFiles snapshots_;
  std::unique_ptr<OwnerLock> owner_;
  std::unique_ptr<SyncedMark> synced_mark_;

  // Held shared by whoever uses store_, exclusively by Reopen, which replaces it.
  mutable std::shared_mutex store_mutex_;
  std::unique_ptr<LogStore> store_;  // none after a failed Reopen

  // Written by the appending thread after the records are there (release), read by any (acquire).
  std::atomic<Seq> first_{1};
  std::atomic<Seq> last_{0};
  std::atomic<Seq> synced_{0};  // written by who synced, read by who drops. Invariant: <= last_.

  // Held while files are synced, and while RocksDB is told to begin the next write-ahead file.
  // Taken after store_mutex_.
  std::mutex sync_mutex_;
  // Held while something is written, so that who syncs knows whether that failed. Taken after
  // sync_mutex_.
  std::mutex write_mutex_;

  // Why the handle takes no more writes. An echo of another call's failure gives way to its cause.
  mutable std::mutex ended_mutex_;
  std::optional<Error> ended_;  // guarded by ended_mutex_
  bool ended_is_echo_ = false;  // guarded by ended_mutex_

  // What is kept changes here: dropping, removing snapshots, copying all of it. One at a time,
  // taken before store_mutex_.
  std::mutex retention_mutex_;
};

}  // namespace conductor::storage
