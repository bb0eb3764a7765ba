#include "tools/fleet.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace conductor::enginesim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kPortMax = 65'535;

Status CheckOptions(const FleetOptions& options) {
  if (options.engines == 0 || options.engines > kEnginesMax) {
    return MakeError(ErrorCode::kInvalidArgument, "engines: expected 1 to " +
                                                      std::to_string(kEnginesMax) + ", got " +
                                                      std::to_string(options.engines));
  }
  for (const auto& endpoints : {options.publish_endpoints, options.replay_endpoints}) {
    if (!endpoints.empty() && endpoints.size() != options.engines) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "endpoints: expected one for each of " + std::to_string(options.engines) +
                           " engines, got " + std::to_string(endpoints.size()));
    }
  }
  const bool stores = options.type == PublisherType::kMooncake;
  const bool vllm = options.engine.profile.strategy == HashStrategy::kVllmV1;
  if (!stores && vllm != (options.type == PublisherType::kVllm)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "engines of type " + std::string(ToString(options.type)) +
                         ": expected a hash profile of theirs, got " +
                         std::string(ToString(options.engine.profile.strategy)));
  }
  if (stores && options.engine.dp_ranks != 1) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "stores: expected one rank, a store has no others");
  }
  const std::uint64_t ports = 2ull * options.engine.dp_ranks * options.engines;
  if (options.base_port + ports > kPortMax + 1) {
    return MakeError(ErrorCode::kInvalidArgument, "base port " + std::to_string(options.base_port) +
                                                      ": no room for " + std::to_string(ports) +
                                                      " ports below 65536");
  }
  return {};
}

PublisherOptions Layout(const FleetOptions& options, std::size_t engine) {
  PublisherOptions publisher = options.engine.publisher;
  const std::string host = "tcp://" + options.host + ":";
  const std::uint32_t ranks = options.engine.dp_ranks;
  const std::uint64_t port = options.base_port + 2ull * ranks * engine;
  publisher.endpoint = host + (options.base_port == 0 ? "*" : std::to_string(port));
  publisher.attach = Attach::kBind;
  publisher.replay_endpoint.clear();
  if (options.replay) {
    publisher.replay_endpoint =
        host + (options.base_port == 0 ? "*" : std::to_string(port + ranks));
  }
  if (!options.publish_endpoints.empty()) {
    publisher.endpoint = options.publish_endpoints[engine];
    publisher.attach = options.attach;
  }
  if (!options.replay_endpoints.empty()) {
    publisher.replay_endpoint = options.replay_endpoints[engine];
  }
  return publisher;
}

}  // namespace

Result<std::unique_ptr<Fleet>> Fleet::Start(const FleetOptions& options) {
  CONDUCTOR_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<Fleet> fleet(new Fleet(options));
  for (std::size_t i = 0; i < options.engines; ++i) {
    if (options.type == PublisherType::kMooncake) {
      StoreOptions store = options.store;
      store.publisher = Layout(options, i);
      CONDUCTOR_ASSIGN_OR_RETURN(auto started, StoreSim::Start(fleet->context_, store));
      fleet->stores_.push_back(std::move(started));
      continue;
    }
    EngineOptions engine = options.engine;
    engine.publisher = Layout(options, i);
    CONDUCTOR_ASSIGN_OR_RETURN(auto started, EngineSim::Start(fleet->context_, engine));
    fleet->engines_.push_back(std::move(started));
  }
  return fleet;
}

std::string_view Fleet::eraWord() const {
  if (HasStores()) return ToString(options_.store.era);
  if (options_.type == PublisherType::kSglang) return ToString(options_.engine.sglang_era);
  return ToString(options_.engine.era);
}

std::string Fleet::Describe(const std::string& control_endpoint) {
  const EngineOptions& engine = options_.engine;
  Json description;
  description["control"] = control_endpoint;
  description["type"] = ToString(options_.type);
  description["model"] = options_.model_name;
  description["block_size"] = engine.block_size;
  description["blocks"] = HasStores() ? options_.store.blocks : engine.blocks;
  description["era"] = eraWord();
  description["topic"] = engine.publisher.topic;
  description["hash_profile"] = {{"strategy", ToString(engine.profile.strategy)},
                                 {"algorithm", ToString(engine.profile.algorithm)},
                                 {"python_hash_seed", engine.profile.python_hash_seed},
                                 {"index_projection", IndexProjection(engine.profile.strategy)}};
  if (HasStores()) {
    description["key_form"] = ToString(options_.store.keys.form);
    description["tenant_id"] = options_.store.config.tenant_id;
    description["backend_id"] = options_.store.config.backend_id;
  }
  description["engines"] = Json::array();
  for (std::size_t i = 0; i < size(); ++i) {
    Json entry{{"engine", i}, {"name", (HasStores() ? "store-" : "engine-") + std::to_string(i)}};
    entry["live"] = publisher(i).endpoint();
    entry["replay"] = publisher(i).replay_endpoint();
    entry["ranks"] = Json::array();
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      const Publisher& one = publisher(i, rank);
      entry["ranks"].push_back(
          {{"dp_rank", rank}, {"live", one.endpoint()}, {"replay", one.replay_endpoint()}});
    }
    description["engines"].push_back(std::move(entry));
  }
  return description.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace conductor::enginesim
