#include "cli/config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "cli/config_limits.h"
#include "cli/json_fields.h"
#include "cli/registration_json.h"

namespace conductor::cli {

namespace {

constexpr std::int64_t kPortMax = 65'535;
constexpr std::int64_t kSyncIntervalMsMax = 60'000;
constexpr std::int64_t kSecondsMax = 10LL * 365 * 24 * 3'600;
constexpr std::size_t kHostBytesMax = 255;

// Prefixes an error with the place it is in: "kvevent_instance.vllm-0".
tl::unexpected<Error> At(const std::string& path, Error error) {
  error.message = path + "." + error.message;
  error.field = error.field.empty() ? path : path + "." + error.field;
  return tl::unexpected(std::move(error));
}

// What the service would refuse later, found while the file's name can still be told.
class ConflictFinder {
 public:
  Status Add(const std::string& path, const Registration& registration) {
    if (auto [at, fresh] = by_key_.emplace(registration.Key(), path); !fresh) {
      return Conflict(path, "instance_id",
                      "the same instance_id, tenant_id and dp_rank as " + at->second);
    }
    if (auto [at, fresh] = by_endpoint_.emplace(registration.EndpointKey(), path); !fresh) {
      return Conflict(path, "endpoint", "the same endpoint as " + at->second);
    }
    const auto [at, fresh] =
        profiles_.emplace(registration.Context(), std::make_pair(path, registration.hash_profile));
    if (!fresh && at->second.second != registration.hash_profile) {
      return Conflict(path, "hash_profile",
                      "not that of " + at->second.first +
                          ", which has the same tenant, model, adapter and block size");
    }
    return {};
  }

 private:
  static Status Conflict(const std::string& path, const std::string& field,
                         const std::string& what) {
    return InvalidField("invalid_registration", path + "." + field,
                        path + "." + field + ": " + what);
  }

  std::map<ServiceKey, std::string> by_key_;
  std::map<std::string, std::string> by_endpoint_;
  std::map<ContextKey, std::pair<std::string, HashProfile>> profiles_;
};

Status ReadPublishers(const Json& json, const std::string& path,
                      std::vector<Registration>* publishers) {
  ConflictFinder conflicts;
  for (const auto& [name, value] : json.items()) {
    const std::string at = path + "." + name;
    if (name.empty() || name.size() > kNameBytesMax) {
      return InvalidField("invalid_value", at,
                          path + ": a publisher's name has 1.." + std::to_string(kNameBytesMax) +
                              " bytes, got " + std::to_string(name.size()));
    }
    CONDUCTOR_ASSIGN_OR_RETURN(const RegistrationRequest request, ReadRegistration(value, at));
    Result<Registration> registration = MakeRegistration(request);
    if (!registration) return At(at, registration.error());
    registration->origin = RegistrationOrigin::kStatic;
    registration->static_name = name;
    CONDUCTOR_RETURN_IF_ERROR(conflicts.Add(at, *registration));
    publishers->push_back(std::move(*registration));
  }
  return {};
}

// An address to listen on, not an endpoint: no scheme, no port.
Status CheckListenAddress(const std::string& address) {
  const auto refuse = [&](const std::string& why) {
    return InvalidField(
        "invalid_value", "listen_address",
        "listen_address: expected an address like 127.0.0.1, 0.0.0.0 or [::], " + why);
  };
  if (address.empty()) return refuse("got empty text");
  if (address.size() > kHostBytesMax) return refuse("got more than 255 bytes");
  if (address.find("//") != std::string::npos) return refuse("got a URL: '" + address + "'");
  const bool wrong = std::any_of(address.begin(), address.end(), [](char c) {
    return c <= ' ' || c == '/' || c == '*' || c == 0x7f;
  });
  if (wrong) return refuse("got '" + address + "'");
  if (address.find(':') == std::string::npos) return {};
  const bool bracketed = address.front() == '[' && address.back() == ']';
  const std::string bare = bracketed ? address.substr(1, address.size() - 2) : address;
  in6_addr ignored;
  if (inet_pton(AF_INET6, bare.substr(0, bare.find('%')).c_str(), &ignored) == 1) return {};
  return refuse("got '" + address + "' (the port has a key of its own)");
}

template <typename T>
void Number(JsonFields& fields, const std::string& name, std::int64_t min, std::int64_t max,
            T* out) {
  auto value = static_cast<std::int64_t>(*out);
  fields.Integer(name, {min, max}, &value);
  *out = static_cast<T>(value);
}

template <typename Enum>
void Choice(JsonFields& fields, const std::string& name,
            const std::vector<std::pair<std::string, Enum>>& choices, Enum* out) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  std::size_t index = choices.size();
  fields.Word(name, words, &index);
  if (index < choices.size()) *out = choices[index].second;
}

void ReadFields(JsonFields& fields, Config* config) {
  Number(fields, "http_server_port", 0, kPortMax, &config->http_server_port);
  Number(fields, "rpc_server_port", 0, kPortMax, &config->rpc_server_port);
  Choice<UnverifiedBlocks>(
      fields, "unverified_blocks",
      {{"content", UnverifiedBlocks::kContent}, {"name_only", UnverifiedBlocks::kNameOnly}},
      &config->unverified_blocks);
  fields.Object("kvevent_instance", [&](const Json& json, const std::string& path) {
    return ReadPublishers(json, path, &config->publishers);
  });
  Choice<LogSync>(
      fields, "log_sync",
      {{"always", LogSync::kAlways}, {"interval", LogSync::kInterval}, {"never", LogSync::kNever}},
      &config->log_sync);
  Number(fields, "log_sync_interval_ms", 1, kSyncIntervalMsMax, &config->log_sync_interval_ms);
  Number(fields, "snapshot_interval_events", 0, std::numeric_limits<std::int64_t>::max(),
         &config->snapshot_interval_events);
  Number(fields, "snapshot_interval_s", 0, kSecondsMax, &config->snapshot_interval_s);
  Choice<OnLostEvents>(fields, "on_lost_events",
                       {{"keep", OnLostEvents::kKeep}, {"drop", OnLostEvents::kDrop}},
                       &config->on_lost_events);
  Number(fields, "disconnected_drop_s", 0, kSecondsMax, &config->disconnected_drop_s);
  fields.Object("limits", [&](const Json& json, const std::string& path) {
    return ReadLimits(json, path, &config->limits);
  });
  for (const char* key : {"auth", "tls", "allowed_endpoints"}) {
    fields.Unsupported(key, "a later release serves it; remove the key");
  }
}

}  // namespace

Result<Config> ParseConfig(const std::string& text) {
  CONDUCTOR_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  Config config;
  std::optional<std::string> listen_address, data_dir;
  JsonFields fields(json, "");
  fields.Text("listen_address", &listen_address);
  fields.Text("data_dir", &data_dir);
  ReadFields(fields, &config);
  CONDUCTOR_RETURN_IF_ERROR(fields.Finish());
  if (listen_address) {
    CONDUCTOR_RETURN_IF_ERROR(CheckListenAddress(*listen_address));
    config.listen_address = std::move(*listen_address);
  }
  if (data_dir) {
    if (data_dir->empty() || data_dir->find('\0') != std::string::npos) {
      return InvalidField(
          "invalid_value", "data_dir",
          "data_dir: expected a path, got '" + std::string(data_dir->c_str()) + "'");
    }
    config.data_dir = std::move(*data_dir);
  }
  if (config.http_server_port != 0 && config.http_server_port == config.rpc_server_port) {
    return InvalidField("invalid_value", "rpc_server_port",
                        "rpc_server_port: " + std::to_string(config.rpc_server_port) +
                            " is http_server_port's; expected another one");
  }
  if (config.publishers.size() > config.limits.registrations_max) {
    return InvalidField("too_large", "kvevent_instance",
                        "kvevent_instance: expected at most limits.registrations_max (" +
                            std::to_string(config.limits.registrations_max) + ") entries, got " +
                            std::to_string(config.publishers.size()));
  }
  return config;
}

}  // namespace conductor::cli
