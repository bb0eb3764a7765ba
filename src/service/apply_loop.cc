// The apply thread: append, apply, publish, acknowledge. Registrations are in apply_commands.cc;
// how the state comes back, at the start and when the log fails, is in apply_recover.cc.
#include <utility>

#include "src/service/service_impl.h"

namespace conductor {
namespace {

constexpr std::size_t kCleanupEntriesPerSlice = 2'048;
constexpr std::chrono::milliseconds kIdleWait{500};

StreamId StreamOf(const Fact& fact) {
  return std::visit(
      [](const auto& f) -> StreamId {
        if constexpr (requires { f.stream; }) return f.stream;
        return 0;
      },
      fact);
}

// Leaves of each frame that it was there. False: nothing was left to take out.
bool EmptyFrames(std::vector<Fact>& facts) {
  bool changed = false;
  for (Fact& fact : facts) {
    auto* frame = std::get_if<Frame>(&fact);
    if (frame == nullptr || frame->events.empty()) continue;
    frame->events.clear();
    ++frame->ignored[IgnoreReason::kUndecodableFrame];
    changed = true;
  }
  return changed;
}

}  // namespace

void ConductorService::Impl::ApplyLoop() {
  if (!Rebuild()) return;
  ReconcileStatic();
  StartStreams();
  streams_started_.store(true, std::memory_order_release);
  bool cleaning = true, evicting = false, imaging = false;
  while (true) {
    const bool busy = cleaning || evicting || imaging;
    ApplyQueue::Work work = queue_.Take(busy ? std::chrono::milliseconds(0) : kIdleWait);
    if (work.stopping && work.Empty()) break;
    for (Command& command : work.commands) in_hand_.push_back(std::move(command));
    if (writer_.failed()) {
      const Recovered recovered = RecoverLog(/*after_write=*/false);
      if (recovered == Recovered::kStopping) break;
      // What was read from before the log lost records has a hole before it; it is asked for again.
      if (recovered == Recovered::kRebuilt) work.frames.clear();
    }
    RunCommands();
    if (phase_.load() == Phase::kFatal) break;
    if (!work.frames.empty() && !CommitFrames(std::move(work.frames))) break;
    if (!StayBelowCaps()) break;
    imaging = snapshotter_.Step(*state_.load(), applied_.load());
    MutexLock lock(catalogue_mutex_);
    const bool was_cleaning =
        std::exchange(cleaning, state_.load()->CleanupSlice(kCleanupEntriesPerSlice));
    if (was_cleaning && !cleaning) cap_.LookAgain();
    evicting = cap_.IsEvicting() && !cap_.exhausted();
  }
  RefuseInHand("the service is stopping");
  if (snapshotter_.cutting()) snapshotter_.Abandon("the service is stopping");
  if (auto status = writer_.SyncNow(); !status) {
    Log(LogLevel::kError, "event=final_sync_failed error=\"" + status.error().message + "\"");
  }
}

void ConductorService::Impl::Fatal(const Error& error) {
  Log(LogLevel::kError, "event=fatal error=\"" + error.message + "\"");
  std::function<void()> callback;
  {
    MutexLock lock(fatal_mutex_);
    fatal_error_ = error;
    callback = on_fatal_;
  }
  phase_.store(Phase::kFatal);
  if (callback) callback();
}

void ConductorService::Impl::Apply(const Record& record, Seq seq) {
  MutexLock lock(catalogue_mutex_);
  state_.load(std::memory_order_relaxed)->Apply(record);
  for (const Fact& fact : record.facts) {
    if (const auto* frame = std::get_if<Frame>(&fact)) {
      snapshotter_.CountEvents(frame->events.size());
    }
  }
  applied_.store(seq, std::memory_order_release);
}

// --- frames -----------------------------------------------------------------------------------

bool ConductorService::Impl::CommitFrames(std::vector<ApplyQueue::FrameItem> frames) {
  // Shared with the writer, which keeps it until it is on disk.
  const auto group = std::make_shared<Record>();
  Record& record = *group;
  std::size_t count = 0;
  for (const ApplyQueue::FrameItem& item : frames) count += item.facts.size();
  record.facts.reserve(count);
  std::size_t bytes = 0;
  std::vector<std::size_t> ends;  // of each item's facts
  for (ApplyQueue::FrameItem& item : frames) {
    // No queued frame of an unregistered stream may resurface.
    if (state().FindStream(item.stream) == nullptr) continue;
    bytes += item.bytes;
    record.facts.insert(record.facts.end(), std::make_move_iterator(item.facts.begin()),
                        std::make_move_iterator(item.facts.end()));
    ends.push_back(record.facts.size());
  }
  if (record.facts.empty()) return true;
  while (true) {
    auto seq = writer_.Write(group, bytes);
    if (seq) {
      Apply(record, *seq);
      return true;
    }
    if (seq.error().code == ErrorCode::kInvalidArgument) {
      return CommitOneByOne(std::move(record), ends, seq.error().message);
    }
    switch (RecoverLog(/*after_write=*/true)) {
      case Recovered::kStopping:
        return false;
      case Recovered::kRebuilt:
        return true;
      case Recovered::kPresent:
        Apply(record, writer_.appended());
        return true;
      case Recovered::kRetry:
        break;
    }
  }
}

// The log's format does not take something in the group. The decoders let no such thing through;
// if one did, its frame alone is emptied and counted, so that the stream and all others go on.
bool ConductorService::Impl::CommitOneByOne(Record group, const std::vector<std::size_t>& ends,
                                            const std::string& why) {
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    std::vector<ApplyQueue::FrameItem> one(1);
    one[0].facts.assign(std::make_move_iterator(group.facts.begin() + begin),
                        std::make_move_iterator(group.facts.begin() + end));
    one[0].stream = StreamOf(one[0].facts.front());
    if (ends.size() == 1) {
      Log(LogLevel::kError, "event=frame_refused_by_log stream=" + std::to_string(one[0].stream) +
                                " error=\"" + why + "\"");
      if (!EmptyFrames(one[0].facts)) return true;
    }
    if (!CommitFrames(std::move(one))) return false;
    begin = end;
  }
  return true;
}

void ConductorService::Impl::SyncLoop() {
  MutexLock lock(sync_mutex_);
  while (!sync_stop_) {
    sync_wake_.WaitFor(sync_mutex_, std::chrono::milliseconds(options_.log_sync_interval_ms));
    if (sync_stop_) break;
    sync_mutex_.Unlock();
    const bool failed_before = writer_.failed();
    writer_.SyncIfNeeded();
    if (!failed_before && writer_.failed()) queue_.Wake();
    sync_mutex_.Lock();
  }
}

}  // namespace conductor
