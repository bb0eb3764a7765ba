// conductorctl register, unregister: publisher subscriptions.
#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>
#include <utility>

#include "cli/ctl.h"
#include "cli/registration_json.h"
#include "cli/text.h"

namespace conductor::cli {

namespace {

constexpr std::size_t kRegistrationBytesMax = 1u << 20;

struct RegisterFlags {
  std::string file;
  RegistrationRequest request;
  RegistrationRequest::Profile profile;
  bool profile_given = false;
};

template <typename T>
void Override(std::optional<T>& base, const std::optional<T>& given) {
  if (given) base = given;
}

// The file, with every flag that was given on top of it.
Result<RegistrationRequest> MakeRequest(Ctl& ctl, const RegisterFlags& flags) {
  RegistrationRequest request;
  if (!flags.file.empty()) {
    std::string text;
    if (flags.file == "-") {
      text.assign(std::istreambuf_iterator<char>(ctl.in()), {});
    } else {
      CONDUCTOR_ASSIGN_OR_RETURN(text, ReadFile(flags.file, kRegistrationBytesMax));
    }
    const Result<Json> json = ParseJson(text);
    Result<RegistrationRequest> read =
        json ? ReadRegistration(*json, "") : tl::unexpected(json.error());
    if (!read) {
      Error error = read.error();
      error.message = flags.file + ": " + error.message;
      return tl::unexpected(std::move(error));
    }
    request = std::move(*read);
  }
  const RegistrationRequest& given = flags.request;
  for (auto member : {&RegistrationRequest::instance_id, &RegistrationRequest::endpoint,
                      &RegistrationRequest::type, &RegistrationRequest::modelname,
                      &RegistrationRequest::replay_endpoint, &RegistrationRequest::lora_name,
                      &RegistrationRequest::tenant_id, &RegistrationRequest::topic,
                      &RegistrationRequest::snapshot_endpoint}) {
    Override(request.*member, given.*member);
  }
  for (auto member : {&RegistrationRequest::block_size, &RegistrationRequest::dp_rank,
                      &RegistrationRequest::cache_group}) {
    Override(request.*member, given.*member);
  }
  if (!flags.profile_given) return request;
  if (!request.hash_profile) request.hash_profile.emplace();
  using Profile = RegistrationRequest::Profile;
  for (auto member : {&Profile::strategy, &Profile::algorithm, &Profile::python_hash_seed,
                      &Profile::index_projection}) {
    Override((*request.hash_profile).*member, flags.profile.*member);
  }
  return request;
}

// What most registrations have, when neither file nor flag says otherwise.
void FillDefaults(RegistrationRequest& request) {
  if (!request.type) request.type = "vLLM";
  if (!request.dp_rank) request.dp_rank = 0;
  if (!request.hash_profile || request.hash_profile->index_projection) return;
  const std::string strategy = request.hash_profile->strategy.value_or("");
  request.hash_profile->index_projection = strategy == "vllm_v1" ? "low64_be" : "first64_be";
}

void AddFlags(CLI::App* command, RegisterFlags& flags) {
  RegistrationRequest& request = flags.request;
  command->add_option("--file", flags.file, "JSON with the fields of HTTP /register; - for stdin");
  command->add_option("--instance-id", request.instance_id, "Routing identity");
  command->add_option("--endpoint", request.endpoint, "tcp://HOST:PORT the engine publishes on");
  command->add_option("--replay-endpoint", request.replay_endpoint, "Where past frames are");
  command->add_option("--type", request.type, "vLLM (default), SGLang or Mooncake");
  command->add_option("--model", request.modelname, "Model name");
  command->add_option("--lora", request.lora_name, "Adapter name");
  command->add_option("--tenant", request.tenant_id, "Tenant (default: default)");
  command->add_option("--block-size", request.block_size, "Tokens per block");
  command->add_option("--dp-rank", request.dp_rank, "Data-parallel rank (default 0)");
  command->add_option("--cache-group", request.cache_group, "Cache group, only 0");
  command->add_option("--topic", request.topic, "Only frames of this topic");
  command->add_option("--snapshot-endpoint", request.snapshot_endpoint, "SGLang snapshots");
  command->add_option("--strategy", flags.profile.strategy, "vllm_v1, sglang or sglang_bigram");
  command->add_option("--algorithm", flags.profile.algorithm, "sha256, sha256_cbor, sha256_raw");
  command->add_option("--seed", flags.profile.python_hash_seed, "PYTHONHASHSEED of the engine");
  command->add_option("--index-projection", flags.profile.index_projection,
                      "low64_be or first64_be (default: the strategy's)");
}

}  // namespace

void AddRegisterCommand(CLI::App& app, Ctl& ctl) {
  auto flags = std::make_shared<RegisterFlags>();
  CLI::App* command = app.add_subcommand("register", "Subscribe to a publisher of KV events");
  AddFlags(command, *flags);
  command->footer(
      "\nExamples:\n"
      "  conductorctl register --file vllm-0.json\n"
      "  conductorctl register --instance-id vllm-0 --endpoint tcp://127.0.0.1:5557 \\\n"
      "    --model my-model --block-size 16 --strategy vllm_v1 --algorithm sha256_cbor --seed 0");
  command->callback([&ctl, flags, command] {
    for (const char* name : {"--strategy", "--algorithm", "--seed", "--index-projection"}) {
      flags->profile_given = flags->profile_given || command->count(name) > 0;
    }
    ctl.action = [&ctl, flags]() -> Result<ExitCode> {
      CONDUCTOR_ASSIGN_OR_RETURN(RegistrationRequest request, MakeRequest(ctl, *flags));
      FillDefaults(request);
      CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.LiveClient("register"));
      CONDUCTOR_ASSIGN_OR_RETURN(const RegisterOutcome outcome, client->Register(request));
      ctl.Print(
          {{"status", "registered successfully"},
           {"instance_id", outcome.instance_id},
           {"already", outcome.already}},
          (outcome.already ? "already registered: " : "registered: ") + outcome.instance_id + "\n");
      return ExitCode::kOk;
    };
  });
}

void AddUnregisterCommand(CLI::App& app, Ctl& ctl) {
  auto key = std::make_shared<ServiceKey>();
  CLI::App* command =
      app.add_subcommand("unregister", "Stop a subscription and forget what it contributed");
  command->add_option("--instance-id", key->instance_id, "Routing identity")->required();
  command->add_option("--tenant", key->tenant_id, "Tenant")->capture_default_str();
  command->add_option("--dp-rank", key->dp_rank, "Data-parallel rank")->capture_default_str();
  command->footer(
      "\nExit code 1 when it is not registered.\n"
      "\nExample:\n  conductorctl unregister --instance-id vllm-0 --dp-rank 0");
  command->callback([&ctl, key] {
    ctl.action = [&ctl, key]() -> Result<ExitCode> {
      CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.LiveClient("unregister"));
      CONDUCTOR_ASSIGN_OR_RETURN(
          const std::string removed,
          client->Unregister(key->instance_id, key->tenant_id, key->dp_rank));
      ctl.Print(
          {{"status", "unregistered successfully"}, {"removed_instances", Json::array({removed})}},
          "unregistered: " + removed + "\n");
      return ExitCode::kOk;
    };
  });
}

}  // namespace conductor::cli
