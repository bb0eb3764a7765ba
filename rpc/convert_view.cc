#include <utility>

#include "rpc/convert.h"

namespace conductor::rpc {
namespace {

std::string ToHex(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (std::uint8_t byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool ParseHex(const std::string& text, Digest* digest) {
  if (text.size() != 2 * digest->size()) return false;
  for (std::size_t i = 0; i < digest->size(); ++i) {
    const int high = HexValue(text[2 * i]);
    const int low = HexValue(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*digest)[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

void FillProfile(const HashProfile& profile, v1::HashProfile* out) {
  out->set_strategy(std::string(ToString(profile.strategy)));
  out->set_algorithm(std::string(ToString(profile.algorithm)));
  out->set_python_hash_seed(profile.python_hash_seed);
  out->set_root_digest(ToHex(profile.root_digest));
  out->set_index_projection(std::string(IndexProjection(profile.strategy)));
}

// The daemon's answer is data of another process, possibly a newer one: a word that this client
// does not know is an error, not a guess.
tl::unexpected<Error> UnknownWord(const std::string& field, const std::string& word) {
  return MakeError(ErrorCode::kInternal,
                   field + ": the server sent '" + word + "', which this client does not know");
}

Result<HashProfile> ToProfile(const v1::HashProfile& in) {
  HashProfile profile;
  bool known = false;
  for (auto s : {HashStrategy::kVllmV1, HashStrategy::kSglang, HashStrategy::kSglangBigram}) {
    if (in.strategy() == ToString(s)) profile.strategy = s, known = true;
  }
  if (!known) return UnknownWord("strategy", in.strategy());
  known = false;
  for (auto a : {HashAlgorithm::kSha256, HashAlgorithm::kSha256Cbor, HashAlgorithm::kSha256Raw}) {
    if (in.algorithm() == ToString(a)) profile.algorithm = a, known = true;
  }
  if (!known) return UnknownWord("algorithm", in.algorithm());
  profile.python_hash_seed = in.python_hash_seed();
  if (!ParseHex(in.root_digest(), &profile.root_digest)) {
    return UnknownWord("root_digest", in.root_digest());
  }
  return profile;
}

using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

void FillCounters(const Counters& counters, google::protobuf::RepeatedPtrField<v1::Counter>* out) {
  for (const auto& [name, value] : counters) {
    auto* counter = out->Add();
    counter->set_name(name);
    counter->set_value(value);
  }
}

Counters ToCounters(const google::protobuf::RepeatedPtrField<v1::Counter>& in) {
  Counters counters;
  for (const auto& counter : in) counters.emplace_back(counter.name(), counter.value());
  return counters;
}

void FillRegistration(const Registration& in, v1::ServiceInfo* info) {
  info->set_endpoint(in.endpoint);
  info->set_replay_endpoint(in.replay_endpoint);
  info->set_type(std::string(ToString(in.type)));
  info->set_model_name(WireText(in.model_name));
  info->set_lora_name(WireText(in.lora_name));
  info->set_tenant_id(WireText(in.tenant_id));
  info->set_instance_id(WireText(in.instance_id));
  info->set_block_size(in.block_size);
  info->set_dp_rank(in.dp_rank);
  if (in.has_cache_group) info->set_cache_group(0);
  FillProfile(in.hash_profile, info->mutable_hash_profile());
  info->set_snapshot_endpoint(in.snapshot_endpoint);
  if (in.has_topic) info->set_topic(WireText(in.topic));
  info->mutable_pool_parts()->insert(in.pool_parts.begin(), in.pool_parts.end());
  info->set_is_static(in.origin == RegistrationOrigin::kStatic);
  info->set_static_name(WireText(in.static_name));
}

Result<Registration> ToRegistration(const v1::ServiceInfo& info) {
  const auto type = ParsePublisherType(info.type());
  if (!type) return UnknownWord("type", info.type());
  auto profile = ToProfile(info.hash_profile());
  if (!profile) return tl::unexpected(profile.error());
  Registration out;
  out.endpoint = info.endpoint();
  out.replay_endpoint = info.replay_endpoint();
  out.type = *type;
  out.model_name = info.model_name();
  out.lora_name = info.lora_name();
  out.tenant_id = info.tenant_id();
  out.instance_id = info.instance_id();
  out.block_size = info.block_size();
  out.dp_rank = info.dp_rank();
  out.has_cache_group = info.has_cache_group();
  out.hash_profile = *std::move(profile);
  out.snapshot_endpoint = info.snapshot_endpoint();
  out.has_topic = info.has_topic();
  out.topic = info.topic();
  out.pool_parts.insert(info.pool_parts().begin(), info.pool_parts().end());
  out.origin = info.is_static() ? RegistrationOrigin::kStatic : RegistrationOrigin::kDynamic;
  out.static_name = info.static_name();
  return out;
}

}  // namespace

StreamState ParseStreamState(std::string_view text) {
  for (auto state : {StreamState::kConnecting, StreamState::kCatchingUp, StreamState::kLive}) {
    if (text == ToString(state)) return state;
  }
  return StreamState::kDegraded;
}

void FillServiceInfo(const ServiceView& view, v1::ServiceInfo* info) {
  FillRegistration(view.registration, info);
  info->set_stream_id(view.stream);
  info->set_stream_state(std::string(ToString(view.status.state)));
  info->set_epoch(view.epoch);
  if (view.last_seq) info->set_last_seq(*view.last_seq);
  if (view.history_from) info->set_history_from(*view.history_from);
  for (const auto& [from, to] : view.lost_ranges) {
    auto* range = info->add_lost_ranges();
    range->set_from(from);
    range->set_to(to);
  }
  info->set_hash_check(view.hash_check);
  info->set_last_frame_age_ms(view.status.last_frame_age_ms);
  info->set_disconnected_for_ms(view.status.disconnected_for_ms);
  info->set_last_error(WireText(view.status.last_error));
  info->set_first_catch_up_done(view.status.first_catch_up_done);
  FillCounters(view.counters, info->mutable_counters());
  FillCounters(view.status.counters, info->mutable_stream_counters());
  for (std::uint64_t blocks : view.blocks_by_tier) info->add_blocks_by_tier(blocks);
}

Result<ServiceView> ToServiceView(const v1::ServiceInfo& info) {
  auto registration = ToRegistration(info);
  if (!registration) return tl::unexpected(registration.error());
  ServiceView view;
  view.registration = *std::move(registration);
  view.stream = info.stream_id();
  view.status.state = ParseStreamState(info.stream_state());
  view.epoch = info.epoch();
  if (info.has_last_seq()) view.last_seq = info.last_seq();
  if (info.has_history_from()) view.history_from = info.history_from();
  for (const auto& range : info.lost_ranges()) {
    view.lost_ranges.emplace_back(range.from(), range.to());
  }
  view.hash_check = info.hash_check();
  view.status.last_frame_age_ms = info.last_frame_age_ms();
  view.status.disconnected_for_ms = info.disconnected_for_ms();
  view.status.last_error = info.last_error();
  view.status.first_catch_up_done = info.first_catch_up_done();
  view.counters = ToCounters(info.counters());
  view.status.counters = ToCounters(info.stream_counters());
  for (int i = 0; i < info.blocks_by_tier_size() && i < kTierCount; ++i) {
    view.blocks_by_tier[i] = info.blocks_by_tier(i);
  }
  return view;
}

void FillContextInfo(const ContextView& view, v1::ContextInfo* info) {
  info->set_model_name(WireText(view.key.model_name));
  info->set_lora_name(WireText(view.key.lora_name));
  info->set_block_size(view.key.block_size);
  info->set_tenant_id(WireText(view.key.tenant_id));
  info->set_prefix_count(view.prefix_count);
  FillProfile(view.hash_profile, info->mutable_hash_profile());
  for (const auto& [instance_id, ranks] : view.instances) {
    auto& to = (*info->mutable_instances())[WireText(instance_id)];
    to.mutable_dp_ranks()->Add(ranks.begin(), ranks.end());
  }
}

Result<ContextView> ToContextView(const v1::ContextInfo& info) {
  auto profile = ToProfile(info.hash_profile());
  if (!profile) return tl::unexpected(profile.error());
  ContextView view;
  view.key = {info.tenant_id(), info.model_name(), info.lora_name(), info.block_size()};
  view.hash_profile = *std::move(profile);
  view.prefix_count = info.prefix_count();
  for (const auto& [instance_id, ranks] : info.instances()) {
    view.instances[instance_id].insert(ranks.dp_ranks().begin(), ranks.dp_ranks().end());
  }
  return view;
}

namespace {

void FillSnapshotStatus(const StatusView& view, v1::StatusResponse* response) {
  response->set_snapshot_seq(view.snapshot_seq);
  if (view.snapshot_age_ms >= 0) response->set_snapshot_age_ms(view.snapshot_age_ms);
  response->set_snapshot_bytes(view.snapshot_bytes);
  if (view.snapshot_percent >= 0) response->set_snapshot_percent(view.snapshot_percent);
  response->set_snapshots_made(view.snapshots_made);
  response->set_snapshots_failed(view.snapshots_failed);
  response->set_snapshot_error(WireText(view.snapshot_error));
  response->set_snapshot_interval_events(view.snapshot_interval_events);
  response->set_snapshot_interval_s(view.snapshot_interval_s);
  response->set_log_opening_missing_records(view.log_opening.missing_records);
  response->set_log_opening_dropped_bytes(view.log_opening.dropped_bytes);
}

void ReadSnapshotStatus(const v1::StatusResponse& response, StatusView* view) {
  view->snapshot_seq = response.snapshot_seq();
  view->snapshot_age_ms = response.has_snapshot_age_ms() ? response.snapshot_age_ms() : -1;
  view->snapshot_bytes = response.snapshot_bytes();
  view->snapshot_percent = response.has_snapshot_percent() ? response.snapshot_percent() : -1;
  view->snapshots_made = response.snapshots_made();
  view->snapshots_failed = response.snapshots_failed();
  view->snapshot_error = response.snapshot_error();
  view->snapshot_interval_events = response.snapshot_interval_events();
  view->snapshot_interval_s = response.snapshot_interval_s();
  view->log_opening = {response.log_opening_missing_records(),
                       response.log_opening_dropped_bytes()};
}

}  // namespace

void FillStatus(const StatusView& view, v1::StatusResponse* response) {
  response->set_version(view.version);
  response->set_commit(view.commit);
  response->set_uptime_ms(view.uptime_ms);
  response->set_ready(view.readiness.ready);
  response->set_phase(view.readiness.phase);
  response->set_replayed(view.readiness.replayed);
  response->set_total(view.readiness.total);
  response->set_streams_waiting(view.readiness.streams_waiting);
  response->set_blocks_done(view.readiness.blocks_done);
  response->set_blocks_per_s(view.readiness.blocks_per_s);
  response->set_percent(view.readiness.percent);
  if (view.readiness.seconds_left >= 0) response->set_seconds_left(view.readiness.seconds_left);
  response->set_log_first(view.log_first);
  response->set_log_last(view.log_last);
  response->set_log_synced(view.log_synced);
  response->set_digest(view.digest);
  response->set_log_applied(view.log_applied);
  response->set_blocks(view.blocks);
  response->set_contexts(view.contexts);
  response->set_registrations(view.registrations);
  response->set_fragments(view.fragments);
  response->set_index_bytes(view.index_bytes);
  response->set_max_blocks(view.max_blocks);
  response->set_max_bytes(view.max_bytes);
  response->set_evicted_blocks(view.evicted_blocks);
  FillSnapshotStatus(view, response);
  response->set_queue_frames(view.queue_frames);
  response->set_log_error(WireText(view.log_error));
  for (const std::string& line : view.refused_statics) {
    response->add_refused_statics(WireText(line));
  }
  response->set_data_dir(WireText(view.data_dir));
  response->set_http_port(view.http_port);
  response->set_rpc_port(view.rpc_port);
}

StatusView ToStatusView(const v1::StatusResponse& response) {
  StatusView view;
  view.version = response.version();
  view.commit = response.commit();
  view.uptime_ms = response.uptime_ms();
  view.readiness = {
      .ready = response.ready(),
      .phase = response.phase(),
      .replayed = response.replayed(),
      .total = response.total(),
      .blocks_done = response.blocks_done(),
      .blocks_per_s = response.blocks_per_s(),
      .percent = response.percent(),
      .seconds_left = response.has_seconds_left() ? response.seconds_left() : -1,
      .streams_waiting = response.streams_waiting(),
  };
  ReadSnapshotStatus(response, &view);
  view.log_first = response.log_first();
  view.log_last = response.log_last();
  view.log_synced = response.log_synced();
  view.digest = response.digest();
  view.log_applied = response.log_applied();
  view.blocks = response.blocks();
  view.contexts = response.contexts();
  view.registrations = response.registrations();
  view.fragments = response.fragments();
  view.index_bytes = response.index_bytes();
  view.max_blocks = response.max_blocks();
  view.max_bytes = response.max_bytes();
  view.evicted_blocks = response.evicted_blocks();
  view.queue_frames = response.queue_frames();
  view.log_error = response.log_error();
  view.refused_statics.assign(response.refused_statics().begin(), response.refused_statics().end());
  view.data_dir = response.data_dir();
  view.http_port = static_cast<std::uint16_t>(response.http_port());
  view.rpc_port = static_cast<std::uint16_t>(response.rpc_port());
  return view;
}

void FillSnapshotInfo(const SnapshotInfo& snapshot, v1::SnapshotInfo* info) {
  info->set_seq(snapshot.seq);
  info->set_bytes(snapshot.bytes);
  info->set_path(WireText(snapshot.path));
  info->set_created_unix_ms(snapshot.created_unix_ms);
  info->set_blocks(snapshot.blocks);
  info->set_digest(snapshot.digest);
  info->set_damage(WireText(snapshot.damage));
}

SnapshotInfo ToSnapshotInfo(const v1::SnapshotInfo& info) {
  return {info.seq(),    info.bytes(),  info.path(),  info.created_unix_ms(),
          info.blocks(), info.digest(), info.damage()};
}

}  // namespace conductor::rpc
