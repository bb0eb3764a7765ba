// The apply thread: append, apply, publish, acknowledge. How the state comes back, at the start
// and when the log fails, is in apply_recover.cc.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "src/service/service_impl.h"

namespace conductor {
namespace {

constexpr std::size_t kCommandsPerRecordMax = 256;
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
    if (writer_.failed()) {
      const Recovered recovered = RecoverLog(/*after_write=*/false);
      if (recovered == Recovered::kStopping) {
        for (Command& command : work.commands) Refuse(command, "the service is stopping");
        break;
      }
      // What was read from before the log lost records has a hole before it; it is asked for again.
      if (recovered == Recovered::kRebuilt) work.frames.clear();
    }
    if (!work.commands.empty()) RunCommands(std::move(work.commands));
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
  if (snapshotter_.cutting()) snapshotter_.Abandon("the service is stopping");
  if (auto status = writer_.SyncNow(); !status) {
    Log(LogLevel::kError, "event=final_sync_failed error=\"" + status.error().message + "\"");
  }
}

void ConductorService::Impl::Fatal(const std::string& message) {
  Log(LogLevel::kError, "event=fatal error=\"" + message + "\"");
  std::function<void()> callback;
  {
    MutexLock lock(fatal_mutex_);
    fatal_error_ = message;
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
  Record record;
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
    auto seq = writer_.Write(record, bytes, /*synced=*/false);
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

// --- registrations ------------------------------------------------------------------------------

// Commands that do not touch the same names share one synced record.
struct ConductorService::Impl::Batch {
  Record record;
  std::vector<RegisterCommand> registers;
  std::vector<UnregisterCommand> unregisters;
  std::set<std::string> names;
  std::map<ContextKey, HashProfile> profiles;
};

void ConductorService::Impl::Refuse(Command& command, const std::string& why) {
  std::visit([&](auto& c) { c.done.set_value(NotReady(why)); }, command);
}

void ConductorService::Impl::RefuseCommands(const std::string& why) {
  for (Command& command : queue_.TakeCommands()) Refuse(command, why);
}

void ConductorService::Impl::RunCommands(std::vector<Command> commands) {
  Batch batch;
  for (Command& command : commands) {
    std::visit([&](auto& c) { AddToBatch(batch, std::move(c)); }, command);
  }
  FlushBatch(batch);
}

void ConductorService::Impl::AddToBatch(Batch& batch, RegisterCommand command) {
  const Registration& registration = command.registration;
  const std::string key = "key " + LogName(registration.Key());
  const std::string endpoint = "endpoint " + registration.EndpointKey();
  auto profile = batch.profiles.find(registration.Context());
  if (batch.record.facts.size() >= kCommandsPerRecordMax || batch.names.count(key) != 0 ||
      batch.names.count(endpoint) != 0 ||
      (profile != batch.profiles.end() && profile->second != registration.hash_profile)) {
    FlushBatch(batch);
  }
  auto already = state().CheckRegister(registration);
  if (!already) {
    command.done.set_value(tl::unexpected(already.error()));
    return;
  }
  if (*already) {
    command.done.set_value(RegisterOutcome{registration.instance_id, true});
    return;
  }
  if (state().streams().size() + batch.registers.size() >= options_.limits.registrations_max) {
    command.done.set_value(tl::unexpected(
        Error{ErrorCode::kResourceExhausted,
              "registrations: at most " + std::to_string(options_.limits.registrations_max) +
                  " (limits.registrations_max)",
              "too_large", "", -1}));
    return;
  }
  batch.names.insert(key);
  batch.names.insert(endpoint);
  batch.profiles[registration.Context()] = registration.hash_profile;
  batch.record.facts.emplace_back(Registered{registration, options_.unverified_blocks});
  batch.registers.push_back(std::move(command));
}

void ConductorService::Impl::AddToBatch(Batch& batch, UnregisterCommand command) {
  const std::string key = "key " + LogName(command.key);
  if (batch.record.facts.size() >= kCommandsPerRecordMax || batch.names.count(key) != 0) {
    FlushBatch(batch);
  }
  const StreamFacts* facts = state().FindStream(command.key);
  if (facts == nullptr) {
    command.done.set_value(tl::unexpected(
        Error{ErrorCode::kNotFound,
              "not registered: instance '" + command.key.instance_id + "', tenant '" +
                  command.key.tenant_id + "', rank " + std::to_string(command.key.dp_rank),
              "not_found", "instance_id", -1}));
    return;
  }
  streams_->Stop(facts->id);
  batch.names.insert(key);
  batch.names.insert("endpoint " + facts->registration.EndpointKey());
  batch.record.facts.emplace_back(Unregistered{command.key});
  batch.unregisters.push_back(std::move(command));
}

void ConductorService::Impl::FlushBatch(Batch& batch) {
  if (batch.record.facts.empty()) return;
  auto seq = writer_.Write(batch.record, 0, /*synced=*/true);
  if (!seq && seq.error().code == ErrorCode::kInvalidArgument) {
    for (auto& command : batch.registers) command.done.set_value(tl::unexpected(seq.error()));
    for (auto& command : batch.unregisters) command.done.set_value(tl::unexpected(seq.error()));
    StartStreams();
    batch = Batch{};
    return;
  }
  if (!seq) {
    if (!RecoverBatch(batch, seq.error().message)) return;
    seq = writer_.appended();
  }
  Apply(batch.record, *seq);
  for (RegisterCommand& command : batch.registers) FinishRegister(command);
  for (UnregisterCommand& command : batch.unregisters) {
    Log(LogLevel::kInfo, "event=unregistered " + LogName(command.key));
    command.done.set_value(command.key.instance_id + "|" + command.key.tenant_id + "|" +
                           std::to_string(command.key.dp_rank));
  }
  batch = Batch{};
}

bool ConductorService::Impl::RecoverBatch(Batch& batch, const std::string& error) {
  bool answered = false;
  const auto refuse = [&](const std::string& why) {
    if (std::exchange(answered, true)) return;
    for (auto& command : batch.registers) command.done.set_value(NotReady(why));
    for (auto& command : batch.unregisters) command.done.set_value(NotReady(why));
  };
  const Recovered recovered = RecoverLog(/*after_write=*/true, refuse);
  if (recovered == Recovered::kPresent && !answered) return true;
  // Refused and there nevertheless: asking again finds it done.
  if (recovered == Recovered::kPresent) Apply(batch.record, writer_.appended());
  refuse("the log cannot be written: " + error);
  // New ones, and those that were to be unregistered.
  if (recovered == Recovered::kPresent || recovered == Recovered::kRetry) StartStreams();
  batch = Batch{};
  return false;
}

void ConductorService::Impl::FinishRegister(RegisterCommand& command) {
  const Registration& registration = command.registration;
  const StreamFacts* facts = state().FindStream(registration.Key());
  if (facts == nullptr) {
    command.done.set_value(MakeError(ErrorCode::kInternal, "registration vanished"));
    return;
  }
  if (auto status = streams_->Start(facts->Seed()); !status) {
    // Nothing reads this stream: take the registration back rather than keep a dead one.
    Batch undo;
    undo.record.facts.emplace_back(Unregistered{registration.Key()});
    FlushBatch(undo);
    command.done.set_value(tl::unexpected(status.error()));
    return;
  }
  Log(LogLevel::kInfo, "event=registered " + LogName(registration.Key()) +
                           " type=" + std::string(ToString(registration.type)) + " endpoint=" +
                           registration.endpoint + " model=" + registration.model_name);
  command.done.set_value(RegisterOutcome{registration.instance_id, false});
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
