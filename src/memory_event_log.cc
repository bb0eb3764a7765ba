#include "src/memory_event_log.h"

#include <algorithm>
#include <string>
#include <utility>

namespace conductor {

using ReadLock = std::shared_lock<std::shared_mutex>;
using WriteLock = std::unique_lock<std::shared_mutex>;

tl::unexpected<Error> MemoryEventLog::End(Error error) {
  ended_ = error;
  return tl::unexpected(std::move(error));
}

tl::unexpected<Error> MemoryEventLog::Ended() const {
  return MakeError(ErrorCode::kUnavailable, "memory log: ended after: " + ended_->message);
}

Result<Seq> MemoryEventLog::Append(std::span<const Record> records, Durability durability) {
  const WriteLock lock(mutex_);
  if (ended_) return Ended();
  const auto failure = std::exchange(append_failure_, std::nullopt);
  if (!failure || failure->written) {
    records_.insert(records_.end(), records.begin(), records.end());
  }
  if (failure) return End(failure->error);
  if (durability == Durability::kSynced) {
    if (auto error = std::exchange(sync_failure_, std::nullopt)) return End(*error);
    synced_ = Last();
  }
  return Last();
}

Status MemoryEventLog::Sync() {
  const WriteLock lock(mutex_);
  if (ended_) return Ended();
  if (auto error = std::exchange(sync_failure_, std::nullopt)) return End(*error);
  synced_ = Last();
  return {};
}

Result<Seq> MemoryEventLog::Reopen() {
  const WriteLock lock(mutex_);
  if (auto error = std::exchange(reopen_failure_, std::nullopt)) return End(*error);
  ended_.reset();
  synced_ = Last();  // as an opening of the log on disk writes what it recovers into tables
  return Last();
}

tl::unexpected<Error> MemoryEventLog::Forgotten(Seq seq) const {
  return MakeError(ErrorCode::kOutOfRange, "record " + std::to_string(seq) +
                                               ": the log begins at " + std::to_string(first_));
}

Status MemoryEventLog::DropBelow(Seq first) {
  const WriteLock lock(mutex_);
  if (first > synced_ + 1) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "record " + std::to_string(first) + ": not on disk yet");
  }
  if (first <= first_) return {};
  records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(first - first_));
  first_ = first;
  return {};
}

Seq MemoryEventLog::FirstSeq() const {
  const ReadLock lock(mutex_);
  return first_;
}

Seq MemoryEventLog::LastSeq() const {
  const ReadLock lock(mutex_);
  return Last();
}

Status MemoryEventLog::Read(Seq from, Seq to,
                            const std::function<Status(Seq, const Record&)>& visit) const {
  if (from == 0) {
    return MakeError(ErrorCode::kOutOfRange, "record 0: the log begins at 1");
  }
  if (from < FirstSeq()) return Forgotten(from);
  const Seq last = std::min(to, LastSeq());
  for (Seq seq = from; seq <= last; ++seq) {
    Record record;  // a copy, so that the visitor runs without the lock
    {
      const ReadLock lock(mutex_);
      if (seq > Last()) break;  // a crash took it
      if (seq < first_) return Forgotten(seq);
      record = records_[seq - first_];
    }
    CONDUCTOR_RETURN_IF_ERROR(visit(seq, record));
  }
  return {};
}

void MemoryEventLog::CrashForTest(bool lose_unsynced) {
  const WriteLock lock(mutex_);
  if (lose_unsynced) records_.resize(synced_ + 1 - first_);
  ended_ = Error{ErrorCode::kUnavailable, "memory log: crashed", "", "", -1};
}

void MemoryEventLog::FailNextAppendForTest(Error error, bool written) {
  const WriteLock lock(mutex_);
  append_failure_ = AppendFailure{std::move(error), written};
}

void MemoryEventLog::FailNextSyncForTest(Error error) {
  const WriteLock lock(mutex_);
  sync_failure_ = std::move(error);
}

void MemoryEventLog::FailNextReopenForTest(Error error) {
  const WriteLock lock(mutex_);
  reopen_failure_ = std::move(error);
}

Seq MemoryEventLog::SyncedSeqForTest() const {
  const ReadLock lock(mutex_);
  return synced_;
}

}  // namespace conductor
