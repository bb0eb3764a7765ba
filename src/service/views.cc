// What front ends list: services, contexts, readiness, status, metrics.
#include <algorithm>

#include "src/hex.h"
#include "src/resident_memory.h"
#include "src/service/service_impl.h"
#include "src/service/state_views.h"

namespace conductor {
namespace {

constexpr Tier kTiers[] = {Tier::kDevice, Tier::kCpuLocal, Tier::kCpuShare, Tier::kDisk};

}  // namespace

Result<std::vector<ServiceView>> ConductorService::Impl::ListServices() const {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  std::vector<ServiceView> views;
  {
    MutexLock lock(catalogue_mutex_);
    views = ServicesOf(state());
  }
  for (ServiceView& view : views) {
    if (auto status = streams_->GetStatus(view.stream)) {
      view.status = *status;
      if (status->state == StreamState::kLive && !view.lost_ranges.empty()) {
        view.status.state = StreamState::kDegraded;  // as StreamShared::Trust
      }
      // The state's own stands when both count the same: a name is a metric's series, there once.
      const auto known = view.counters;
      for (const auto& counter : status->counters) {
        const bool twice = std::any_of(known.begin(), known.end(), [&](const auto& other) {
          return other.first == counter.first;
        });
        if (!twice) view.counters.push_back(counter);
      }
    }
  }
  return views;
}

Result<std::vector<ContextView>> ConductorService::Impl::GetGlobalView() const {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  MutexLock lock(catalogue_mutex_);
  return ContextsOf(state());
}

Readiness ConductorService::Impl::GetReadiness() const {
  Readiness readiness;
  readiness.replayed = applied_.load(std::memory_order_acquire);
  readiness.total = rebuild_total_.load(std::memory_order_acquire);
  switch (phase_.load(std::memory_order_acquire)) {
    case Phase::kIdle:
    case Phase::kRebuilding:
      progress_.Fill(&readiness);
      return readiness;
    case Phase::kDraining:
      readiness.phase = "draining";
      return readiness;
    case Phase::kFatal:
      readiness.phase = "log_failed";
      return readiness;
    case Phase::kServing:
      break;
  }
  readiness.total = std::max(readiness.total, readiness.replayed);
  if (writer_.failed()) {
    readiness.phase = "log_failed";
    return readiness;
  }
  readiness.percent = 100;
  readiness.seconds_left = 0;
  if (!streams_started_.load(std::memory_order_acquire)) {
    readiness.phase = "catching_up";
    return readiness;
  }
  if (!caught_up_.load(std::memory_order_acquire)) {
    std::vector<StreamId> ids;
    {
      MutexLock lock(catalogue_mutex_);
      for (const auto& [id, facts] : state().streams()) ids.push_back(id);
    }
    // A stream the source does not know could not be started: it holds nobody up.
    for (StreamId id : ids) {
      const auto status = streams_->GetStatus(id);
      if (status && !status->first_catch_up_done) ++readiness.streams_waiting;
    }
    if (readiness.streams_waiting > 0) {
      readiness.phase = "catching_up";
      return readiness;
    }
    caught_up_.store(true, std::memory_order_release);
  }
  readiness.ready = true;
  readiness.phase = "ready";
  return readiness;
}

Result<StatusView> ConductorService::Impl::GetStatus() const {
  StatusView view;
  view.snapshot_interval_events = options_.snapshot_interval_events;
  view.snapshot_interval_s = options_.snapshot_interval_s;
  view.version = options_.version;
  view.commit = options_.commit;
  view.uptime_ms = clock_.MonotonicMs() - started_ms_;
  view.readiness = GetReadiness();
  view.log_first = log_.FirstSeq();
  view.log_last = log_.LastSeq();
  view.log_synced = writer_.synced();
  view.queue_frames = queue_.frames();
  view.max_blocks = options_.limits.max_blocks;
  view.max_bytes = options_.limits.max_bytes;
  view.evicted_blocks = evicted_.load(std::memory_order_relaxed);
  view.log_error = writer_.error();
  view.log_opening = options_.log_opening;
  if (const auto fatal = FatalError(); fatal && view.log_error.empty()) {
    view.log_error = fatal->message;
  }
  const Snapshotter::View snapshots = snapshotter_.Look();
  view.snapshot_seq = snapshots.seq;
  view.snapshot_age_ms = snapshots.age_ms;
  view.snapshot_bytes = snapshots.bytes;
  view.snapshot_percent = snapshots.percent;
  view.snapshots_made = snapshots.made;
  view.snapshots_failed = snapshots.failed;
  view.snapshot_error = snapshots.error;
  view.data_dir = options_.data_dir;
  view.http_port = http_port_.load();
  view.rpc_port = rpc_port_.load();
  MutexLock lock(catalogue_mutex_);
  EpochGuard guard;
  view.refused_statics = refused_statics_;
  view.log_applied = applied_.load(std::memory_order_acquire);
  view.digest = Hex128(state().Digest());
  const PrefixIndex& index = state().index();
  view.blocks = index.blocks();
  view.fragments = index.fragments();
  view.index_bytes = index.bytes();
  view.registrations = state().streams().size();
  for (ContextId id = 1; id < index.contexts().end_id(); ++id) {
    if (index.contexts().context(id).Exists()) ++view.contexts;
  }
  return view;
}

std::uint64_t ConductorService::Impl::AccountedBytes() const {
  const std::uint64_t waiting = queue_.bytes();
  MutexLock lock(catalogue_mutex_);
  return waiting + state().index().bytes();
}

std::vector<MetricSample> ConductorService::Impl::CollectMetrics() const {
  std::vector<MetricSample> samples;
  const auto add = [&](std::string name, std::string help, double value, bool counter = false) {
    samples.push_back({std::move(name), std::move(help), counter, {}, value});
  };
  const Readiness readiness = GetReadiness();
  add("ready", "1 when the service is ready", readiness.ready ? 1 : 0);
  add("log_seq", "Last log position applied", static_cast<double>(applied_.load()));
  add("log_synced_seq", "Last log position known to be on disk",
      static_cast<double>(writer_.synced()));
  add("log_syncs_total", "Successful syncs of the log", static_cast<double>(writer_.syncs()), true);
  add("log_failures_total", "Failed writes or syncs of the log",
      static_cast<double>(writer_.failures()), true);
  add("log_failed", "1 while the log takes no writes", writer_.failed() ? 1 : 0);
  add("log_opening_missing_records", "Synced records that were gone when the log was opened",
      static_cast<double>(options_.log_opening.missing_records));
  add("log_opening_dropped_bytes", "Bytes of a torn end that were dropped when the log was opened",
      static_cast<double>(options_.log_opening.dropped_bytes));
  add("log_first_seq", "Oldest log position that is kept", static_cast<double>(log_.FirstSeq()));
  const Snapshotter::View snapshots = snapshotter_.Look();
  add("snapshot_seq", "Log position of the newest good snapshot, 0: none",
      static_cast<double>(snapshots.seq));
  add("snapshot_age_ms", "Milliseconds since the newest good snapshot was made, -1: none",
      static_cast<double>(snapshots.age_ms));
  add("snapshot_bytes", "Size of the newest good snapshot", static_cast<double>(snapshots.bytes));
  add("snapshot_duration_ms", "Milliseconds that the last snapshot took",
      static_cast<double>(snapshots.duration_ms));
  add("snapshots_total", "Snapshots made", static_cast<double>(snapshots.made), true);
  add("snapshot_failures_total", "Snapshots that failed or were given up",
      static_cast<double>(snapshots.failed), true);
  add("queue_commands", "Registrations and unregistrations that wait for the apply thread",
      static_cast<double>(queue_.commands()));
  add("queue_frames", "Frames that wait for the apply thread",
      static_cast<double>(queue_.frames()));
  add("resident_bytes", "Memory of the process that is resident",
      static_cast<double>(ResidentBytes()));
  const QueryCounters::Counts queries = query_counters_.Sum();
  add("queries_total", "Queries answered", static_cast<double>(queries.queries), true);
  add("query_tokens_total", "Prompt tokens asked for", static_cast<double>(queries.asked_tokens),
      true);
  add("query_matched_tokens_total", "Tokens of the best instance's match",
      static_cast<double>(queries.matched_tokens), true);
  add("max_blocks", "limits.max_blocks: the cap on blocks, 0: none",
      static_cast<double>(options_.limits.max_blocks));
  add("max_bytes", "limits.max_bytes: the cap on index_bytes, 0: none",
      static_cast<double>(options_.limits.max_bytes));
  add("evicted_blocks_total", "Blocks given up to stay below a cap",
      static_cast<double>(evicted_.load(std::memory_order_relaxed)), true);
  auto services = ListServices();
  if (!services) return samples;
  {
    MutexLock lock(catalogue_mutex_);
    EpochGuard guard;
    const PrefixIndex& index = state().index();
    add("blocks", "Distinct blocks with at least one holder", static_cast<double>(index.blocks()));
    add("fragments", "Blocks known by name only (orphans among them)",
        static_cast<double>(index.fragments()));
    add("index_bytes", "Memory of the index", static_cast<double>(index.bytes()));
    add("index_entries", "Entries in memory, placeholders included",
        static_cast<double>(index.entries_in_memory()));
    add("holder_sets", "Distinct sets of holders",
        static_cast<double>(index.holders().set_count()));
  }
  add("registrations", "Registered publishers", static_cast<double>(services->size()));
  for (const ServiceView& view : *services) {
    const std::vector<std::pair<std::string, std::string>> labels = {
        {"instance", view.registration.instance_id},
        {"tenant", view.registration.tenant_id},
        {"dp_rank", std::to_string(view.registration.dp_rank)}};
    const auto add_stream = [&](const std::string& name, std::string help, double value,
                                bool counter) {
      samples.push_back({"stream_" + name, std::move(help), counter, labels, value});
    };
    for (StreamState s : {StreamState::kConnecting, StreamState::kCatchingUp, StreamState::kLive,
                          StreamState::kDegraded}) {
      auto with_state = labels;
      with_state.emplace_back("state", ToString(s));
      samples.push_back({"stream_state", "1 for the state the stream is in", false, with_state,
                         view.status.state == s ? 1.0 : 0.0});
    }
    add_stream("last_frame_age_ms", "Milliseconds since the last frame, -1: never",
               static_cast<double>(view.status.last_frame_age_ms), false);
    add_stream("lost_ranges", "Ranges of numbers that are lost",
               static_cast<double>(view.lost_ranges.size()), false);
    add_stream("hash_mismatch", "1 when the engine's hashes are not those of its profile",
               view.hash_check == "mismatch" ? 1 : 0, false);
    for (const auto& [name, value] : view.counters) {
      add_stream(name, "Of this stream: " + name, static_cast<double>(value), true);
    }
    for (Tier tier : kTiers) {
      auto with_tier = labels;
      with_tier.emplace_back("tier", ToString(tier));
      samples.push_back({"stream_blocks", "Blocks held", false, with_tier,
                         static_cast<double>(view.blocks_by_tier[static_cast<int>(tier) - 1])});
    }
  }
  return samples;
}

}  // namespace conductor
