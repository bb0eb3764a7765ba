// conductorctl status: phase, log, digest, sizes.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/ctl.h"
#include "cli/views.h"

namespace conductor::cli {

void AddStatusCommand(CLI::App& app, Ctl& ctl) {
  // shared_ptr, here and in the other commands: the parser and the action hold the options.
  auto ready = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("status", "Phase, log position, digest, sizes");
  command->add_flag("--ready", *ready, "Exit with 1 unless the daemon is ready");
  command->footer("\nExample:\n  conductorctl status --ready && echo serving");
  command->callback([&ctl, ready] {
    ctl.action = [&ctl, ready]() -> Result<ExitCode> {
      CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.LiveClient("status"));
      CONDUCTOR_ASSIGN_OR_RETURN(const StatusView status, client->GetStatus());
      ctl.Print(ToJson(status), ToTable(status));
      return *ready && !status.readiness.ready ? ExitCode::kNo : ExitCode::kOk;
    };
  });
}

}  // namespace conductor::cli
