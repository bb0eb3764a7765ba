#include <limits>

#include "rpc/convert.h"

namespace conductor::rpc {

RegistrationRequest ToRegistrationRequest(const v1::RegisterRequest& request) {
  RegistrationRequest out;
  if (request.has_instance_id()) out.instance_id = request.instance_id();
  if (request.has_endpoint()) out.endpoint = request.endpoint();
  if (request.has_type()) out.type = request.type();
  if (request.has_modelname()) out.modelname = request.modelname();
  if (request.has_replay_endpoint()) out.replay_endpoint = request.replay_endpoint();
  if (request.has_lora_name()) out.lora_name = request.lora_name();
  if (request.has_tenant_id()) out.tenant_id = request.tenant_id();
  if (request.has_topic()) out.topic = request.topic();
  if (request.has_snapshot_endpoint()) out.snapshot_endpoint = request.snapshot_endpoint();
  if (request.has_block_size()) out.block_size = request.block_size();
  if (request.has_dp_rank()) out.dp_rank = request.dp_rank();
  if (request.has_cache_group()) out.cache_group = request.cache_group();
  if (request.has_hash_profile()) {
    const auto& profile = request.hash_profile();
    auto& to = out.hash_profile.emplace();
    if (profile.has_strategy()) to.strategy = profile.strategy();
    if (profile.has_algorithm()) to.algorithm = profile.algorithm();
    if (profile.has_python_hash_seed()) to.python_hash_seed = profile.python_hash_seed();
    if (profile.has_index_projection()) to.index_projection = profile.index_projection();
  }
  if (request.has_pool_parts()) {
    const auto& totals = request.pool_parts().totals();
    out.pool_parts.emplace(totals.begin(), totals.end());
  }
  return out;
}

void FillRegisterRequest(const RegistrationRequest& registration, v1::RegisterRequest* request) {
  const auto& in = registration;
  if (in.instance_id) request->set_instance_id(*in.instance_id);
  if (in.endpoint) request->set_endpoint(*in.endpoint);
  if (in.type) request->set_type(*in.type);
  if (in.modelname) request->set_modelname(*in.modelname);
  if (in.replay_endpoint) request->set_replay_endpoint(*in.replay_endpoint);
  if (in.lora_name) request->set_lora_name(*in.lora_name);
  if (in.tenant_id) request->set_tenant_id(*in.tenant_id);
  if (in.topic) request->set_topic(*in.topic);
  if (in.snapshot_endpoint) request->set_snapshot_endpoint(*in.snapshot_endpoint);
  if (in.block_size) request->set_block_size(*in.block_size);
  if (in.dp_rank) request->set_dp_rank(*in.dp_rank);
  if (in.cache_group) request->set_cache_group(*in.cache_group);
  if (in.hash_profile) {
    auto* profile = request->mutable_hash_profile();
    const auto& from = *in.hash_profile;
    if (from.strategy) profile->set_strategy(*from.strategy);
    if (from.algorithm) profile->set_algorithm(*from.algorithm);
    if (from.python_hash_seed) profile->set_python_hash_seed(*from.python_hash_seed);
    if (from.index_projection) profile->set_index_projection(*from.index_projection);
  }
  if (in.pool_parts) {
    auto* parts = request->mutable_pool_parts();
    for (const auto& [name, total] : *in.pool_parts) (*parts->mutable_totals())[name] = total;
  }
}

Result<ServiceKey> ToServiceKey(const v1::UnregisterRequest& request) {
  if (request.instance_id().empty()) {
    return InvalidField("missing", "instance_id", "instance_id: expected an id, got none");
  }
  if (request.dp_rank() < 0 || request.dp_rank() > kDpRankMax) {
    return InvalidField("out_of_range", "dp_rank",
                        "dp_rank: expected 0.." + std::to_string(kDpRankMax) + ", got " +
                            std::to_string(request.dp_rank()));
  }
  return ServiceKey{request.instance_id(),
                    request.tenant_id().empty() ? "default" : request.tenant_id(),
                    static_cast<std::uint32_t>(request.dp_rank())};
}

}  // namespace conductor::rpc
