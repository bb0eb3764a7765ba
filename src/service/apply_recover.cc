// How the state comes back: from snapshot and log at the start, and again when the log lost
// records; and how the log itself comes back after a failed write or sync.
#include <algorithm>
#include <map>
#include <utility>

#include "src/service/recover.h"
#include "src/service/service_impl.h"

namespace conductor {
namespace {

constexpr std::int64_t kRecoverWaitMsMin = 100;
constexpr std::int64_t kRecoverWaitMsMax = 5'000;

}  // namespace

// The state from the newest good snapshot and the log behind it. False: damaged, or stopping.
bool ConductorService::Impl::Rebuild() {
  snapshotter_.Abandon("the state is rebuilt");
  phase_.store(Phase::kRebuilding);
  progress_.Start(clock_.MonotonicMs());
  rebuild_total_.store(log_.LastSeq());
  applied_.store(0);
  SetState(new StateMachine);  // so that there is never more than one
  RecoverOptions options;
  options.progress = [this](const RecoverProgress& progress) -> Status {
    if (queue_.stopping()) return MakeError(ErrorCode::kAborted, "stopping");
    applied_.store(progress.seq, std::memory_order_release);
    const std::string line = progress_.Report(progress, clock_.MonotonicMs());
    if (!line.empty()) Log(LogLevel::kInfo, line);
    return {};
  };
  auto recovered = RecoverState(log_, snapshots_, options);
  if (!recovered) {
    if (recovered.error().code != ErrorCode::kAborted) Fatal(recovered.error());
    return false;
  }
  for (const std::string& warning : recovered->warnings) {
    Log(LogLevel::kWarn,
        "event=snapshot_unusable error=\"" + warning + "\" started_from=" +
            (recovered->snapshot_seq == 0 ? std::string("log")
                                          : "snapshot " + std::to_string(recovered->snapshot_seq)));
  }
  for (const Seq damaged : recovered->damaged) {
    if (auto status = snapshots_.SetAside(damaged); !status) {
      Log(LogLevel::kWarn, "event=snapshot_not_set_aside error=\"" + status.error().message + "\"");
    }
  }
  SetState(recovered->state.release());
  applied_.store(recovered->seq, std::memory_order_release);
  writer_.StartAt(recovered->seq);
  snapshotter_.StartAt(recovered->snapshot_seq, recovered->events);
  const std::int64_t ms = progress_.ElapsedMs(clock_.MonotonicMs());
  Log(LogLevel::kInfo, "event=rebuilt snapshot=" + std::to_string(recovered->snapshot_seq) +
                           " records=" + std::to_string(recovered->seq - recovered->snapshot_seq) +
                           " blocks=" + std::to_string(state().index().blocks()) +
                           " registrations=" + std::to_string(state().streams().size()) +
                           " ms=" + std::to_string(ms));
  phase_.store(Phase::kServing);
  return true;
}

void ConductorService::Impl::SetState(StateMachine* state) {
  MutexLock lock(catalogue_mutex_);
  retired_states_.RetireObject(state_.exchange(state));
  retired_states_.Reclaim();
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
      Log(LogLevel::kError, "event=stream_not_started " + LogName(seed.registration.Key()) +
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
// unregistered first. What the log did not take is tried again: by then it takes writes.
void ConductorService::Impl::ReconcileStatic() {
  while (!TryReconcileStatic() && !queue_.stopping() && phase_.load() == Phase::kServing) {
  }
}

bool ConductorService::Impl::TryReconcileStatic() {
  std::vector<Command> vanished, wanted;
  std::vector<std::future<Result<std::string>>> gone;
  std::map<ServiceKey, const Registration*> keys;
  for (const Registration& r : static_registrations_) keys[r.Key()] = &r;
  for (const auto& [id, facts] : state().streams()) {
    const Registration& have = facts.registration;
    auto it = keys.find(have.Key());
    const bool same = it != keys.end() && it->second->FirstDifference(have).empty();
    if (have.origin == RegistrationOrigin::kStatic ? !same : (it != keys.end() && !same)) {
      UnregisterCommand command{have.Key(), {}};
      gone.push_back(command.done.get_future());
      vanished.emplace_back(std::move(command));
    }
  }
  RunCommands(std::move(vanished));
  bool done = true;
  for (auto& outcome : gone) {
    const auto result = outcome.get();
    done = done && (result || result.error().reason != kNotReadyReason);
  }
  std::vector<std::future<Result<RegisterOutcome>>> outcomes;
  for (const Registration& r : static_registrations_) {
    RegisterCommand command{r, {}};
    outcomes.push_back(command.done.get_future());
    wanted.emplace_back(std::move(command));
  }
  RunCommands(std::move(wanted));
  std::vector<std::string> refused;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto outcome = outcomes[i].get();
    if (outcome) continue;
    done = done && outcome.error().reason != kNotReadyReason;
    const std::string name = LogName(static_registrations_[i].Key());
    Log(LogLevel::kError,
        "event=static_registration_refused " + name + " error=\"" + outcome.error().message + "\"");
    refused.push_back(name + ": " + outcome.error().message);
  }
  MutexLock lock(catalogue_mutex_);
  refused_statics_ = std::move(refused);
  return done;
}

ConductorService::Impl::Recovered ConductorService::Impl::RecoverLog(
    bool after_write, const std::function<void(const std::string& why)>& on_wait) {
  Log(LogLevel::kError, "event=log_failed error=\"" + writer_.error() +
                            "\" action=\"ingestion and registrations wait\"");
  std::int64_t wait_ms = kRecoverWaitMsMin;
  bool told = false;
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
    const std::string why = "the log cannot be written: " + writer_.error();
    if (!std::exchange(told, true) && on_wait) on_wait(why);
    RefuseInHand(why);
    snapshotter_.Refuse(why);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
    while (queue_.WaitForCommands(until)) RefuseCommands(why);
    wait_ms = std::min(wait_ms * 2, kRecoverWaitMsMax);
  }
  return Recovered::kStopping;
}

}  // namespace conductor
