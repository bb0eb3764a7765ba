#include "src/service/log_writer.h"

#include <algorithm>
#include <utility>

namespace conductor {

void LogWriter::StartAt(Seq seq) {
  MutexLock lock(mutex_);
  appended_.store(seq);
  synced_.store(seq);
  kept_.clear();
  kept_bytes_ = 0;
  error_.clear();
  failed_.store(false, std::memory_order_release);
}

std::string LogWriter::error() const {
  MutexLock lock(mutex_);
  return error_;
}

void LogWriter::Fail(const Error& error) {
  MutexLock lock(mutex_);
  if (!failed_.exchange(true, std::memory_order_acq_rel)) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    error_ = error.message;
  }
}

void LogWriter::MarkSynced(Seq seq) {
  std::deque<Kept> done;  // Freed after the lock: the apply thread may be waiting for it.
  MutexLock lock(mutex_);
  if (seq > synced_.load(std::memory_order_relaxed)) {
    synced_.store(seq, std::memory_order_release);
  }
  while (!kept_.empty() && kept_.front().seq <= seq) {
    kept_bytes_ -= kept_.front().bytes;
    done.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
}

Result<Seq> LogWriter::Append(const Record& record, bool sync) {
  if (failed()) return MakeError(ErrorCode::kUnavailable, error());
  auto seq = log_.Append(std::span(&record, 1), sync ? Durability::kSynced : Durability::kBuffered);
  if (!seq) {
    // A record that the format does not take is no fault of the log: nothing was written.
    if (seq.error().code != ErrorCode::kInvalidArgument) Fail(seq.error());
    return seq;
  }
  appended_.store(*seq, std::memory_order_release);
  if (sync) {
    syncs_.fetch_add(1, std::memory_order_relaxed);
    MarkSynced(*seq);
  }
  return seq;
}

Result<Seq> LogWriter::WriteSynced(const Record& record) {
  return Append(record, /*sync=*/true);
}

Result<Seq> LogWriter::Write(std::shared_ptr<const Record> record, std::size_t bytes) {
  const bool sync = policy_ == LogSync::kAlways;
  auto seq = Append(*record, sync);
  if (!seq || sync) return seq;
  bool full = false;
  {
    MutexLock lock(mutex_);
    if (policy_ == LogSync::kNever) {
      kept_.clear();
      kept_bytes_ = 0;
    }
    kept_.push_back({*seq, std::move(record), bytes});
    kept_bytes_ += bytes;
    full = kept_bytes_ > unsynced_bytes_max_;
  }
  // The record is in the log either way; a failure shows at the next write.
  if (full && policy_ != LogSync::kNever) static_cast<void>(SyncNow());
  return seq;
}

Status LogWriter::SyncNow() {
  if (failed()) return MakeError(ErrorCode::kUnavailable, error());
  const Seq target = appended();
  auto status = log_.Sync();
  if (!status) {
    Fail(status.error());
    return status;
  }
  syncs_.fetch_add(1, std::memory_order_relaxed);
  // A log that was reopened meanwhile may end before.
  MarkSynced(std::min(target, log_.LastSeq()));
  return {};
}

void LogWriter::SyncIfNeeded() {
  if (policy_ == LogSync::kInterval && !failed() && appended() > synced()) {
    static_cast<void>(SyncNow());
  }
}

LogWriter::Recovery LogWriter::Recover() {
  auto last = log_.Reopen();
  if (!last) {
    MutexLock lock(mutex_);
    error_ = last.error().message;
    return Recovery::kFailed;
  }
  std::deque<Kept> kept;
  {
    MutexLock lock(mutex_);
    kept = kept_;
  }
  const Seq appended = this->appended();
  for (const Kept& k : kept) {
    if (k.seq <= *last) continue;
    if (k.seq != *last + 1) return Recovery::kRebuild;
    auto seq = log_.Append(std::span(k.record.get(), 1), Durability::kBuffered);
    if (!seq || *seq != k.seq) return Recovery::kFailed;
    last = *seq;
  }
  if (*last < appended) return Recovery::kRebuild;
  if (auto status = log_.Sync(); !status) {
    MutexLock lock(mutex_);
    error_ = status.error().message;
    return Recovery::kFailed;
  }
  const bool present = *last > appended;
  appended_.store(*last, std::memory_order_release);
  MarkSynced(*last);
  {
    MutexLock lock(mutex_);
    error_.clear();
  }
  failed_.store(false, std::memory_order_release);
  return present ? Recovery::kRecordPresent : Recovery::kGoOn;
}

}  // namespace conductor
