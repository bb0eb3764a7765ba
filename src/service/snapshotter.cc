#include "src/service/snapshotter.h"

#include <algorithm>
#include <utility>

#include "src/queries_first.h"

namespace conductor {
namespace {

// About a quarter of a millisecond of the apply thread.
constexpr std::size_t kBlocksPerSlice = 16'384;
// The first retry after a failure, and the longest wait between later ones.
constexpr std::int64_t kRetryMsMin = 5'000;
constexpr std::int64_t kRetryMsMax = 300'000;

tl::unexpected<Error> Refused(const std::string& why) {
  return tl::unexpected(Error{ErrorCode::kUnavailable, "snapshot: " + why, "not_ready", "", -1});
}

}  // namespace

Snapshotter::Snapshotter(SnapshotStore& store, EventLog& log, const Clock& clock, Options options)
    : store_(store), log_(log), clock_(clock), options_(std::move(options)) {}

Snapshotter::~Snapshotter() {
  Stop();
}

// --- the apply thread ----------------------------------------------------------------------------

void Snapshotter::Start() {
  const QueriesFirst of_this;
  thread_ = std::thread([this] { Loop(); });
}

void Snapshotter::StartAt(Seq snapshot, std::uint64_t events_behind) {
  last_seq_ = snapshot;
  last_ms_ = clock_.MonotonicMs();
  events_ = events_behind;
  retry_ = false;
  retry_at_ms_ = 0;
  const auto good = Good();
  MutexLock lock(mutex_);
  newest_.reset();
  if (!good) return;
  for (const SnapshotInfo& info : *good) {
    if (info.seq == snapshot) newest_ = info;
  }
}

bool Snapshotter::IsDue(Seq seq) const {
  if (requested_.load(std::memory_order_acquire)) return true;
  if (seq == last_seq_) return false;
  const std::int64_t now_ms = clock_.MonotonicMs();
  if (now_ms < retry_at_ms_) return false;
  if (retry_) return true;
  if (options_.interval_events != 0 && events_ >= options_.interval_events) return true;
  return options_.interval_s != 0 && now_ms - last_ms_ >= std::int64_t{options_.interval_s} * 1'000;
}

bool Snapshotter::AnswerFromLast(Seq seq) {
  std::vector<std::promise<Outcome>> answered;
  std::optional<SnapshotInfo> newest;
  {
    MutexLock lock(mutex_);
    if (!requested_.load(std::memory_order_relaxed)) return false;
    newest = newest_;
    if (seq != 0 && (!newest || newest->seq != seq)) return false;
    answered = std::exchange(waiting_, {});
    requested_.store(false, std::memory_order_relaxed);
  }
  for (auto& promise : answered) {
    if (newest && seq != 0) {
      promise.set_value(*newest);
    } else {
      promise.set_value(MakeError(ErrorCode::kFailedPrecondition, "snapshot: the log is empty"));
    }
  }
  return true;
}

// A failed one is tried again, later each time.
void Snapshotter::EndJob() {
  active_ = false;
  cut_.reset();
  encoder_.reset();
  MutexLock lock(mutex_);
  if (failures_in_a_row_ == 0) return;
  const int doublings = std::min(failures_in_a_row_ - 1, 6);
  retry_at_ms_ = clock_.MonotonicMs() + std::min(kRetryMsMin << doublings, kRetryMsMax);
  retry_ = true;
  last_seq_ = 0;  // as if it had not been begun
}

bool Snapshotter::Step(StateMachine& state, Seq seq) {
  if (active_ && over_.load(std::memory_order_acquire)) EndJob();
  if (!active_) {
    if (!IsDue(seq) || AnswerFromLast(seq)) return false;
    Begin(state, seq);
    return true;
  }
  if (cut_ == nullptr) return false;  // the rest is the snapshot thread's
  std::size_t waiting = 0;
  {
    MutexLock lock(mutex_);
    if (!job_) return false;
    waiting = job_->bytes;
    view_.percent = cut_->fraction() * 100;
  }
  if (waiting + encoder_->size() > options_.set_aside_bytes_max) {
    Abandon("more than " + std::to_string(options_.set_aside_bytes_max) +
            " bytes wait for the disk (limits.snapshot_set_aside_bytes_max)");
    return false;
  }
  if (waiting > options_.buffer_bytes_max) return false;  // the snapshot thread wakes us
  const bool complete = cut_->Step(kBlocksPerSlice);
  if (!cut_->status()) {
    Abandon(cut_->status().error().message);
    return false;
  }
  HandOver(complete);
  if (complete) cut_.reset();
  return !complete;
}

void Snapshotter::Begin(StateMachine& state, Seq seq) {
  last_seq_ = seq;
  last_ms_ = clock_.MonotonicMs();
  events_ = 0;
  retry_ = false;
  active_ = true;
  over_.store(false, std::memory_order_relaxed);
  encoder_ = store_.NewEncoder();
  cut_ = std::make_unique<ImageCut>(state, seq, *encoder_);
  MutexLock lock(mutex_);
  requested_.store(false, std::memory_order_relaxed);
  taking_ = std::exchange(waiting_, {});
  begun_ms_ = last_ms_;
  view_.percent = 0;
  job_ = Job{};
  job_->seq = seq;
  changed_.NotifyAll();
}

void Snapshotter::HandOver(bool complete) {
  std::string frames = encoder_->Take();
  if (frames.empty() && !complete) return;
  MutexLock lock(mutex_);
  if (!job_) return;
  job_->bytes += frames.size();
  job_->frames.push_back(std::move(frames));
  job_->complete = complete;
  changed_.NotifyAll();
}

// Also when all of it is with the snapshot thread: its position may soon belong to other records.
void Snapshotter::Abandon(const std::string& why) {
  cut_.reset();
  encoder_.reset();
  MutexLock lock(mutex_);
  if (!job_) return;
  job_->abandoned = why;
  changed_.NotifyAll();
}

void Snapshotter::Refuse(const std::string& why) {
  if (cutting()) Abandon(why);
  std::vector<std::promise<Outcome>> refused;
  {
    MutexLock lock(mutex_);
    refused = std::exchange(waiting_, {});
    requested_.store(false, std::memory_order_relaxed);
  }
  for (auto& promise : refused) promise.set_value(Refused(why));
}

// --- any thread ----------------------------------------------------------------------------------

std::future<Snapshotter::Outcome> Snapshotter::Request() {
  std::promise<Outcome> promise;
  std::future<Outcome> future = promise.get_future();
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      promise.set_value(Refused("the service is stopping"));
      return future;
    }
    waiting_.push_back(std::move(promise));
    requested_.store(true, std::memory_order_release);
  }
  options_.wake();
  return future;
}

Result<std::vector<SnapshotInfo>> Snapshotter::Good() const {
  CONDUCTOR_ASSIGN_OR_RETURN(std::vector<SnapshotInfo> list, store_.ListSnapshots());
  std::erase_if(list, [](const SnapshotInfo& info) { return !info.IsGood(); });
  return list;
}

Result<std::vector<SnapshotInfo>> Snapshotter::Prune(std::size_t keep) {
  MutexLock lock(files_mutex_);
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> list, store_.ListSnapshots());
  std::vector<SnapshotInfo> removed;
  // One that cannot be read now, or not by this release, may be all there is one day.
  const bool any_good =
      std::any_of(list.begin(), list.end(), [](const SnapshotInfo& info) { return info.IsGood(); });
  std::size_t kept = 0;
  Seq oldest = 0;
  for (const SnapshotInfo& info : list) {
    if (info.IsGood() && kept < std::max<std::size_t>(keep, 1)) {
      ++kept;
      oldest = info.seq;
      continue;
    }
    if (!any_good || (!info.IsGood() && !info.IsDamaged())) continue;
    CONDUCTOR_RETURN_IF_ERROR(store_.RemoveSnapshot(info.seq));
    removed.push_back(info);
  }
  if (oldest != 0 && kept >= kSnapshotsKept) CONDUCTOR_RETURN_IF_ERROR(log_.DropBelow(oldest + 1));
  return removed;
}

void Snapshotter::Stop() {
  std::vector<std::promise<Outcome>> refused;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    refused = std::exchange(waiting_, {});
    changed_.NotifyAll();
  }
  for (auto& promise : refused) promise.set_value(Refused("the service is stopping"));
  if (thread_.joinable()) thread_.join();
}

Snapshotter::View Snapshotter::Look() const {
  MutexLock lock(mutex_);
  View view = view_;
  if (!newest_) return view;
  view.seq = newest_->seq;
  view.bytes = newest_->bytes;
  view.age_ms = std::max<std::int64_t>(clock_.UnixMs() - newest_->created_unix_ms, 0);
  return view;
}

// --- the snapshot thread -------------------------------------------------------------------------

void Snapshotter::Loop() {
  while (true) {
    Seq seq = 0;
    {
      MutexLock lock(mutex_);
      while (!job_ && !stopping_) changed_.Wait(mutex_);
      if (!job_) return;
      seq = job_->seq;
    }
    const Outcome outcome = Write(seq);
    if (outcome) {
      if (auto status = Prune(kSnapshotsKept); !status) {
        options_.log_line(true,
                          "event=snapshot_cleanup_failed error=\"" + status.error().message + "\"");
      }
    }
    Finish(outcome);
  }
}

Snapshotter::Outcome Snapshotter::Write(Seq seq) {
  auto file = store_.CreateImage(seq);
  if (!file) return tl::unexpected(file.error());
  while (true) {
    std::string frames;
    bool last = false;
    {
      MutexLock lock(mutex_);
      while (job_->frames.empty() && job_->abandoned.empty() && !job_->complete && !stopping_) {
        changed_.Wait(mutex_);
      }
      if (!job_->abandoned.empty()) return Refused("given up: " + job_->abandoned);
      // However much is written: what is left may take longer than a stop may.
      if (stopping_) return Refused("the service is stopping");
      if (!job_->frames.empty()) {
        frames = std::move(job_->frames.front());
        job_->frames.pop_front();
        job_->bytes -= frames.size();
      }
      last = job_->complete && job_->frames.empty();
    }
    CONDUCTOR_RETURN_IF_ERROR((*file)->Append(frames));
    options_.wake();
    std::this_thread::yield();  // to the apply thread, if it waits for a processor
    if (last) break;
  }
  // It says what the log says up to there: the log must not be able to say less.
  CONDUCTOR_RETURN_IF_ERROR(options_.sync_log(seq));
  {
    // Given up before that was asked: what is on disk now are other records under those positions.
    MutexLock lock(mutex_);
    if (!job_->abandoned.empty()) return Refused("given up: " + job_->abandoned);
  }
  return (*file)->Finish();
}

void Snapshotter::Finish(const Outcome& outcome) {
  std::vector<std::promise<Outcome>> done;
  std::string line;
  {
    MutexLock lock(mutex_);
    done = std::exchange(taking_, {});
    view_.percent = -1;
    const Seq seq = job_->seq;
    job_.reset();
    if (outcome) {
      ++view_.made;
      failures_in_a_row_ = 0;
      newest_ = *outcome;
      view_.duration_ms = static_cast<std::uint64_t>(clock_.MonotonicMs() - begun_ms_);
      view_.error.clear();
      line = "event=snapshot seq=" + std::to_string(seq) +
             " blocks=" + std::to_string(outcome->blocks) +
             " bytes=" + std::to_string(outcome->bytes) +
             " ms=" + std::to_string(view_.duration_ms) +
             " log_first=" + std::to_string(log_.FirstSeq());
    } else {
      ++view_.failed;
      ++failures_in_a_row_;
      view_.error = outcome.error().message;
      line = "event=snapshot_failed seq=" + std::to_string(seq) + " error=\"" +
             outcome.error().message + "\"";
    }
    over_.store(true, std::memory_order_release);
  }
  options_.log_line(!outcome, line);
  for (auto& promise : done) promise.set_value(outcome);
  options_.wake();
}

}  // namespace conductor
