#include "http/request_bodies.h"

#include <limits>
#include <optional>
#include <utility>

#include "http/object_reader.h"

namespace conductor::http {

namespace {

constexpr auto kRequired = Presence::kRequired;
constexpr auto kOptional = Presence::kOptional;

Status CheckRange(std::string_view field, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return {};
  return InvalidField("out_of_range", std::string(field),
                      std::string(field) + ": expected " + std::to_string(min) + ".." +
                          std::to_string(max) + ", got " + std::to_string(value));
}

// The contract: an empty tenant is "default".
std::string TenantOrDefault(std::optional<std::string>& tenant) {
  return tenant && !tenant->empty() ? std::move(*tenant) : "default";
}

}  // namespace

PromptQuery QueryBody::AsPromptQuery() const {
  return {context, token_ids, cache_salt, extra_keys, options};
}

HashQuery QueryBody::AsHashQuery() const {
  return {context, hashes, options};
}

Result<QueryBody> ParseQuery(std::string_view body, BodyFormat format, QueryKind kind,
                             const Limits& limits) {
  QueryBody query;
  std::optional<std::string> model, tenant, lora, salt, instance;
  std::optional<std::int64_t> block_size, top_k, min_tokens;
  std::vector<std::uint64_t> block_hash;

  ObjectReader reader("body");
  reader.Text("model", kRequired, &model);
  reader.Integer("block_size", kRequired, &block_size);
  if (kind == QueryKind::kByTokens) {
    reader.Tokens("token_ids", limits.tokens_max, &query.token_ids);
  } else {
    reader.Hashes("seq_hashes", kOptional, limits.tokens_max, &query.hashes);
    reader.Hashes("block_hash", kOptional, limits.tokens_max, &block_hash);
  }
  reader.Text("tenant_id", kOptional, &tenant);
  reader.Text("lora_name", kOptional, &lora);
  reader.Text("cache_salt", kOptional, &salt);
  reader.Text("instance_id", kOptional, &instance);
  reader.ExtraKeysOfBlocks("extra_keys", limits.tokens_max, &query.extra_keys);
  reader.Integer("top_k", kOptional, &top_k);
  reader.Integer("min_tokens", kOptional, &min_tokens);
  reader.Bool("detail", &query.options.detail);
  CONDUCTOR_RETURN_IF_ERROR(ReadBody(body, format, reader));
  CONDUCTOR_RETURN_IF_ERROR(reader.CheckRequired());

  if (kind == QueryKind::kByHash) {
    const bool first = reader.Has("seq_hashes");
    const bool second = reader.Has("block_hash");
    if (!first && !second) {
      return InvalidField("missing", "seq_hashes", "body: the field seq_hashes is missing");
    }
    if (first && second) {
      return InvalidField("invalid_value", "block_hash",
                          "body: expected seq_hashes or block_hash, got both");
    }
    if (second) query.hashes = std::move(block_hash);
  }
  if (model->empty()) {
    return InvalidField("invalid_value", "model", "model: expected a name, got empty text");
  }
  CONDUCTOR_RETURN_IF_ERROR(CheckRange("block_size", *block_size, 1, kBlockSizeMax));
  CONDUCTOR_RETURN_IF_ERROR(
      CheckRange("top_k", top_k.value_or(0), 0, std::numeric_limits<std::uint32_t>::max()));
  CONDUCTOR_RETURN_IF_ERROR(CheckRange("min_tokens", min_tokens.value_or(0), 0,
                                       std::numeric_limits<std::int64_t>::max()));
  query.context = {TenantOrDefault(tenant), std::move(*model), lora.value_or(""),
                   static_cast<std::uint32_t>(*block_size)};
  query.cache_salt = salt.value_or("");
  query.options.instance_id = instance.value_or("");
  query.options.top_k = static_cast<std::uint32_t>(top_k.value_or(0));
  query.options.min_tokens = static_cast<std::uint64_t>(min_tokens.value_or(0));
  return query;
}

Result<RegistrationRequest> ParseRegistration(std::string_view body, BodyFormat format) {
  RegistrationRequest request;
  RegistrationRequest::Profile profile;

  // Which fields must be there depends on the publisher's type: MakeRegistration decides. Here a
  // required field is one whose null is a wrong type and not an absence.
  ObjectReader hash_profile("hash_profile");
  hash_profile.Text("strategy", kRequired, &profile.strategy);
  hash_profile.Text("algorithm", kRequired, &profile.algorithm);
  hash_profile.Text("python_hash_seed", kOptional, &profile.python_hash_seed);
  hash_profile.Text("index_projection", kRequired, &profile.index_projection);
  ObjectReader reader("body");
  reader.Text("endpoint", kRequired, &request.endpoint);
  reader.Text("type", kRequired, &request.type);
  reader.Text("modelname", kRequired, &request.modelname);
  reader.Text("instance_id", kOptional, &request.instance_id);
  reader.Integer("block_size", kRequired, &request.block_size);
  reader.Integer("dp_rank", kRequired, &request.dp_rank);
  reader.Object("hash_profile", kRequired, &hash_profile);
  reader.Text("replay_endpoint", kOptional, &request.replay_endpoint);
  reader.Text("lora_name", kOptional, &request.lora_name);
  reader.Text("tenant_id", kOptional, &request.tenant_id);
  reader.Integer("cache_group", kOptional, &request.cache_group);
  reader.Text("topic", kOptional, &request.topic);
  reader.Text("snapshot_endpoint", kOptional, &request.snapshot_endpoint);
  reader.IntegerMap("pool_parts", &request.pool_parts);
  CONDUCTOR_RETURN_IF_ERROR(ReadBody(body, format, reader));
  if (reader.Has("hash_profile")) request.hash_profile = std::move(profile);
  return request;
}

Result<ServiceKey> ParseUnregistration(std::string_view body, BodyFormat format) {
  std::optional<std::string> instance, tenant;
  std::optional<std::int64_t> dp_rank;

  ObjectReader reader("body");
  reader.Text("instance_id", kRequired, &instance);
  reader.Integer("dp_rank", kRequired, &dp_rank);
  reader.Text("tenant_id", kOptional, &tenant);
  // Sent by older clients; the key alone decides.
  for (const char* field : {"type", "modelname", "lora_name", "block_size"}) reader.Ignored(field);
  CONDUCTOR_RETURN_IF_ERROR(ReadBody(body, format, reader));
  CONDUCTOR_RETURN_IF_ERROR(reader.CheckRequired());
  CONDUCTOR_RETURN_IF_ERROR(CheckRange("dp_rank", *dp_rank, 0, kDpRankMax));
  return ServiceKey{std::move(*instance), TenantOrDefault(tenant),
                    static_cast<std::uint32_t>(*dp_rank)};
}

}  // namespace conductor::http
