// MemoryEventLog: an EventLog without a disk, for tests and tools that need no durability.
//
// Honest: it passes the same contract test as the real log. It knows which records a sync has
// covered, so that a crash can take the others. Every method may be called from any thread; the
// hooks for tests decide what fails next.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "src/ports.h"

namespace conductor {

class MemoryEventLog : public EventLog {
 public:
  Result<Seq> Append(std::span<const Record> records, Durability durability) override;
  Status Sync() override;
  Result<Seq> Reopen() override;
  Status DropBelow(Seq first) override;
  Seq FirstSeq() const override;
  Seq LastSeq() const override;
  Status Read(Seq from, Seq to,
              const std::function<Status(Seq, const Record&)>& visit) const override;

  // Ends the handle as a kill (everything appended stays) or a power cut (what was not synced is
  // gone) would. Reopen brings it back.
  void CrashForTest(bool lose_unsynced);
  // The next Append, Sync or Reopen fails with `error`. `written`: the records of that Append are
  // there nevertheless, as after a failed sync.
  void FailNextAppendForTest(Error error, bool written);
  void FailNextSyncForTest(Error error);
  void FailNextReopenForTest(Error error);
  Seq SyncedSeqForTest() const;

 private:
  tl::unexpected<Error> End(Error error);
  tl::unexpected<Error> Ended() const;
  tl::unexpected<Error> Forgotten(Seq seq) const;
  Seq Last() const { return first_ + records_.size() - 1; }

  mutable std::shared_mutex mutex_;  // guards everything below
  Seq first_ = 1;
  std::vector<Record> records_;  // Invariant: the record at position first_ + i is records_[i].
  Seq synced_ = 0;               // Invariant: synced_ < first_ + records_.size().
  std::optional<Error> ended_;   // why the handle takes no more writes
  struct AppendFailure {
    Error error;
    bool written;
  };
  std::optional<AppendFailure> append_failure_;
  std::optional<Error> sync_failure_;
  std::optional<Error> reopen_failure_;
};

}  // namespace conductor
