// Service: the one door of every front end (HTTP, gRPC). Front ends convert, call, convert.
//
// Thread-safe. Queries run on the caller's thread without a lock; registrations go through the
// apply queue and return when they are on disk. Queries answer kUnavailable / `not_ready` until the
// log is rebuilt, and again while the service drains.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/fact.h"
#include "src/limits.h"
#include "src/ports.h"
#include "src/query.h"
#include "src/registration.h"
#include "src/result.h"

namespace conductor {

struct ServiceView {
  Registration registration;
  StreamId stream = 0;
  StreamStatus status;
  std::uint64_t epoch = 0;
  std::optional<std::uint64_t> last_seq;
  std::optional<std::uint64_t> history_from;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> lost_ranges;
  std::string hash_check;  // "verified", "mismatch", "unknown"
  // Counters that are part of the state (the same after a restart), then runtime ones.
  std::vector<std::pair<std::string, std::uint64_t>> counters;
  std::uint64_t blocks_by_tier[kTierCount] = {0, 0, 0, 0};  // blocks held, per tier, from device
};

struct ContextView {
  ContextKey key;
  HashProfile hash_profile;
  std::uint64_t prefix_count = 0;
  std::map<std::string, std::set<std::uint32_t>> instances;
};

struct Readiness {
  bool ready = false;
  // "loading_snapshot", "rebuilding", "catching_up", "ready", "draining", "log_failed"
  std::string phase;
  Seq replayed = 0, total = 0;  // of the log: the position reached, and the last one
  // While the state is rebuilt: blocks read from the snapshot and block operations from the log.
  std::uint64_t blocks_done = 0;
  double blocks_per_s = 0, percent = 0;  // of this phase
  double seconds_left = -1;              // -1: not known yet
  std::uint64_t streams_waiting = 0;
};

// What was not as it was left when the log was opened at this start; its log line says more.
struct LogOpening {
  std::uint64_t missing_records = 0;  // synced once, and gone: a file was shorter than it had been
  std::uint64_t dropped_bytes = 0;    // of a torn end, which had not been synced
};

struct StatusView {
  std::string version, commit;
  std::int64_t uptime_ms = 0;
  Readiness readiness;
  Seq log_first = 0, log_last = 0, log_synced = 0;
  std::string digest;  // 32 hex digits: the state digest at log_applied
  Seq log_applied = 0;
  std::uint64_t blocks = 0, contexts = 0, registrations = 0, fragments = 0, index_bytes = 0;
  std::uint64_t max_blocks = 0, max_bytes = 0;  // the caps; 0: none
  std::uint64_t evicted_blocks = 0;             // given up to stay below them, since the start
  // The newest good snapshot; 0 and -1: none.
  Seq snapshot_seq = 0;
  std::int64_t snapshot_age_ms = -1;
  std::uint64_t snapshot_bytes = 0;
  double snapshot_percent = -1;  // of the one that is being written; -1: none is
  std::uint64_t snapshots_made = 0, snapshots_failed = 0;  // since the start
  std::string snapshot_error;                              // of the last attempt; empty: it is fine
  std::uint64_t snapshot_interval_events = 0;              // of automatic ones; 0: off
  std::uint32_t snapshot_interval_s = 0;
  std::uint64_t queue_frames = 0;
  std::string log_error;  // empty: the log takes writes
  LogOpening log_opening;
  // Static registrations that could not be made at the start, and why.
  std::vector<std::string> refused_statics;
  std::string data_dir;
  std::uint16_t http_port = 0, rpc_port = 0;
};

// A gauge or counter for /metrics: conductor_<name>{labels}. The label values are never salts.
struct MetricSample {
  std::string name, help;
  bool counter = false;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

struct RegisterOutcome {
  std::string instance_id;
  bool already = false;  // the identical configuration was registered before
};

class Service {
 public:
  virtual ~Service() = default;

  virtual Result<QueryAnswer> Query(const PromptQuery& query) const = 0;
  virtual Result<QueryAnswer> QueryByHash(const HashQuery& query) const = 0;

  virtual Result<RegisterOutcome> Register(const RegistrationRequest& request) = 0;
  // Errors: kNotFound / `not_found`. The answer is "id|tenant|rank".
  virtual Result<std::string> Unregister(const ServiceKey& key) = 0;

  virtual Result<std::vector<ServiceView>> ListServices() const = 0;
  virtual Result<std::vector<ContextView>> GetGlobalView() const = 0;
  virtual Readiness GetReadiness() const = 0;
  virtual Result<StatusView> GetStatus() const = 0;
  virtual std::vector<MetricSample> CollectMetrics() const = 0;

  // A snapshot of the state as it is now; returns when it is on disk and was read back. The log
  // below the snapshot before it is dropped. kUnavailable: the log does not take writes, or one
  // that is being written was given up.
  virtual Result<SnapshotInfo> CreateSnapshot() = 0;
  // Newest first, damaged ones too.
  virtual Result<std::vector<SnapshotInfo>> ListSnapshots() const = 0;
  // Removes all but the newest `keep` good snapshots (at least 1), and what is damaged; returns
  // those removed.
  virtual Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t keep) = 0;
  // A complete copy of log and snapshots below the data directory, for `snapshot export`, which
  // removes it when it has been copied.
  virtual Result<SnapshotInfo> CreateCheckpoint() = 0;
  virtual Status RemoveCheckpoint(const std::string& path) = 0;
  // Facts of records [from, from + count) rendered for `inspect log`, one text line each; of one
  // stream, or (0) of all. `next` is where to go on. kOutOfRange: `from` was dropped from the log.
  struct LogLines {
    std::vector<std::string> lines;
    Seq next = 0, last = 0;  // last: the newest position
  };
  virtual Result<LogLines> InspectLog(Seq from, std::uint32_t count_max,
                                      StreamId stream) const = 0;
  // Holders of a block by its 64-bit name in every context, one text line each.
  virtual Result<std::vector<std::string>> InspectBlock(std::uint64_t hash) const = 0;

  virtual const Limits& limits() const = 0;
};

}  // namespace conductor
