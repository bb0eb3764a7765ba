// LogWriter: appends groups, keeps what is not yet known to be on disk, and recovers.
//
// Every record since the last successful sync is kept in memory (bounded; full forces a sync).
// A failed write or sync ends the log's handle. Recover() opens it again, writes the kept records
// under their own positions, syncs, and goes on; a failed sync is never retried as if it had
// worked. The apply thread writes and recovers; the sync thread calls SyncIfNeeded.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "src/limits.h"
#include "src/mutex.h"
#include "src/ports.h"
#include "src/service/conductor_service.h"

namespace conductor {

class LogWriter {
 public:
  LogWriter(EventLog& log, LogSync policy, std::size_t unsynced_bytes_max)
      : log_(log), policy_(policy), unsynced_bytes_max_(unsynced_bytes_max) {}

  // What the log held when it was rebuilt from: everything up to `seq` counts as on disk.
  void StartAt(Seq seq);

  // Appends one record, and keeps it while it may not be on disk; `bytes` is about its size.
  Result<Seq> Write(std::shared_ptr<const Record> record, std::size_t bytes);
  // The same; on disk when this returns.
  Result<Seq> WriteSynced(const Record& record);
  // Sync thread: one sync when something was appended since the last.
  void SyncIfNeeded();
  // Apply thread, at shutdown: everything on disk.
  Status SyncNow();

  enum class Recovery {
    kFailed,         // try again later
    kGoOn,           // the log is as it was; the failed record is not in it
    kRecordPresent,  // the same, but the failed record had reached the log
    kRebuild,        // records are gone that nobody has any more: rebuild the state from the log
  };
  Recovery Recover();

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::string error() const;
  Seq appended() const { return appended_.load(std::memory_order_acquire); }
  Seq synced() const { return synced_.load(std::memory_order_acquire); }
  std::uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }
  std::uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  struct Kept {
    Seq seq;
    std::shared_ptr<const Record> record;
    std::size_t bytes;
  };
  Result<Seq> Append(const Record& record, bool sync);
  void Fail(const Error& error);
  void MarkSynced(Seq seq);

  EventLog& log_;
  const LogSync policy_;
  const std::size_t unsynced_bytes_max_;
  // Invariant: synced <= appended; kept covers (synced, appended], but only the last record under
  // LogSync::kNever.
  std::atomic<Seq> appended_{0};
  std::atomic<Seq> synced_{0};
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> syncs_{0}, failures_{0};
  mutable Mutex mutex_;
  std::deque<Kept> kept_ GUARDED_BY(mutex_);
  std::size_t kept_bytes_ GUARDED_BY(mutex_) = 0;
  std::string error_ GUARDED_BY(mutex_);
};

}  // namespace conductor
