// The apply thread: append, apply, publish, acknowledge. And what it does when the log fails.
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
constexpr std::int64_t kRecoverWaitMsMin = 100;
constexpr std::int64_t kRecoverWaitMsMax = 5'000;

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

std::string Name(const ServiceKey& key) {
  return "instance=" + key.instance_id + " tenant=" + key.tenant_id +
         " dp_rank=" + std::to_string(key.dp_rank);
}

}  // namespace

void ConductorService::Impl::ApplyLoop() {
  if (!Rebuild()) return;
  ReconcileStatic();
  StartStreams();
  streams_started_.store(true, std::memory_order_release);
  bool cleaning = true, evicting = false;
  while (true) {
    ApplyQueue::Work work =
        queue_.Take(cleaning || evicting ? std::chrono::milliseconds(0) : kIdleWait);
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
    if (!work.frames.empty() && !CommitFrames(std::move(work.frames))) break;
    if (!StayBelowCaps()) break;
    MutexLock lock(catalogue_mutex_);
    const bool was_cleaning =
        std::exchange(cleaning, state_.load()->CleanupSlice(kCleanupEntriesPerSlice));
    if (was_cleaning && !cleaning) cap_.LookAgain();
    evicting = cap_.IsEvicting() && !cap_.exhausted();
  }
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

// The state from the log alone. False: damaged, or stopping.
bool ConductorService::Impl::Rebuild() {
  phase_.store(Phase::kRebuilding);
  const Seq first = log_.FirstSeq(), last = log_.LastSeq();
  const std::int64_t begin_ms = clock_.MonotonicMs();
  rebuild_total_.store(last);
  applied_.store(0);
  {
    MutexLock lock(catalogue_mutex_);
    StateMachine* old = state_.exchange(new StateMachine);
    retired_states_.RetireObject(old);
    retired_states_.Reclaim();
  }
  if (first <= last) {
    if (first != 1) {
      Fatal("log: first record is " + std::to_string(first) +
            ", expected 1: the log's beginning "
            "is missing; restore the data directory from a checkpoint");
      return false;
    }
    auto status = log_.Read(first, last, [&](Seq seq, const Record& record) -> Status {
      if (queue_.stopping()) return MakeError(ErrorCode::kAborted, "stopping");
      Apply(record, seq);
      MutexLock lock(catalogue_mutex_);
      state_.load()->CleanupSlice(kCleanupEntriesPerSlice);
      return {};
    });
    if (!status) {
      if (status.error().code != ErrorCode::kAborted) Fatal(status.error().message);
      return false;
    }
  }
  writer_.StartAt(last);
  Log(LogLevel::kInfo, "event=rebuilt records=" + std::to_string(last) +
                           " blocks=" + std::to_string(state().index().blocks()) +
                           " registrations=" + std::to_string(state().streams().size()) +
                           " ms=" + std::to_string(clock_.MonotonicMs() - begin_ms));
  phase_.store(Phase::kServing);
  return true;
}

void ConductorService::Impl::Apply(const Record& record, Seq seq) {
  MutexLock lock(catalogue_mutex_);
  state_.load(std::memory_order_relaxed)->Apply(record);
  applied_.store(seq, std::memory_order_release);
}

// Every stream that is not read yet.
void ConductorService::Impl::StartStreams() {
  std::vector<StreamSeed> seeds;
  {
    MutexLock lock(catalogue_mutex_);
    for (const auto& [id, facts] : state().streams()) {
      if (!streams_->GetStatus(id)) seeds.push_back(facts.Seed());
    }
  }
  for (const StreamSeed& seed : seeds) {
    if (auto status = streams_->Start(seed); !status) {
      Log(LogLevel::kError, "event=stream_not_started " + Name(seed.registration.Key()) +
                                " error=\"" + status.error().message + "\"");
    }
  }
}

// The streams run ahead of a log that lost records: they begin again where the log ends.
void ConductorService::Impl::StopStreams() {
  std::vector<StreamId> ids;
  {
    MutexLock lock(catalogue_mutex_);
    for (const auto& [id, facts] : state().streams()) ids.push_back(id);
  }
  for (const StreamId id : ids) streams_->Stop(id);
  queue_.DiscardFrames();
}

// New static registrations are registered; ones that vanished from the file, or changed, are
// unregistered first.
void ConductorService::Impl::ReconcileStatic() {
  std::vector<Command> vanished, wanted;
  std::map<ServiceKey, const Registration*> keys;
  for (const Registration& r : static_registrations_) keys[r.Key()] = &r;
  for (const auto& [id, facts] : state().streams()) {
    const Registration& have = facts.registration;
    auto it = keys.find(have.Key());
    const bool same = it != keys.end() && it->second->FirstDifference(have).empty();
    if (have.origin == RegistrationOrigin::kStatic ? !same : (it != keys.end() && !same)) {
      vanished.emplace_back(UnregisterCommand{have.Key(), {}});
    }
  }
  RunCommands(std::move(vanished));
  std::vector<std::future<Result<RegisterOutcome>>> outcomes;
  for (const Registration& r : static_registrations_) {
    RegisterCommand command{r, {}};
    outcomes.push_back(command.done.get_future());
    wanted.emplace_back(std::move(command));
  }
  RunCommands(std::move(wanted));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto outcome = outcomes[i].get();
    if (outcome) continue;
    const std::string name = Name(static_registrations_[i].Key());
    Log(LogLevel::kError,
        "event=static_registration_refused " + name + " error=\"" + outcome.error().message + "\"");
    MutexLock lock(catalogue_mutex_);
    refused_statics_.push_back(name + ": " + outcome.error().message);
  }
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

ConductorService::Impl::Recovered ConductorService::Impl::RecoverLog(bool after_write) {
  Log(LogLevel::kError, "event=log_failed error=\"" + writer_.error() +
                            "\" action=\"ingestion and registrations wait\"");
  std::int64_t wait_ms = kRecoverWaitMsMin;
  while (!queue_.stopping()) {
    RefuseCommands("the log cannot be written: " + writer_.error());
    const LogWriter::Recovery recovery = writer_.Recover();
    if (recovery == LogWriter::Recovery::kGoOn || recovery == LogWriter::Recovery::kRecordPresent) {
      Log(LogLevel::kInfo, "event=log_recovered seq=" + std::to_string(writer_.appended()));
    }
    if (recovery == LogWriter::Recovery::kGoOn) return Recovered::kRetry;
    // Only the write that has just failed can be there; without one it must be read back.
    if (recovery == LogWriter::Recovery::kRecordPresent && after_write) return Recovered::kPresent;
    if (recovery != LogWriter::Recovery::kFailed) {
      Log(LogLevel::kError, "event=log_lost_records action=\"state is rebuilt from the log\"");
      StopStreams();
      if (!Rebuild()) return Recovered::kStopping;
      caught_up_.store(false, std::memory_order_release);
      StartStreams();
      return Recovered::kRebuilt;
    }
    queue_.WaitForStop(std::chrono::milliseconds(wait_ms));
    wait_ms = std::min(wait_ms * 2, kRecoverWaitMsMax);
  }
  return Recovered::kStopping;
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
  const std::string key = "key " + Name(registration.Key());
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
  const std::string key = "key " + Name(command.key);
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
    const std::string why = "the log cannot be written: " + seq.error().message;
    const Recovered recovered = RecoverLog(/*after_write=*/true);
    if (recovered != Recovered::kPresent) {
      for (auto& command : batch.registers) command.done.set_value(NotReady(why));
      for (auto& command : batch.unregisters) command.done.set_value(NotReady(why));
      if (recovered == Recovered::kRetry) StartStreams();  // those that were to be unregistered
      batch = Batch{};
      return;
    }
    seq = writer_.appended();
  }
  Apply(batch.record, *seq);
  for (RegisterCommand& command : batch.registers) FinishRegister(command);
  for (UnregisterCommand& command : batch.unregisters) {
    Log(LogLevel::kInfo, "event=unregistered " + Name(command.key));
    command.done.set_value(command.key.instance_id + "|" + command.key.tenant_id + "|" +
                           std::to_string(command.key.dp_rank));
  }
  batch = Batch{};
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
  Log(LogLevel::kInfo, "event=registered " + Name(registration.Key()) +
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
