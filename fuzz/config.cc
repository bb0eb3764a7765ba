// The daemon's configuration file, with its static registrations.
// Property: it is refused with a place and a reason, or every registration in it fits the log and
// no two have one key or one endpoint; the same document in other white space means the same.
//
// Input: the file.
#include "cli/config.h"

#include <set>

#include "cli/json_fields.h"
#include "fuzz/fact_text.h"
#include "fuzz/logged_record.h"
#include "fuzz/target.h"

namespace conductor::fuzz {
namespace {

std::string Meaning(const Result<cli::Config>& config) {
  if (!config) return config.error().reason + " " + config.error().field;
  std::string text;
  for (const Registration& publisher : config->publishers) text += Text(publisher) + "\n";
  for (const std::uint64_t number :
       {std::uint64_t{config->http_server_port}, std::uint64_t{config->rpc_server_port},
        static_cast<std::uint64_t>(config->unverified_blocks),
        static_cast<std::uint64_t>(config->log_sync), std::uint64_t{config->log_sync_interval_ms},
        config->snapshot_interval_events, std::uint64_t{config->snapshot_interval_s},
        static_cast<std::uint64_t>(config->on_lost_events),
        std::uint64_t{config->disconnected_drop_s}, std::uint64_t{config->limits.tokens_max}}) {
    text += std::to_string(number) + " ";
  }
  return text + config->listen_address + " " + config->data_dir;
}

void RequireUsable(const cli::Config& config) {
  std::set<ServiceKey> keys;
  std::set<std::string> endpoints;
  for (const Registration& publisher : config.publishers) {
    RequireLoggable(publisher);
    Require(keys.insert(publisher.Key()).second, "no two publishers have one key");
    Require(endpoints.insert(publisher.endpoint).second, "no two publishers have one endpoint");
    Require(publisher.origin == RegistrationOrigin::kStatic && !publisher.static_name.empty(),
            "a publisher of the file is static and named");
  }
  Require(config.http_server_port == 0 || config.http_server_port != config.rpc_server_port,
          "two servers have two ports");
}

}  // namespace

void RunInput(Bytes input) {
  const std::string text(AsText(input));
  const auto config = cli::ParseConfig(text);
  if (config) {
    RequireUsable(*config);
  } else {
    const Error& error = config.error();
    Require(!error.message.empty() && !error.reason.empty(), "a refusal is named");
    // Damaged JSON has no field to name.
    Require(!error.field.empty() || error.reason == "invalid_json" ||
                error.reason == "invalid_type" || error.reason == "invalid_value" ||
                error.reason == "unknown_field",
            "a refusal has a place", error.reason + ": " + error.message);
  }
  const auto json = cli::ParseJson(text);
  Require(json || !config, "a configuration is JSON");
  if (!json) return;
  // Cannot throw: what was parsed is valid UTF-8.
  const auto spaced = cli::ParseConfig(json->dump(2));
  Require(Meaning(spaced) == Meaning(config), "white space has no meaning",
          Meaning(config) + "\n" + Meaning(spaced));
}

std::vector<std::string> Seeds() {
  const std::string vllm =
      R"("a":{"endpoint":"tcp://10.0.0.1:5557","replay_endpoint":"tcp://10.0.0.1:5558",)"
      R"("type":"vLLM","modelname":"m","instance_id":"i","block_size":16,"dp_rank":0,)"
      R"("tenant_id":"t","lora_name":null,"topic":"kv","cache_group":0,)"
      R"("hash_profile":{"strategy":"vllm_v1","algorithm":"sha256_cbor","python_hash_seed":"0",)"
      R"("index_projection":"low64_be"}})";
  const std::string store =
      R"("b":{"endpoint":"ipc:///tmp/store","type":"Mooncake","modelname":"m","block_size":16,)"
      R"("dp_rank":0,"pool_parts":{"tp":8,"kv":2},"hash_profile":{"strategy":"vllm_v1",)"
      R"("algorithm":"sha256","python_hash_seed":"42","index_projection":"low64_be"}})";
  const std::string sglang =
      R"("c":{"endpoint":"tcp://[::1]:5557","type":"SGLang","modelname":"m","instance_id":"s",)"
      R"("block_size":64,"dp_rank":3,"snapshot_endpoint":"tcp://h:1","hash_profile":{"strategy":)"
      R"("sglang_bigram","algorithm":"sha256_raw","index_projection":"first64_be"}})";
  // The same engine once more, but for one field.
  const auto again = [&](const std::string& from, const std::string& to) {
    std::string other = "\"again\"" + vllm.substr(vllm.find(':'));
    other.replace(other.find(from), from.size(), to);
    return R"({"kvevent_instance":{)" + vllm + "," + other + "}}";
  };
  return {
      again(R"("dp_rank":0)", R"("dp_rank":1)"),
      again("tcp://10.0.0.1:5557", "tcp://10.0.0.1:5559"),
      again(R"("tenant_id":"t")", R"("tenant_id":"u")"),
      R"({"http_server_port":8080,"rpc_server_port":50052,"kvevent_instance":{}})",
      R"({"kvevent_instance":{)" + vllm + "}}",
      R"({"kvevent_instance":{)" + store + "}}",
      R"({"kvevent_instance":{)" + sglang + "}}",
      R"({"kvevent_instance":{)" + vllm + "," + store + "," + sglang + "}}",
      R"({"listen_address":"[::]","data_dir":"~/d","unverified_blocks":"name_only",)"
      R"("log_sync":"interval","log_sync_interval_ms":50,"snapshot_interval_events":1000,)"
      R"("snapshot_interval_s":60,"on_lost_events":"drop","disconnected_drop_s":5,)"
      R"("limits":{"tokens_max":1000,"registrations_max":10}})",
      R"({"auth":{},"tls":null,"limits":{"tokens_max":-1}})",
      R"({"rpc_server_port":1.5,"listen_address":"fe80::1%eth0"})",
  };
}

}  // namespace conductor::fuzz
