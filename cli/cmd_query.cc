// conductorctl query: who has the prefix of this prompt?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/ctl.h"
#include "cli/tokens.h"
#include "cli/views.h"

namespace conductor::cli {

namespace {

struct QueryFlags {
  ContextKey context;
  std::string tokens, hashes, cache_salt;
  QueryOptions options;
};

Result<QueryAnswer> Ask(Ctl& ctl, const QueryFlags& flags) {
  CONDUCTOR_ASSIGN_OR_RETURN(
      const std::string text,
      ReadArgument(flags.hashes.empty() ? flags.tokens : flags.hashes, ctl.in()));
  if (!flags.hashes.empty()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> hashes, ParseHashes(text));
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.LiveClient("query"));
    return client->QueryByHash({flags.context, hashes, flags.options});
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> tokens, ParseTokens(text));
  CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.LiveClient("query"));
  return client->Query({flags.context, tokens, flags.cache_salt, {}, flags.options});
}

}  // namespace

void AddQueryCommand(CLI::App& app, Ctl& ctl) {
  auto flags = std::make_shared<QueryFlags>();
  flags->options.detail = true;
  CLI::App* command = app.add_subcommand("query", "Which instances hold the prefix of a prompt");
  command->add_option("--model", flags->context.model_name, "Model name")->required();
  command->add_option("--block-size", flags->context.block_size, "Tokens per block")->required();
  CLI::Option* tokens =
      command->add_option("--tokens", flags->tokens, "Token ids: 1,2,3 or @file or - for stdin");
  CLI::Option* hashes = command->add_option(
      "--hashes", flags->hashes, "Block hashes instead of tokens: decimal or 0x..., or @file, -");
  tokens->excludes(hashes);
  command->add_option("--tenant", flags->context.tenant_id, "Tenant")->capture_default_str();
  command->add_option("--lora", flags->context.lora_name, "Adapter name");
  command->add_option("--salt", flags->cache_salt, "Cache salt of the prompt")->excludes(hashes);
  command->add_option("--instance", flags->options.instance_id, "Only this instance");
  command->add_option("--top-k", flags->options.top_k, "At most this many instances");
  command->add_option("--min-tokens", flags->options.min_tokens,
                      "Only instances that match at least this many tokens");
  command->footer(
      "\nExit code 1 when no instance matches a token.\n"
      "\nExamples:\n"
      "  conductorctl query --model my-model --block-size 16 --tokens @prompt.txt\n"
      "  conductorctl query --model my-model --block-size 4 --tokens 1,2,3,4,5,6,7,8");
  command->callback([&ctl, flags, tokens, hashes] {
    if (tokens->count() + hashes->count() == 0) {
      throw CLI::RequiredError("--tokens or --hashes");
    }
    ctl.action = [&ctl, flags]() -> Result<ExitCode> {
      CONDUCTOR_ASSIGN_OR_RETURN(const QueryAnswer answer, Ask(ctl, *flags));
      ctl.Print(ToJson(answer), ToTable(answer));
      const bool hit = std::any_of(answer.instances.begin(), answer.instances.end(),
                                   [](const InstanceHits& hits) { return hits.best.disk > 0; });
      return hit ? ExitCode::kOk : ExitCode::kNo;
    };
  });
}

}  // namespace conductor::cli
