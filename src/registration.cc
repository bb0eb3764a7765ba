#include "src/registration.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "src/hash/profile.h"
#include "src/hash/utf8.h"
#include "src/limits.h"

namespace conductor {
namespace {

// What fits a Unix socket's address.
constexpr std::size_t kIpcPathBytesMax = 107;

bool IsWildcardHost(std::string_view host) {
  return host == "*" || host == "0.0.0.0" || host == "[::]";
}

std::string Quoted(const std::string& text) {
  return "'" + text.substr(0, 128) + "'";
}

Status CheckText(const std::string& field, const std::string& text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return InvalidField("too_large", field,
                        field + ": " + std::to_string(text.size()) + " bytes, at most " +
                            std::to_string(bytes_max));
  }
  if (!IsValidUtf8(text)) return InvalidField("invalid_value", field, field + ": not UTF-8");
  if (std::any_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < 32; })) {
    return InvalidField("invalid_value", field, field + ": control characters are not allowed");
  }
  return {};
}

// A required, nonempty text.
Result<std::string> Required(const std::string& field, const std::optional<std::string>& value) {
  if (!value) return InvalidField("missing", field, field + ": required");
  if (value->empty()) return InvalidField("invalid_value", field, field + ": must not be empty");
  CONDUCTOR_RETURN_IF_ERROR(CheckText(field, *value, kNameBytesMax));
  return *value;
}

Result<std::string> Optional(const std::string& field, const std::optional<std::string>& value,
                             std::string fallback) {
  if (!value || value->empty()) return fallback;
  CONDUCTOR_RETURN_IF_ERROR(CheckText(field, *value, kNameBytesMax));
  return *value;
}

Result<std::uint32_t> Number(const std::string& field, const std::optional<std::int64_t>& value,
                             std::int64_t min, std::int64_t max) {
  if (!value) return InvalidField("missing", field, field + ": required");
  if (*value < min || *value > max) {
    return InvalidField("out_of_range", field,
                        field + ": expected " + std::to_string(min) + ".." + std::to_string(max) +
                            ", got " + std::to_string(*value));
  }
  return static_cast<std::uint32_t>(*value);
}

Status CheckPort(const std::string& field, const std::string& port) {
  const bool digits = port.size() <= 5 && std::all_of(port.begin(), port.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  if (digits && std::stoi(port) >= 1 && std::stoi(port) <= 65'535) return {};
  return InvalidField("invalid_value", field,
                      field + ": expected a port 1..65535, got " + Quoted(port));
}

bool IsNumericIpv6(std::string_view text) {
  in6_addr ignored;
  // A link-local address may name its interface.
  return inet_pton(AF_INET6, std::string(text.substr(0, text.find('%'))).c_str(), &ignored) == 1;
}

// Host names are resolved by libzmq, and may be known only later; what can never be one is refused.
Status CheckHost(const std::string& field, const std::string& host) {
  const auto refuse = [&](const std::string& why) {
    return InvalidField("invalid_value", field, field + ": " + why + ", got " + Quoted(host));
  };
  if (host.empty() || host == "[]") return refuse("expected a host");
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (bracketed) {
    if (IsNumericIpv6(std::string_view(host).substr(1, host.size() - 2))) return {};
    return refuse("expected an IPv6 address in the brackets");
  }
  if (host.find(':') != std::string::npos) return refuse("an IPv6 host goes in brackets");
  bool numeric = true;
  for (const char c : host) {
    const bool digit_or_dot = (c >= '0' && c <= '9') || c == '.';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!digit_or_dot && !letter && c != '-' && c != '_') return refuse("not a host name");
    numeric = numeric && digit_or_dot;
  }
  in_addr ignored;
  if (numeric && inet_pton(AF_INET, host.c_str(), &ignored) != 1) {
    return refuse("not an IPv4 address");
  }
  return {};
}

Status CheckTcp(const std::string& field, const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size() || address.back() == ']') {
    return InvalidField("invalid_value", field,
                        field + ": expected tcp://HOST:PORT, got no port in " + Quoted(address));
  }
  const std::string host = address.substr(0, colon);
  if (!IsWildcardHost(host)) CONDUCTOR_RETURN_IF_ERROR(CheckHost(field, host));
  return CheckPort(field, address.substr(colon + 1));
}

Status CheckIpc(const std::string& field, const std::string& path) {
  if (path.empty()) return InvalidField("invalid_value", field, field + ": no path after ipc://");
  if (path == "*") {
    return InvalidField("invalid_value", field,
                        field + ": expected the path that the publisher binds, got ipc://*");
  }
  if (path.size() > kIpcPathBytesMax) {
    return InvalidField("invalid_value", field,
                        field + ": expected a path of at most " + std::to_string(kIpcPathBytesMax) +
                            " bytes, got " + std::to_string(path.size()));
  }
  return {};
}

Result<HashProfile> MakeProfile(const RegistrationRequest& request) {
  if (!request.hash_profile) {
    return InvalidField("missing", "hash_profile", "hash_profile: required");
  }
  const auto& p = *request.hash_profile;
  return MakeHashProfile(p.strategy.value_or(""), p.algorithm.value_or(""),
                         p.python_hash_seed.value_or(""), p.index_projection.value_or(""));
}

Status CheckPair(PublisherType type, HashStrategy strategy) {
  const bool vllm = strategy == HashStrategy::kVllmV1;
  if ((type == PublisherType::kVllm && !vllm) || (type == PublisherType::kSglang && vllm)) {
    return InvalidField("invalid_value", "strategy",
                        "strategy: a " + std::string(ToString(type)) + " publisher cannot use " +
                            std::string(ToString(strategy)));
  }
  return {};
}

// The part names of object keys (WIRE section 7.1) that totals can be given for.
constexpr std::array<std::string_view, 6> kPoolPartNames = {"tp",  "pp", "pcp",
                                                            "dcp", "kv", "layers"};

Result<PoolParts> MakePoolParts(const RegistrationRequest& request) {
  PoolParts parts;
  if (!request.pool_parts) return parts;
  std::uint64_t product = 1;
  for (const auto& [name, total] : *request.pool_parts) {
    const std::string field = "pool_parts." + name.substr(0, 64);
    if (std::find(kPoolPartNames.begin(), kPoolPartNames.end(), name) == kPoolPartNames.end()) {
      return InvalidField("unknown_field", field,
                          field + ": expected tp, pp, pcp, dcp, kv, layers");
    }
    CONDUCTOR_ASSIGN_OR_RETURN(parts[name], Number(field, total, 0, 65'535));
    product *= std::max(parts[name], 1u);
    if (product > kPartsPerBlockMax) {
      return InvalidField("out_of_range", field,
                          "pool_parts: at most " + std::to_string(kPartsPerBlockMax) +
                              " parts make a block, got " + std::to_string(product));
    }
  }
  return parts;
}

}  // namespace

Status CheckEndpoint(const std::string& field, const std::string& endpoint) {
  if (endpoint.size() > kEndpointBytesMax) {
    return InvalidField("too_large", field,
                        field + ": at most " + std::to_string(kEndpointBytesMax) + " bytes");
  }
  CONDUCTOR_RETURN_IF_ERROR(CheckText(field, endpoint, kEndpointBytesMax));
  if (endpoint.rfind("tcp://", 0) == 0) return CheckTcp(field, endpoint.substr(6));
  if (endpoint.rfind("ipc://", 0) == 0) return CheckIpc(field, endpoint.substr(6));
  if (endpoint.rfind("inproc://", 0) == 0) {
    if (endpoint.size() > 9) return {};
    return InvalidField("invalid_value", field, field + ": nothing follows inproc://");
  }
  return InvalidField(
      "invalid_value", field,
      field + ": expected tcp://HOST:PORT, ipc://PATH or inproc://NAME, got " + Quoted(endpoint));
}

bool IsWildcardEndpoint(std::string_view endpoint) {
  if (!endpoint.starts_with("tcp://")) return false;
  endpoint.remove_prefix(6);
  return IsWildcardHost(endpoint.substr(0, endpoint.rfind(':')));
}

Result<Registration> MakeRegistration(const RegistrationRequest& request) {
  Registration r;
  CONDUCTOR_ASSIGN_OR_RETURN(r.endpoint, Required("endpoint", request.endpoint));
  CONDUCTOR_RETURN_IF_ERROR(CheckEndpoint("endpoint", r.endpoint));
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string type, Required("type", request.type));
  const auto parsed = ParsePublisherType(type);
  if (!parsed) {
    return InvalidField("invalid_value", "type",
                        "type: expected vLLM, SGLang or Mooncake, got " + Quoted(type));
  }
  r.type = *parsed;
  CONDUCTOR_ASSIGN_OR_RETURN(r.model_name, Required("modelname", request.modelname));
  if (r.type == PublisherType::kMooncake &&
      (!request.instance_id || request.instance_id->empty())) {
    r.instance_id = r.endpoint;
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(r.instance_id, Required("instance_id", request.instance_id));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(r.block_size,
                             Number("block_size", request.block_size, 1, kBlockSizeMax));
  CONDUCTOR_ASSIGN_OR_RETURN(r.dp_rank, Number("dp_rank", request.dp_rank, 0, kDpRankMax));
  CONDUCTOR_ASSIGN_OR_RETURN(r.hash_profile, MakeProfile(request));
  CONDUCTOR_RETURN_IF_ERROR(CheckPair(r.type, r.hash_profile.strategy));
  for (auto [field, value, target] :
       {std::tuple("replay_endpoint", &request.replay_endpoint, &r.replay_endpoint),
        std::tuple("snapshot_endpoint", &request.snapshot_endpoint, &r.snapshot_endpoint)}) {
    if (!*value || (*value)->empty()) continue;
    CONDUCTOR_RETURN_IF_ERROR(CheckEndpoint(field, **value));
    if (IsWildcardEndpoint(**value)) {
      return InvalidField("invalid_value", field,
                          std::string(field) +
                              ": publishers bind this socket; give the host to connect to, got " +
                              Quoted(**value));
    }
    *target = **value;
  }
  if (!r.replay_endpoint.empty() && r.replay_endpoint == r.endpoint) {
    return InvalidField("invalid_value", "replay_endpoint",
                        "replay_endpoint: the same as endpoint; the replay socket is another one");
  }
  CONDUCTOR_ASSIGN_OR_RETURN(r.lora_name, Optional("lora_name", request.lora_name, ""));
  CONDUCTOR_ASSIGN_OR_RETURN(r.tenant_id, Optional("tenant_id", request.tenant_id, "default"));
  if (request.topic) {
    CONDUCTOR_RETURN_IF_ERROR(CheckText("topic", *request.topic, kNameBytesMax));
    r.topic = *request.topic;
    r.has_topic = true;
  }
  if (request.cache_group && *request.cache_group != 0) {
    return InvalidField(
        "unsupported", "cache_group",
        "cache_group: only 0 is supported, got " + std::to_string(*request.cache_group));
  }
  r.has_cache_group = request.cache_group.has_value();
  CONDUCTOR_ASSIGN_OR_RETURN(r.pool_parts, MakePoolParts(request));
  return r;
}

std::string Registration::EndpointKey() const {
  constexpr std::string_view kTcp = "tcp://";
  const std::size_t colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kTcp) || colon < kTcp.size()) return endpoint;
  std::string host = endpoint.substr(kTcp.size(), colon - kTcp.size());
  if (host == "0.0.0.0" || host == "[::]") host = "*";
  if (host == "localhost") host = "127.0.0.1";
  return std::string(kTcp) + host + endpoint.substr(colon);
}

std::string Registration::FirstDifference(const Registration& other) const {
  if (endpoint != other.endpoint) return "endpoint";
  if (replay_endpoint != other.replay_endpoint) return "replay_endpoint";
  if (snapshot_endpoint != other.snapshot_endpoint) return "snapshot_endpoint";
  if (has_topic != other.has_topic || topic != other.topic) return "topic";
  if (type != other.type) return "type";
  if (model_name != other.model_name) return "modelname";
  if (lora_name != other.lora_name) return "lora_name";
  if (block_size != other.block_size) return "block_size";
  if (hash_profile.strategy != other.hash_profile.strategy) return "strategy";
  if (hash_profile.algorithm != other.hash_profile.algorithm) return "algorithm";
  if (hash_profile.python_hash_seed != other.hash_profile.python_hash_seed) {
    return "python_hash_seed";
  }
  if (pool_parts != other.pool_parts) return "pool_parts";
  return "";
}

}  // namespace conductor
