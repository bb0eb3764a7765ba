#include "tests/rpc/scripted_service.h"

#include <chrono>
#include <numeric>

#include "tests/slowness.h"

namespace conductor::rpc {
namespace {

constexpr Seq kLogFirst = 5, kLogSeq = 42;
constexpr int kManyInstances = 2'000;

InstanceHits MakeInstance(std::string id, RankCounts ranks) {
  InstanceHits hits{.instance_id = std::move(id), .best = {}, .ranks = std::move(ranks)};
  for (const auto& [rank, counts] : hits.ranks) {
    hits.best.device = std::max(hits.best.device, counts.device);
    hits.best.cpu_local = std::max(hits.best.cpu_local, counts.cpu_local);
    hits.best.cpu_share = std::max(hits.best.cpu_share, counts.cpu_share);
    hits.best.disk = std::max(hits.best.disk, counts.disk);
  }
  return hits;
}

tl::unexpected<Error> NotReady() {
  return tl::unexpected(
      Error{ErrorCode::kUnavailable, "rebuilding: 7 of 100 records", "not_ready", "", -1});
}

}  // namespace

std::string ScriptedService::EchoOf(const PromptQuery& query) {
  const auto sum = std::accumulate(query.token_ids.begin(), query.token_ids.end(), std::int64_t{0});
  return "n=" + std::to_string(query.token_ids.size()) + " sum=" + std::to_string(sum) +
         " tenant=" + query.context.tenant_id + " lora=" + query.context.lora_name +
         " salt=" + query.cache_salt + " filter=" + query.options.instance_id +
         " top_k=" + std::to_string(query.options.top_k) +
         " min_tokens=" + std::to_string(query.options.min_tokens) +
         " keys=" + std::to_string(query.extra_keys.size());
}

Result<QueryAnswer> ScriptedService::AnswerOf(const std::string& model) const {
  QueryAnswer answer{.instances = {},
                     .log_seq = kLogSeq,
                     .degraded = {},
                     .context_known = true,
                     .hint = "",
                     .nearest_contexts = {}};
  if (model == "not-ready") return NotReady();
  if (model == "internal") return MakeError(ErrorCode::kInternal, "the disk is on fire");
  if (model == "bytes") {
    answer.instances.push_back(
        MakeInstance("bad\xFF"
                     "id",
                     {{0, {1, 1, 1, 1}}}));
  } else if (model == "ranks") {
    answer.instances.push_back(MakeInstance("a", {{0, {16, 32, 32, 48}}, {1, {32, 32, 32, 32}}}));
    answer.instances.push_back(MakeInstance("b", {{0, {0, 0, 0, 0}}}));
    answer.instances.back().stream_state = StreamState::kDegraded;
    answer.degraded = {"b"};
  } else if (model == "degraded") {
    for (int i = 0; i < kManyInstances; ++i) {
      answer.degraded.push_back("instance, " + std::to_string(i));
    }
  } else if (model == "empty") {
    answer.context_known = false;
    answer.hint = "no context 'empty'";
    answer.nearest_contexts.push_back({"default", "ranks", "", 16});
  }
  return answer;
}

Result<QueryAnswer> ScriptedService::Query(const PromptQuery& query) const {
  {
    std::unique_lock lock(mutex_);
    ++queries_;
    if (query.context.model_name == "block") {
      ++blocked_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return released_; });
      --blocked_;
    }
  }
  auto answer = AnswerOf(query.context.model_name);
  if (answer && query.context.model_name == "echo") {
    const auto count = static_cast<std::uint64_t>(query.token_ids.size());
    answer->instances.push_back(MakeInstance(EchoOf(query), {{0, {count, count, count, count}}}));
  }
  return answer;
}

Result<QueryAnswer> ScriptedService::QueryByHash(const HashQuery& query) const {
  auto answer = AnswerOf(query.context.model_name);
  if (answer && query.context.model_name == "echo") {
    std::uint64_t mix = 0;
    for (std::uint64_t hash : query.hashes) mix ^= hash;
    answer->instances.push_back(
        MakeInstance("xor=" + std::to_string(mix), {{0, {query.hashes.size(), 0, 0, 0}}}));
  }
  return answer;
}

Result<RegisterOutcome> ScriptedService::Register(const RegistrationRequest& request) {
  auto registration = MakeRegistration(request);
  if (!registration) return tl::unexpected(registration.error());
  std::lock_guard lock(mutex_);
  const auto found = registrations_.find(registration->Key());
  if (found != registrations_.end()) {
    const std::string field = found->second.FirstDifference(*registration);
    if (field.empty()) return RegisterOutcome{registration->instance_id, true};
    return InvalidField("invalid_registration", field, field + ": differs from the registration");
  }
  registrations_[registration->Key()] = *registration;
  return RegisterOutcome{registration->instance_id, false};
}

Result<std::string> ScriptedService::Unregister(const ServiceKey& key) {
  std::lock_guard lock(mutex_);
  const std::string name =
      key.instance_id + "|" + key.tenant_id + "|" + std::to_string(key.dp_rank);
  if (registrations_.erase(key) == 0) {
    return tl::unexpected(
        Error{ErrorCode::kNotFound, "no registration " + name, "not_found", "instance_id", -1});
  }
  return name;
}

Result<std::vector<ServiceView>> ScriptedService::ListServices() const {
  std::lock_guard lock(mutex_);
  std::vector<ServiceView> views;
  for (const auto& [key, registration] : registrations_) {
    ServiceView view;
    view.registration = registration;
    view.stream = views.size() + 1;
    view.status.state = StreamState::kDegraded;
    view.status.last_frame_age_ms = 12;
    view.status.last_error = "connection refused";
    view.status.counters = {{"frames_total", 3}};
    view.epoch = 2;
    view.last_seq = 9;
    view.lost_ranges = {{4, 6}};
    view.hash_check = "verified";
    view.counters = {{"blocks_stored_total", 5}};
    view.blocks_by_tier[0] = 5;
    views.push_back(view);
  }
  return views;
}

Result<std::vector<ContextView>> ScriptedService::GetGlobalView() const {
  std::lock_guard lock(mutex_);
  std::map<ContextKey, ContextView> contexts;
  for (const auto& [key, registration] : registrations_) {
    auto& view = contexts[registration.Context()];
    view.key = registration.Context();
    view.hash_profile = registration.hash_profile;
    view.prefix_count = 7;
    view.instances[key.instance_id].insert(key.dp_rank);
  }
  std::vector<ContextView> views;
  for (auto& [key, view] : contexts) views.push_back(std::move(view));
  return views;
}

Readiness ScriptedService::GetReadiness() const {
  return {.ready = true,
          .phase = "ready",
          .replayed = 100,
          .total = 100,
          .blocks_done = 1'000,
          .blocks_per_s = 2.5,
          .percent = 99.5,
          .seconds_left = 0.25,
          .streams_waiting = 3};
}

Result<StatusView> ScriptedService::GetStatus() const {
  StatusView view;
  view.version = "1.2.3";
  view.commit = "abc";
  view.uptime_ms = 5;
  view.readiness = GetReadiness();
  view.log_first = kLogFirst;
  view.log_last = kLogSeq;
  view.log_synced = kLogSeq - 1;
  view.digest = std::string(32, 'd');
  view.log_applied = kLogSeq;
  view.blocks = 11;
  view.contexts = 12;
  view.registrations = 13;
  view.fragments = 14;
  view.index_bytes = 15;
  view.queue_frames = 16;
  view.max_blocks = 17;
  view.max_bytes = 18;
  view.evicted_blocks = 19;
  view.snapshot_seq = 20;
  view.snapshot_age_ms = 21;
  view.snapshot_bytes = 22;
  view.snapshot_percent = 23.5;
  view.snapshots_made = 24;
  view.snapshots_failed = 25;
  view.snapshot_error = "26";
  view.snapshot_interval_events = 27;
  view.snapshot_interval_s = 28;
  view.log_opening = {29, 30};
  view.data_dir = "dir";
  view.http_port = 13'333;
  view.rpc_port = 50'052;
  return view;
}

Result<SnapshotInfo> ScriptedService::CreateSnapshot() {
  return SnapshotInfo{kLogSeq, 9, "snap", 1'234, 5, std::string(32, 'e'), ""};
}

Result<std::vector<SnapshotInfo>> ScriptedService::ListSnapshots() const {
  return std::vector<SnapshotInfo>{{1, 2, "one", 0, 0, "", "torn"}, {3, 4, "two", 0, 0}};
}

Result<std::vector<SnapshotInfo>> ScriptedService::PruneSnapshots(std::uint32_t keep) {
  return std::vector<SnapshotInfo>(keep, SnapshotInfo{keep, 0, "gone", 0, 0});
}

Result<SnapshotInfo> ScriptedService::CreateCheckpoint() {
  return SnapshotInfo{kLogSeq, 9, "checkpoint", 0, 0};
}

Status ScriptedService::RemoveCheckpoint(const std::string& path) {
  if (path == "checkpoint") return {};
  return MakeError(ErrorCode::kNotFound, path + ": no checkpoint of this store");
}

Result<Service::LogLines> ScriptedService::InspectLog(Seq from, std::uint32_t count_max,
                                                      StreamId stream) const {
  if (from < kLogFirst) return MakeError(ErrorCode::kOutOfRange, "the record was dropped");
  return LogLines{{"from " + std::to_string(from), "count " + std::to_string(count_max),
                   "stream " + std::to_string(stream)},
                  from + 2,
                  kLogSeq};
}

Result<std::vector<std::string>> ScriptedService::InspectBlock(std::uint64_t hash) const {
  return std::vector<std::string>{"block " + std::to_string(hash)};
}

void ScriptedService::Release() {
  std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

bool ScriptedService::AwaitBlocked(int count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10 * kSlowness),
                           [&] { return blocked_ >= count; });
}

int ScriptedService::queries() const {
  std::lock_guard lock(mutex_);
  return queries_;
}

}  // namespace conductor::rpc
