#include <string_view>

#include "cli/views.h"

namespace conductor::cli {

namespace {

constexpr Tier kTiers[] = {Tier::kDevice, Tier::kCpuLocal, Tier::kCpuShare, Tier::kDisk};

std::string Hex(const Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

Json ProfileJson(const HashProfile& profile) {
  return {{"strategy", ToString(profile.strategy)},
          {"algorithm", ToString(profile.algorithm)},
          {"python_hash_seed", profile.python_hash_seed},
          {"root_digest", Hex(profile.root_digest)},
          {"index_projection", IndexProjection(profile.strategy)}};
}

template <typename Number>
Json OrNull(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

// -1 means "never" or "not".
Json AgeJson(std::int64_t age_ms) {
  return age_ms >= 0 ? Json(age_ms) : Json(nullptr);
}

Json UnlessNegative(double number) {
  return number >= 0 ? Json(number) : Json(nullptr);
}

Json CountersJson(const ServiceView& view) {
  std::map<std::string, std::uint64_t> counters;
  for (const auto& [name, value] : view.counters) counters.emplace(name, value);
  for (const auto& [name, value] : view.status.counters) counters.emplace(name, value);
  Json json = Json::object();
  for (const auto& [name, value] : counters) json[name] = value;
  return json;
}

Json ContextNameJson(const ContextKey& key) {
  return {{"model_name", key.model_name},
          {"lora_name", key.lora_name},
          {"block_size", key.block_size},
          {"tenant_id", key.tenant_id}};
}

Json CountsJson(const TierCounts& counts) {
  return {{"device", counts.device},
          {"cpu_local", counts.cpu_local},
          {"cpu_share", counts.cpu_share},
          {"disk", counts.disk}};
}

Json ServiceJson(const ServiceView& view) {
  const Registration& r = view.registration;
  Json json = {{"Endpoint", r.endpoint},
               {"ReplayEndpoint", r.replay_endpoint},
               {"Type", ToString(r.type)},
               {"ModelName", r.model_name},
               {"LoraName", r.lora_name},
               {"TenantID", r.tenant_id},
               {"InstanceID", r.instance_id},
               {"BlockSize", r.block_size},
               {"DPRank", r.dp_rank},
               {"CacheGroup", r.has_cache_group ? Json(0) : Json(nullptr)},
               {"HashProfile", ProfileJson(r.hash_profile)},
               {"StreamState", ToString(view.status.state)},
               {"Epoch", view.epoch},
               {"LastSeq", OrNull(view.last_seq)},
               {"HistoryFrom", OrNull(view.history_from)},
               {"LostRanges", Json::array()},
               {"HashCheck", view.hash_check},
               {"LastFrameAgeMs", AgeJson(view.status.last_frame_age_ms)},
               {"DisconnectedForMs", AgeJson(view.status.disconnected_for_ms)},
               {"LastError", view.status.last_error},
               {"Counters", CountersJson(view)},
               {"Blocks", Json::object()},
               {"StreamID", view.stream},
               {"Topic", r.has_topic ? Json(r.topic) : Json(nullptr)},
               {"SnapshotEndpoint", r.snapshot_endpoint},
               {"PoolParts", Json::object()},
               {"StaticName", r.static_name}};
  for (const auto& [from, to] : view.lost_ranges) {
    json["LostRanges"].push_back(Json::array({from, to}));
  }
  for (int i = 0; i < kTierCount; ++i) {
    json["Blocks"][std::string(ToString(kTiers[i]))] = view.blocks_by_tier[i];
  }
  for (const auto& [part, total] : r.pool_parts) json["PoolParts"][part] = total;
  return json;
}

}  // namespace

Json ToJson(const StatusView& status) {
  const Readiness& readiness = status.readiness;
  return {{"version", status.version},
          {"commit", status.commit},
          {"uptime_ms", status.uptime_ms},
          {"ready", status.readiness.ready},
          {"phase", status.readiness.phase},
          {"replayed", status.readiness.replayed},
          {"total", status.readiness.total},
          {"streams_waiting", status.readiness.streams_waiting},
          {"log_first", status.log_first},
          {"log_last", status.log_last},
          {"log_synced", status.log_synced},
          {"log_applied", status.log_applied},
          {"digest", status.digest},
          {"blocks", status.blocks},
          {"contexts", status.contexts},
          {"registrations", status.registrations},
          {"fragments", status.fragments},
          {"index_bytes", status.index_bytes},
          {"max_blocks", status.max_blocks},
          {"max_bytes", status.max_bytes},
          {"evicted_blocks", status.evicted_blocks},
          {"queue_frames", status.queue_frames},
          {"log_error", status.log_error},
          {"refused_statics", status.refused_statics},
          {"data_dir", status.data_dir},
          {"http_port", status.http_port},
          {"rpc_port", status.rpc_port},
          {"blocks_done", readiness.blocks_done},
          {"blocks_per_s", readiness.blocks_per_s},
          {"percent", readiness.percent},
          {"seconds_left", UnlessNegative(readiness.seconds_left)},
          {"snapshot_seq", status.snapshot_seq},
          {"snapshot_age_ms", AgeJson(status.snapshot_age_ms)},
          {"snapshot_bytes", status.snapshot_bytes},
          {"snapshot_percent", UnlessNegative(status.snapshot_percent)},
          {"snapshots_made", status.snapshots_made},
          {"snapshots_failed", status.snapshots_failed},
          {"snapshot_error", status.snapshot_error},
          {"snapshot_interval_events", status.snapshot_interval_events},
          {"snapshot_interval_s", status.snapshot_interval_s},
          {"log_opening_missing_records", status.log_opening.missing_records},
          {"log_opening_dropped_bytes", status.log_opening.dropped_bytes}};
}

Json ToJson(const std::vector<ServiceView>& services) {
  Json json = {{"count", services.size()}, {"services", Json::array()}};
  for (const ServiceView& view : services) json["services"].push_back(ServiceJson(view));
  return json;
}

Json ToJson(const std::vector<ContextView>& contexts) {
  Json json = {{"context_count", contexts.size()}, {"contexts", Json::array()}};
  for (const ContextView& context : contexts) {
    Json entry = ContextNameJson(context.key);
    entry["prefix_count"] = context.prefix_count;
    entry["hash_profile"] = ProfileJson(context.hash_profile);
    entry["instances"] = Json::object();
    for (const auto& [instance, ranks] : context.instances) entry["instances"][instance] = ranks;
    json["contexts"].push_back(std::move(entry));
  }
  return json;
}

Json ToJson(const QueryAnswer& answer) {
  Json instances = Json::object();
  for (const InstanceHits& hits : answer.instances) {
    Json ranks = Json::object(), device = Json::object();
    for (const auto& [rank, counts] : hits.ranks) {
      device[std::to_string(rank)] = counts.device;
      ranks[std::to_string(rank)] = CountsJson(counts);
    }
    Json entry = {{"longest_matched", hits.best.disk}, {"dp", device}, {"rank_matches", ranks}};
    entry.update(CountsJson(hits.best));
    entry["stream_state"] = ToString(hits.stream_state);
    instances[hits.instance_id] = std::move(entry);
  }
  Json nearest = Json::array();
  for (const ContextKey& key : answer.nearest_contexts) nearest.push_back(ContextNameJson(key));
  return {{"instances", std::move(instances)},
          {"log_seq", answer.log_seq},
          {"degraded", answer.degraded},
          {"context_known", answer.context_known},
          {"hint", answer.hint},
          {"nearest_contexts", std::move(nearest)}};
}

Json ToJson(const SnapshotInfo& snapshot) {
  return {{"seq", snapshot.seq},       {"bytes", snapshot.bytes},
          {"path", snapshot.path},     {"created_unix_ms", snapshot.created_unix_ms},
          {"blocks", snapshot.blocks}, {"digest", snapshot.digest},
          {"damage", snapshot.damage}};
}

Json ToJson(const std::vector<SnapshotInfo>& snapshots) {
  Json json = {{"count", snapshots.size()}, {"snapshots", Json::array()}};
  for (const SnapshotInfo& snapshot : snapshots) json["snapshots"].push_back(ToJson(snapshot));
  return json;
}

}  // namespace conductor::cli
