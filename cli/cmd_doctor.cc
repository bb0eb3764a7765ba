// conductorctl doctor: why are there no hits?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/ctl.h"
#include "cli/doctor.h"
#include "cli/tokens.h"

namespace conductor::cli {

namespace {

struct DoctorFlags {
  ContextKey context;
  std::string tokens, cache_salt;
  bool model_given = false, block_size_given = false, tokens_given = false;
};

Result<Probe> MakeProbe(Ctl& ctl, rpc::RpcClient& client, const DoctorFlags& flags,
                        const std::vector<ContextView>& contexts) {
  Probe probe;
  probe.context = flags.context;
  probe.block_size_given = flags.block_size_given;
  if (!flags.tokens_given) return probe;
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string text, ReadArgument(flags.tokens, ctl.in()));
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> tokens, ParseTokens(text));
  probe.token_count = tokens.size();
  if (!flags.block_size_given) {
    // The only block size there is for this model, when there is only one.
    for (const ContextView& view : contexts) {
      const ContextKey& key = view.key;
      if (key.model_name != probe.context.model_name || key.tenant_id != probe.context.tenant_id ||
          key.lora_name != probe.context.lora_name) {
        continue;
      }
      if (probe.context.block_size != 0) {
        return InvalidField("missing", "--block-size",
                            "--block-size: required, the model has several");
      }
      probe.context.block_size = key.block_size;
    }
    if (probe.context.block_size == 0) return probe;  // an unknown context, which is the finding
  }
  PromptQuery query{probe.context, tokens, flags.cache_salt, {}, {}};
  query.options.detail = true;
  CONDUCTOR_ASSIGN_OR_RETURN(probe.answer, client.Query(query));
  return probe;
}

Result<DoctorInput> Examine(Ctl& ctl, const DoctorFlags& flags) {
  CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.LiveClient("doctor"));
  DoctorInput input;
  CONDUCTOR_ASSIGN_OR_RETURN(input.status, client->GetStatus());
  auto services = client->ListServices();
  // While it rebuilds there is nothing to list, and that is the finding.
  if (!services && services.error().reason == "not_ready") return input;
  if (!services) return tl::unexpected(services.error());
  input.services = std::move(*services);
  CONDUCTOR_ASSIGN_OR_RETURN(input.contexts, client->GetGlobalView());
  if (flags.model_given) {
    CONDUCTOR_ASSIGN_OR_RETURN(input.probe, MakeProbe(ctl, *client, flags, input.contexts));
  }
  return input;
}

Result<ExitCode> RunDoctor(Ctl& ctl, const DoctorFlags& flags) {
  CONDUCTOR_ASSIGN_OR_RETURN(const DoctorInput input, Examine(ctl, flags));
  const std::vector<Finding> findings = Diagnose(input);
  const bool healthy = std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kProblem;
  });
  Json json = {{"healthy", healthy}, {"findings", Json::array()}};
  std::string text;
  for (const Finding& finding : findings) {
    json["findings"].push_back({{"severity", ToString(finding.severity)},
                                {"code", finding.code},
                                {"subject", finding.subject},
                                {"text", finding.text}});
    text += std::string(ToString(finding.severity)) + " " + finding.code +
            (finding.subject.empty() ? "" : " [" + finding.subject + "]") + "\n    " +
            finding.text + "\n";
  }
  text += healthy ? "no problem found: " + std::to_string(input.services.size()) + " publishers, " +
                        std::to_string(input.status.blocks) + " blocks\n"
                  : std::string();
  ctl.Print(json, text);
  return healthy ? ExitCode::kOk : ExitCode::kNo;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Ctl& ctl) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = app.add_subcommand("doctor", "Why are there no hits?");
  CLI::Option* model =
      command->add_option("--model", flags->context.model_name, "Model of a query that misses");
  CLI::Option* block_size =
      command->add_option("--block-size", flags->context.block_size, "Its block size");
  CLI::Option* tokens =
      command->add_option("--tokens", flags->tokens, "Its prompt: 1,2,3 or @file or - for stdin");
  command->add_option("--tenant", flags->context.tenant_id, "Its tenant")->capture_default_str();
  command->add_option("--lora", flags->context.lora_name, "Its adapter");
  command->add_option("--salt", flags->cache_salt, "Its cache salt")->needs(tokens);
  block_size->needs(model);
  tokens->needs(model);
  command->footer(
      "\nExit code 1 when a problem was found.\n"
      "\nExamples:\n"
      "  conductorctl doctor\n"
      "  conductorctl doctor --model my-model --block-size 16 --tokens @prompt.txt");
  command->callback([&ctl, flags, model, block_size, tokens] {
    flags->model_given = model->count() > 0;
    flags->block_size_given = block_size->count() > 0;
    flags->tokens_given = tokens->count() > 0;
    ctl.action = [&ctl, flags] { return RunDoctor(ctl, *flags); };
  });
}

}  // namespace conductor::cli
