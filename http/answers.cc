#include "http/answers.h"

#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "http/answer_writer.h"
#include "http/error_status.h"

namespace conductor::http {

namespace {

void WriteTierFields(AnswerWriter& writer, const TierCounts& counts) {
  writer.Count("device", counts.device);
  writer.Count("cpu_local", counts.cpu_local);
  writer.Count("cpu_share", counts.cpu_share);
  writer.Count("disk", counts.disk);
}

void WriteInstance(AnswerWriter& writer, const InstanceHits& hits, bool detail) {
  writer.BeginObject(detail ? 8 : 7);
  writer.Count("longest_matched", hits.best.disk);
  writer.Key("dp").BeginObject(hits.ranks.size());
  for (const auto& [rank, counts] : hits.ranks) {
    writer.NumberKey(rank).Unsigned(counts.device);
  }
  writer.EndObject();
  writer.Key("rank_matches").BeginObject(hits.ranks.size());
  for (const auto& [rank, counts] : hits.ranks) {
    writer.NumberKey(rank).BeginObject(4);
    WriteTierFields(writer, counts);
    writer.EndObject();
  }
  writer.EndObject();
  WriteTierFields(writer, hits.best);
  if (detail) writer.Key("stream_state").Text(ToString(hits.stream_state));
  writer.EndObject();
}

void WriteContextName(AnswerWriter& writer, const ContextKey& key) {
  writer.Key("model_name").Text(key.model_name);
  writer.Key("lora_name").Text(key.lora_name);
  writer.Key("block_size").Unsigned(key.block_size);
  writer.Key("tenant_id").Text(key.tenant_id);
}

std::string Hex(const Digest& digest) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const std::uint8_t byte : digest) {
    hex.push_back(kHex[byte >> 4]);
    hex.push_back(kHex[byte & 0xf]);
  }
  return hex;
}

void WriteHashProfile(AnswerWriter& writer, const HashProfile& profile) {
  writer.BeginObject(5);
  writer.Key("strategy").Text(ToString(profile.strategy));
  writer.Key("algorithm").Text(ToString(profile.algorithm));
  writer.Key("python_hash_seed").Text(profile.python_hash_seed);
  writer.Key("root_digest").Text(Hex(profile.root_digest));
  writer.Key("index_projection").Text(IndexProjection(profile.strategy));
  writer.EndObject();
}

template <typename Number>
void WriteOrNull(AnswerWriter& writer, const std::optional<Number>& number) {
  if (number) return writer.Unsigned(static_cast<std::uint64_t>(*number));
  writer.Null();
}

// -1 means "never" or "not": null to the reader.
void WriteAge(AnswerWriter& writer, std::int64_t age_ms) {
  if (age_ms >= 0) return writer.Signed(age_ms);
  writer.Null();
}

constexpr std::size_t kServiceFields = 11;
constexpr std::size_t kServiceDetailFields = 16;

void WriteServiceFields(AnswerWriter& writer, const Registration& registration) {
  writer.Key("Endpoint").Text(registration.endpoint);
  writer.Key("ReplayEndpoint").Text(registration.replay_endpoint);
  writer.Key("Type").Text(ToString(registration.type));
  writer.Key("ModelName").Text(registration.model_name);
  writer.Key("LoraName").Text(registration.lora_name);
  writer.Key("TenantID").Text(registration.tenant_id);
  writer.Key("InstanceID").Text(registration.instance_id);
  writer.Key("BlockSize").Unsigned(registration.block_size);
  writer.Key("DPRank").Unsigned(registration.dp_rank);
  writer.Key("CacheGroup");
  if (registration.has_cache_group) {
    writer.Unsigned(0);
  } else {
    writer.Null();
  }
  writer.Key("HashProfile");
  WriteHashProfile(writer, registration.hash_profile);
}

// Counters of the state first; a runtime counter of the same name would be a second key.
void WriteCounters(AnswerWriter& writer, const ServiceView& view) {
  std::map<std::string_view, std::uint64_t> counters;
  for (const auto& [name, value] : view.counters) counters.emplace(name, value);
  for (const auto& [name, value] : view.status.counters) counters.emplace(name, value);
  writer.BeginObject(counters.size());
  for (const auto& [name, value] : counters) writer.TextKey(name).Unsigned(value);
  writer.EndObject();
}

void WriteServiceDetail(AnswerWriter& writer, const ServiceView& view) {
  const Registration& registration = view.registration;
  writer.Key("StreamState").Text(ToString(view.status.state));
  writer.Key("Epoch").Unsigned(view.epoch);
  writer.Key("LastSeq");
  WriteOrNull(writer, view.last_seq);
  writer.Key("HistoryFrom");
  WriteOrNull(writer, view.history_from);
  writer.Key("LostRanges").BeginArray(view.lost_ranges.size());
  for (const auto& [from, to] : view.lost_ranges) {
    writer.BeginArray(2);
    writer.Unsigned(from);
    writer.Unsigned(to);
    writer.EndArray();
  }
  writer.EndArray();
  writer.Key("HashCheck").Text(view.hash_check);
  writer.Key("LastFrameAgeMs");
  WriteAge(writer, view.status.last_frame_age_ms);
  writer.Key("DisconnectedForMs");
  WriteAge(writer, view.status.disconnected_for_ms);
  writer.Key("LastError").Text(view.status.last_error);
  writer.Key("Counters");
  WriteCounters(writer, view);
  writer.Key("Blocks").BeginObject(kTierCount);
  for (const Tier tier : {Tier::kDevice, Tier::kCpuLocal, Tier::kCpuShare, Tier::kDisk}) {
    const auto index = static_cast<std::size_t>(tier) - static_cast<std::size_t>(Tier::kDevice);
    writer.TextKey(ToString(tier)).Unsigned(view.blocks_by_tier[index]);
  }
  writer.EndObject();
  writer.Key("StreamID").Unsigned(view.stream);
  writer.Key("Topic");
  if (registration.has_topic) {
    writer.Text(registration.topic);
  } else {
    writer.Null();
  }
  writer.Key("SnapshotEndpoint").Text(registration.snapshot_endpoint);
  writer.Key("PoolParts").BeginObject(registration.pool_parts.size());
  for (const auto& [part, total] : registration.pool_parts) writer.TextKey(part).Unsigned(total);
  writer.EndObject();
  writer.Key("StaticName").Text(registration.static_name);
}

// About how many bytes the answer takes: one allocation, and not one for every doubling.
std::size_t SizeOf(const QueryAnswer& answer) {
  constexpr std::size_t kInstanceBytes = 160, kRankBytes = 100, kRestBytes = 256;
  std::size_t bytes = kRestBytes;
  for (const InstanceHits& hits : answer.instances) {
    bytes += kInstanceBytes + hits.instance_id.size() + kRankBytes * hits.ranks.size();
  }
  return bytes;
}

}  // namespace

std::string WriteQueryAnswer(const QueryAnswer& answer, bool detail, BodyFormat format) {
  AnswerWriter writer(format, SizeOf(answer));
  const bool has_hint = detail && !answer.hint.empty();
  const bool has_nearest = detail && (has_hint || !answer.nearest_contexts.empty());
  writer.BeginObject(1 + (detail ? 1 : 0) + (has_hint ? 1 : 0) + (has_nearest ? 1 : 0));
  writer.Key("instances").BeginObject(answer.instances.size());
  for (const InstanceHits& hits : answer.instances) {
    writer.TextKey(hits.instance_id);
    WriteInstance(writer, hits, detail);
  }
  writer.EndObject();
  if (detail) writer.Key("log_seq").Unsigned(answer.log_seq);
  if (has_hint) writer.Key("hint").Text(answer.hint);
  if (has_nearest) {
    writer.Key("nearest_contexts").BeginArray(answer.nearest_contexts.size());
    for (const ContextKey& key : answer.nearest_contexts) {
      writer.BeginObject(4);
      WriteContextName(writer, key);
      writer.EndObject();
    }
    writer.EndArray();
  }
  writer.EndObject();
  return std::move(writer).Take();
}

std::string WriteRegistered(const RegisterOutcome& outcome, BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(2);
  writer.Key("status").Text("registered successfully");
  writer.Key("instance_id").Text(outcome.instance_id);
  writer.EndObject();
  return std::move(writer).Take();
}

std::string WriteUnregistered(const std::string& removed, BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(2);
  writer.Key("status").Text("unregistered successfully");
  writer.Key("removed_instances").BeginArray(1);
  writer.Text(removed);
  writer.EndArray();
  writer.EndObject();
  return std::move(writer).Take();
}

std::string WriteServices(const std::vector<ServiceView>& services, bool detail,
                          BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(2);
  writer.Key("count").Unsigned(services.size());
  writer.Key("services").BeginArray(services.size());
  for (const ServiceView& view : services) {
    writer.BeginObject(kServiceFields + (detail ? kServiceDetailFields : 0));
    WriteServiceFields(writer, view.registration);
    if (detail) WriteServiceDetail(writer, view);
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
  return std::move(writer).Take();
}

std::string WriteGlobalView(const std::vector<ContextView>& contexts, BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(2);
  writer.Key("context_count").Unsigned(contexts.size());
  writer.Key("contexts").BeginArray(contexts.size());
  for (const ContextView& context : contexts) {
    writer.BeginObject(7);
    WriteContextName(writer, context.key);
    writer.Key("prefix_count").Unsigned(context.prefix_count);
    writer.Key("hash_profile");
    WriteHashProfile(writer, context.hash_profile);
    writer.Key("instances").BeginObject(context.instances.size());
    for (const auto& [instance_id, ranks] : context.instances) {
      writer.TextKey(instance_id).BeginArray(ranks.size());
      for (const std::uint32_t rank : ranks) writer.Unsigned(rank);
      writer.EndArray();
    }
    writer.EndObject();
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
  return std::move(writer).Take();
}

namespace {

// A negative number stands for "not known".
void WriteUnlessNegative(AnswerWriter& writer, double value) {
  value < 0 ? writer.Null() : writer.Tenths(value);
}

}  // namespace

std::string WriteStatus(const StatusView& status, BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(16);
  writer.Key("ready").Bool(status.readiness.ready);
  writer.Key("phase").Text(status.readiness.phase);
  writer.Key("log_first").Unsigned(status.log_first);
  writer.Key("log_last").Unsigned(status.log_last);
  writer.Key("log_synced").Unsigned(status.log_synced);
  writer.Key("log_applied").Unsigned(status.log_applied);
  writer.Key("log_error").Text(status.log_error);
  writer.Key("digest").Text(status.digest);
  writer.Key("blocks").Unsigned(status.blocks);
  writer.Key("snapshot_seq").Unsigned(status.snapshot_seq);
  writer.Key("snapshot_age_ms");
  status.snapshot_age_ms < 0 ? writer.Null() : writer.Signed(status.snapshot_age_ms);
  writer.Key("snapshot_bytes").Unsigned(status.snapshot_bytes);
  writer.Key("snapshot_percent");
  WriteUnlessNegative(writer, status.snapshot_percent);
  writer.Key("snapshots_made").Unsigned(status.snapshots_made);
  writer.Key("snapshots_failed").Unsigned(status.snapshots_failed);
  writer.Key("snapshot_error").Text(status.snapshot_error);
  writer.Key("log_opening_missing_records").Unsigned(status.log_opening.missing_records);
  writer.Key("log_opening_dropped_bytes").Unsigned(status.log_opening.dropped_bytes);
  writer.EndObject();
  return std::move(writer).Take();
}

std::string WriteReadiness(const Readiness& readiness, BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(readiness.ready ? 5 : 11);
  writer.Key("ready").Bool(readiness.ready);
  writer.Key("phase").Text(readiness.phase);
  writer.Key("replayed").Unsigned(readiness.replayed);
  writer.Key("total").Unsigned(readiness.total);
  writer.Key("streams_waiting").Unsigned(readiness.streams_waiting);
  if (!readiness.ready) {
    writer.Key("blocks_done").Unsigned(readiness.blocks_done);
    writer.Key("blocks_per_s").Tenths(readiness.blocks_per_s);
    writer.Key("percent").Tenths(readiness.percent);
    writer.Key("seconds_left");
    WriteUnlessNegative(writer, readiness.seconds_left);
    writer.Key("error").Text("not ready: " + readiness.phase);
    writer.Key("reason").Text("not_ready");
  }
  writer.EndObject();
  return std::move(writer).Take();
}

std::string WriteHealth(BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(1);
  writer.Key("status").Text("ok");
  writer.EndObject();
  return std::move(writer).Take();
}

std::string WriteVersion(const BuildInfo& build, BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(3);
  writer.Key("version").Text(build.version);
  writer.Key("commit").Text(build.commit);
  writer.Key("formats").BeginObject(build.formats.size());
  for (const auto& [name, version] : build.formats) writer.TextKey(name).Unsigned(version);
  writer.EndObject();
  writer.EndObject();
  return std::move(writer).Take();
}

std::string WriteError(const Error& error, BodyFormat format) {
  AnswerWriter writer(format);
  writer.BeginObject(2 + (error.field.empty() ? 0 : 1) + (error.index < 0 ? 0 : 1));
  writer.Key("error").Text(error.message);
  writer.Key("reason").Text(FailureOf(error).reason);
  if (!error.field.empty()) writer.Key("field").Text(error.field);
  if (error.index >= 0) writer.Key("index").Signed(error.index);
  writer.EndObject();
  return std::move(writer).Take();
}

std::string DegradedHeader(const std::vector<std::string>& instances) {
  std::string value;
  for (const std::string& instance : instances) {
    if (!value.empty()) value += ", ";
    for (const char c : instance) {
      if (c > ' ' && c < 0x7f && c != ',' && c != '%') {
        value.push_back(c);
        continue;
      }
      char encoded[4];
      std::snprintf(encoded, sizeof encoded, "%%%02X", static_cast<unsigned char>(c));
      value += encoded;
    }
  }
  return value;
}

}  // namespace conductor::http
