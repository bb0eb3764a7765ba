// conductorctl inspect log|streams|contexts|block: the log and the state, from the daemon or, with
// --data-dir, from the directory itself (also while a daemon runs).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/cmd_inspect.h"
#include "cli/ctl.h"
#include "cli/offline_state.h"
#include "cli/tokens.h"
#include "cli/views.h"
#include "src/service/state_views.h"

namespace conductor::cli {

namespace {

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Result<std::unique_ptr<StateMachine>> StateOf(Ctl& ctl) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(ctl.data_dir));
  CONDUCTOR_ASSIGN_OR_RETURN(RecoveredState recovered, ReadState(ctl, *log));
  return std::move(recovered.state);
}

Result<ExitCode> RunStreams(Ctl& ctl) {
  std::vector<ServiceView> services;
  if (ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto state, StateOf(ctl));
    services = ServicesOf(*state);
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    CONDUCTOR_ASSIGN_OR_RETURN(services, client->ListServices());
  }
  ctl.Print(ToJson(services), ToStreamTable(services));
  return ExitCode::kOk;
}

Result<ExitCode> RunContexts(Ctl& ctl) {
  std::vector<ContextView> contexts;
  if (ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto state, StateOf(ctl));
    contexts = ContextsOf(*state);
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    CONDUCTOR_ASSIGN_OR_RETURN(contexts, client->GetGlobalView());
  }
  ctl.Print(ToJson(contexts), ToTable(contexts));
  return ExitCode::kOk;
}

Result<ExitCode> RunBlock(Ctl& ctl, const std::string& text) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> hashes, ParseHashes(text));
  if (hashes.size() != 1) {
    return InvalidField("invalid_value", "HASH",
                        "HASH: expected one block hash, got " + std::to_string(hashes.size()));
  }
  std::vector<std::string> lines;
  if (ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto state, StateOf(ctl));
    lines = HoldersOfBlock(*state, hashes[0]);
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    CONDUCTOR_ASSIGN_OR_RETURN(lines, client->InspectBlock(hashes[0]));
  }
  ctl.Print({{"hash", hashes[0]}, {"holders", lines}},
            lines.empty() ? "nobody holds block " + std::to_string(hashes[0]) + "\n" : Join(lines));
  return lines.empty() ? ExitCode::kNo : ExitCode::kOk;
}

}  // namespace

void AddInspectCommand(CLI::App& app, Ctl& ctl) {
  CLI::App* inspect = app.add_subcommand("inspect", "The log and the state, live or offline");
  inspect->require_subcommand(1);
  inspect->footer(
      "\nExamples:\n"
      "  conductorctl inspect log --from 1 --count 10\n"
      "  conductorctl --data-dir /var/lib/conductor inspect streams\n"
      "  conductorctl inspect block 13480391264103518091");
  AddInspectLogCommand(*inspect, ctl);
  CLI::App* streams = inspect->add_subcommand("streams", "What the log says of each stream");
  streams->footer("\nExample:\n  conductorctl inspect streams");
  streams->callback([&ctl] { ctl.action = [&ctl] { return RunStreams(ctl); }; });
  CLI::App* contexts = inspect->add_subcommand("contexts", "The contexts of the index");
  contexts->footer("\nExample:\n  conductorctl --data-dir /var/lib/conductor inspect contexts");
  contexts->callback([&ctl] { ctl.action = [&ctl] { return RunContexts(ctl); }; });
  auto hash = std::make_shared<std::string>();
  CLI::App* block = inspect->add_subcommand("block", "Who holds a block, by its 64-bit hash");
  block->add_option("HASH", *hash, "Decimal, negative or 0x...")->required();
  block->footer(
      "\nExit code 1 when nobody holds it.\n"
      "\nExample:\n  conductorctl inspect block 0xbb14a1f4bdc4a40b");
  block->callback([&ctl, hash] { ctl.action = [&ctl, hash] { return RunBlock(ctl, *hash); }; });
}

}  // namespace conductor::cli
