// ConductorService: the service itself. It owns the apply thread (the only one that mutates the
// state) and the sync thread, and is the sink that streams hand their facts to.
//
// Order of effects, always: append to the log, apply to the index, publish, acknowledge.
// Life: construct, Start (rebuilds from the log on the apply thread, then starts the streams),
// serve, Stop. Every public function is thread-safe; queries take no lock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/limits.h"
#include "src/ports.h"
#include "src/service.h"
#include "src/snapshot_store.h"

namespace conductor {

enum class LogSync : std::uint8_t { kAlways, kInterval, kNever };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError };

struct ServiceOptions {
  Limits limits;
  LogSync log_sync = LogSync::kInterval;
  std::uint32_t log_sync_interval_ms = 100;
  // A snapshot after so many events of frames, or so many seconds, since the last one; 0: off.
  std::uint64_t snapshot_interval_events = 1'000'000;
  std::uint32_t snapshot_interval_s = 900;
  UnverifiedBlocks unverified_blocks = UnverifiedBlocks::kContent;
  std::string version, commit, data_dir;
  LogOpening log_opening;  // what status and metrics say of it
  // One line per state change, key=value. Never salts, never tokens. Must be thread-safe.
  std::function<void(LogLevel, const std::string&)> logger;
};

class ConductorService final : public Service, public FactSink, public DigestSource {
 public:
  // The references outlive the service.
  ConductorService(ServiceOptions options, EventLog& log, SnapshotStore& snapshots,
                   const Clock& clock);
  ~ConductorService() override;

  // Starts rebuilding and returns at once; /healthz and readiness answer from here on. When the
  // state is back, static registrations are reconciled (new ones registered, vanished ones
  // unregistered) and `streams` is started for every registration. `streams` outlives Stop().
  void Start(StreamSource& streams, std::vector<Registration> static_registrations);
  // Stops the streams, applies what they had handed over, syncs, ends the threads. Idempotent.
  void Stop();
  // What status shows; set once the front ends have bound.
  void SetPorts(std::uint16_t http_port, std::uint16_t rpc_port);
  // None while all is well; else why the service cannot go on: the log is damaged (kDataLoss), or
  // the disk did not give it back now (other codes). The daemon ends with this text.
  std::optional<Error> FatalError() const;
  // Called (from the apply thread) when there is a FatalError.
  void OnFatal(std::function<void()> callback);

  Result<QueryAnswer> Query(const PromptQuery& query) const override;
  Result<QueryAnswer> QueryByHash(const HashQuery& query) const override;
  Result<RegisterOutcome> Register(const RegistrationRequest& request) override;
  Result<std::string> Unregister(const ServiceKey& key) override;
  Result<std::vector<ServiceView>> ListServices() const override;
  Result<std::vector<ContextView>> GetGlobalView() const override;
  Readiness GetReadiness() const override;
  Result<StatusView> GetStatus() const override;
  std::vector<MetricSample> CollectMetrics() const override;
  Result<SnapshotInfo> CreateSnapshot() override;
  Result<std::vector<SnapshotInfo>> ListSnapshots() const override;
  Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t keep) override;
  Result<SnapshotInfo> CreateCheckpoint() override;
  Status RemoveCheckpoint(const std::string& path) override;
  Result<LogLines> InspectLog(Seq from, std::uint32_t count_max, StreamId stream) const override;
  Result<std::vector<std::string>> InspectBlock(std::uint64_t hash) const override;
  const Limits& limits() const override;
  // Memory that is known to be in use: of the index, and of the frames that wait for it.
  std::uint64_t AccountedBytes() const;

  bool Offer(StreamId stream, std::vector<Fact>& facts, std::size_t bytes) override;
  void OnStreamState(StreamId stream, StreamState state) override;
  std::optional<Digest> FindDigest(StreamId stream, const std::string& lora_name,
                                   const BlockName& name) const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Recomputes the state digest of [log.FirstSeq(), until] from the log alone (`verify`). `progress`
// is called now and then with the position reached. 32 hex digits.
Result<std::string> DigestOfLog(const EventLog& log, Seq until,
                                const std::function<void(Seq)>& progress);

// A record for people: one line per fact; of one stream, or (0) of all. Never salts, never tokens.
std::vector<std::string> RenderRecord(Seq seq, const Record& record, StreamId stream = 0);
// Service::InspectLog of any log.
Result<Service::LogLines> InspectRecords(const EventLog& log, Seq from, std::uint32_t count_max,
                                         StreamId stream);

}  // namespace conductor
