// A registration: one publisher subscription as its operator described it, normalised and checked.
//
// Front ends fill a RegistrationRequest from their own spelling of the fields; MakeRegistration is
// the one place that decides what is valid. Conflicts with what is already registered are decided
// by the apply thread (service.h), because only it sees the state without a race.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "src/result.h"
#include "src/types.h"

namespace conductor {

// Totals of a pool's object parts; a block counts only when every part is there (0 = not known).
using PoolParts = std::map<std::string, std::uint32_t>;

// How blocks that the engine's hash contradicts are treated (DESIGN: `unverified_blocks`).
enum class UnverifiedBlocks : std::uint8_t { kContent = 1, kNameOnly = 2 };

enum class RegistrationOrigin : std::uint8_t { kDynamic = 1, kStatic = 2 };

struct Registration {
  std::string instance_id;
  std::string endpoint;
  std::string replay_endpoint;
  std::string snapshot_endpoint;
  std::string topic;
  bool has_topic = false;  // false: every topic
  PublisherType type = PublisherType::kVllm;
  std::string model_name;
  std::string lora_name;
  std::string tenant_id = "default";
  std::uint32_t block_size = 0;
  std::uint32_t dp_rank = 0;
  bool has_cache_group = false;  // null and 0 are the same configuration; this keeps the spelling
  HashProfile hash_profile;
  PoolParts pool_parts;
  // Not part of the configuration that is compared for conflicts:
  RegistrationOrigin origin = RegistrationOrigin::kDynamic;
  std::string static_name;  // the key under kvevent_instance, for static ones

  ServiceKey Key() const { return {instance_id, tenant_id, dp_rank}; }
  ContextKey Context() const { return {tenant_id, model_name, lora_name, block_size}; }
  // The endpoint in one spelling: every wildcard host is one, and so is localhost.
  std::string EndpointKey() const;
  // The name of the first field that differs (HTTP spelling), or empty when the configurations
  // are the same.
  std::string FirstDifference(const Registration& other) const;
};

// What a front end received, before any judgement. Absent optionals are absent fields.
struct RegistrationRequest {
  std::optional<std::string> instance_id, endpoint, type, modelname, replay_endpoint, lora_name,
      tenant_id, topic, snapshot_endpoint;
  std::optional<std::int64_t> block_size, dp_rank, cache_group;
  struct Profile {
    std::optional<std::string> strategy, algorithm, python_hash_seed, index_projection;
  };
  std::optional<Profile> hash_profile;
  std::optional<std::map<std::string, std::int64_t>> pool_parts;
};

// Checks and normalises. Errors are InvalidField with the HTTP name of the field and a reason of
// the contract (missing, invalid_value, out_of_range). A Mooncake registration without instance_id
// takes its endpoint as id.
Result<Registration> MakeRegistration(const RegistrationRequest& request);

// Whether `endpoint` is one that ZMQ can take: tcp://host:port, ipc://path, inproc://name. A
// wildcard host (IsWildcardEndpoint) is one. The reason is in the error. Names are not looked up.
Status CheckEndpoint(const std::string& field, const std::string& endpoint);

// tcp://*:PORT, tcp://0.0.0.0:PORT, tcp://[::]:PORT: the publisher connects and we bind.
bool IsWildcardEndpoint(std::string_view endpoint);

}  // namespace conductor
