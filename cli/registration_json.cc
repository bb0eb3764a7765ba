#include "cli/registration_json.h"

#include <limits>
#include <utility>

namespace conductor::cli {

namespace {

constexpr std::size_t kPoolPartsMax = 64;

Status ReadProfile(const Json& json, const std::string& path,
                   RegistrationRequest::Profile* profile) {
  JsonFields fields(json, path);
  fields.Text("strategy", &profile->strategy);
  fields.Text("algorithm", &profile->algorithm);
  fields.Text("python_hash_seed", &profile->python_hash_seed);
  fields.Text("index_projection", &profile->index_projection);
  return fields.Finish();
}

Status ReadParts(const Json& json, const std::string& path,
                 std::map<std::string, std::int64_t>* parts) {
  if (json.size() > kPoolPartsMax) {
    return InvalidField("too_large", path,
                        path + ": expected at most " + std::to_string(kPoolPartsMax) +
                            " entries, got " + std::to_string(json.size()));
  }
  JsonFields fields(json, path);
  for (const auto& [name, value] : json.items()) {
    fields.Integer(name, {0, std::numeric_limits<std::int64_t>::max()}, &(*parts)[name]);
  }
  return fields.Finish();
}

}  // namespace

Result<RegistrationRequest> ReadRegistration(const Json& json, const std::string& path) {
  RegistrationRequest request;
  JsonFields fields(json, path);
  fields.Text("endpoint", &request.endpoint);
  fields.Text("type", &request.type);
  fields.Text("modelname", &request.modelname);
  fields.TextOrNull("instance_id", &request.instance_id);
  fields.IntegerOrNull("block_size", &request.block_size);
  fields.IntegerOrNull("dp_rank", &request.dp_rank);
  fields.Object("hash_profile", [&](const Json& profile, const std::string& at) {
    return ReadProfile(profile, at, &request.hash_profile.emplace());
  });
  fields.TextOrNull("replay_endpoint", &request.replay_endpoint);
  fields.TextOrNull("lora_name", &request.lora_name);
  fields.TextOrNull("tenant_id", &request.tenant_id);
  fields.IntegerOrNull("cache_group", &request.cache_group);
  fields.TextOrNull("topic", &request.topic);
  fields.TextOrNull("snapshot_endpoint", &request.snapshot_endpoint);
  fields.Object("pool_parts", [&](const Json& parts, const std::string& at) {
    return ReadParts(parts, at, &request.pool_parts.emplace());
  });
  CONDUCTOR_RETURN_IF_ERROR(fields.Finish());
  return request;
}

}  // namespace conductor::cli
