// ConductorService::Impl: the parts that its files share. Not for anyone else.
//
// Threads: the apply thread runs ApplyLoop (apply_loop.cc) and is the only one that changes
// `state_`; the sync thread only calls LogWriter::SyncIfNeeded. Queries read the index under an
// EpochGuard. Everything else of the state is read under `catalogue_mutex_`, which the apply thread
// holds while it applies a record (never while it writes the log).
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/index/epoch.h"
#include "src/mutex.h"
#include "src/service/apply_queue.h"
#include "src/service/conductor_service.h"
#include "src/service/log_writer.h"
#include "src/service/memory_cap.h"
#include "src/service/query_counters.h"
#include "src/service/rebuild_progress.h"
#include "src/service/snapshotter.h"
#include "src/state/state_machine.h"

namespace conductor {

class ConductorService::Impl {
 public:
  Impl(ServiceOptions options, EventLog& log, SnapshotStore& snapshots, const Clock& clock);
  ~Impl();

  void Start(StreamSource& streams, std::vector<Registration> static_registrations);
  void Stop();

  // --- queries.cc -------------------------------------------------------------------------------
  Result<QueryAnswer> Query(const PromptQuery& query) const;
  Result<QueryAnswer> QueryByHash(const HashQuery& query) const;
  std::optional<Digest> FindDigest(StreamId stream, const std::string& lora_name,
                                   const BlockName& name) const;
  void OnStreamState(StreamId stream, StreamState state);
  Result<std::vector<std::string>> InspectBlock(std::uint64_t hash) const;

  // --- views.cc
  // -----------------------------------------------------------------------------------
  Result<std::vector<ServiceView>> ListServices() const;
  Result<std::vector<ContextView>> GetGlobalView() const;
  Readiness GetReadiness() const;
  Result<StatusView> GetStatus() const;
  std::vector<MetricSample> CollectMetrics() const;
  std::uint64_t AccountedBytes() const;

  // --- commands (conductor_service.cc)
  // --------------------------------------------------------------
  Result<SnapshotInfo> CreateSnapshot();
  Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t keep);
  Result<RegisterOutcome> Register(const RegistrationRequest& request);
  Result<std::string> Unregister(const ServiceKey& key);

  const ServiceOptions options_;
  EventLog& log_;
  SnapshotStore& snapshots_;
  const Clock& clock_;
  StreamSource* streams_ = nullptr;  // set by Start
  ApplyQueue queue_;
  std::atomic<std::uint16_t> http_port_{0}, rpc_port_{0};

  std::optional<Error> FatalError() const;
  void OnFatal(std::function<void()> callback);

 private:
  enum class Phase : int { kIdle, kRebuilding, kServing, kDraining, kFatal };

  // --- apply_loop.cc
  // ------------------------------------------------------------------------------
  void ApplyLoop();
  // apply_recover.cc
  bool Rebuild();
  void SetState(StateMachine* state);
  void ReconcileStatic();
  // False: the log did not take all of it.
  bool TryReconcileStatic();
  void StartStreams();
  // False: stopping.
  bool CommitFrames(std::vector<ApplyQueue::FrameItem> frames);
  bool CommitOneByOne(Record group, const std::vector<std::size_t>& ends, const std::string& why);
  // apply_cap.cc. False: stopping.
  bool StayBelowCaps();
  bool CommitEvictions(const std::shared_ptr<const Record>& record, bool* applied);
  void ReportEvictions();
  // These and what is in hand.
  void RunCommands(std::vector<Command> commands = {});
  struct Batch;
  void FlushBatch(Batch& batch);
  // The batch that could not be written, as soon as it is known what became of it. True: its record
  // is in the log after all, and those who wait for it were not answered yet.
  bool RecoverBatch(Batch& batch, const std::string& error);
  void AddToBatch(Batch& batch, RegisterCommand command);
  void AddToBatch(Batch& batch, UnregisterCommand command);
  void FinishRegister(RegisterCommand& command, Batch& undo);
  void Apply(const Record& record, Seq seq);
  enum class Recovered {
    kStopping,  // the service stops before the log takes writes again
    kRetry,     // the log is as it was; the failed record is not in it
    kPresent,   // the same, but the record whose write failed is in it: it only has to be applied
    kRebuilt,   // the log had lost records: the state is what it holds, the streams began again
  };
  // Blocks until the log takes writes again. `after_write`: a write has just failed. When that
  // takes longer than one attempt, whoever waits is answered: what is in hand, `on_wait`, which is
  // called once with the reason, and from then on every new command at once.
  Recovered RecoverLog(bool after_write,
                       const std::function<void(const std::string& why)>& on_wait = {});
  void StopStreams();
  static void Refuse(Command& command, const std::string& why);
  void RefuseCommands(const std::string& why);
  void RefuseInHand(const std::string& why);
  void Fatal(const Error& error);
  void SyncLoop();
  Snapshotter::Options SnapshotOptions();

  void Log(LogLevel level, const std::string& line) const {
    if (options_.logger) options_.logger(level, line);
  }
  Status CheckServing() const;
  const StateMachine& state() const { return *state_.load(std::memory_order_acquire); }

  std::vector<Registration> static_registrations_;
  std::vector<std::string> refused_statics_ GUARDED_BY(catalogue_mutex_);
  mutable Mutex catalogue_mutex_;
  // Replaced only when it has to be rebuilt; readers load it under an EpochGuard.
  std::atomic<StateMachine*> state_;
  RetireList retired_states_;
  LogWriter writer_;
  MemoryCap cap_;  // the apply thread's
  std::deque<Command>
      in_hand_;  // the apply thread's: taken from the queue, neither in a batch nor done
  RebuildProgress progress_;
  // Blocks given up since the start; and when that was last reported, and how many there were then.
  std::atomic<std::uint64_t> evicted_{0};
  std::int64_t evictions_reported_ms_ = 0;
  std::uint64_t evictions_reported_ = 0;
  std::atomic<Seq> applied_{0};
  std::atomic<Phase> phase_{Phase::kIdle};
  std::atomic<Seq> rebuild_total_{0};
  // Static registrations are reconciled and every stream is started: before that nobody can say
  // whether all have caught up. Release pairs with GetReadiness.
  std::atomic<bool> streams_started_{false};
  mutable std::atomic<bool> caught_up_{false};  // latched: the first catch-up of every stream ended
  std::int64_t started_ms_ = 0;
  mutable QueryCounters query_counters_;

  mutable Mutex fatal_mutex_;
  std::optional<Error> fatal_error_ GUARDED_BY(fatal_mutex_);
  std::function<void()> on_fatal_ GUARDED_BY(fatal_mutex_);

  Mutex sync_mutex_;
  CondVar sync_wake_;
  bool sync_stop_ GUARDED_BY(sync_mutex_) = false;

  Snapshotter snapshotter_;  // after all that its thread calls back into
  std::thread apply_thread_, sync_thread_;
  std::atomic<bool> stopped_{false};
};

// instance=.. tenant=.. dp_rank=.. of a log line.
std::string LogName(const ServiceKey& key);

inline constexpr const char* kNotReadyReason = "not_ready";
// Text of an error that means "ask again later".
tl::unexpected<Error> NotReady(const std::string& message);

}  // namespace conductor
