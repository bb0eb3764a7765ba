// conductorctl view: the contexts of the index.
#include <CLI/CLI.hpp>

#include "cli/ctl.h"
#include "cli/views.h"

namespace conductor::cli {

void AddViewCommand(CLI::App& app, Ctl& ctl) {
  CLI::App* command =
      app.add_subcommand("view", "Contexts (tenant, model, adapter, block size) of the index");
  command->footer("\nExample:\n  conductorctl view");
  command->callback([&ctl] {
    ctl.action = [&ctl]() -> Result<ExitCode> {
      CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.LiveClient("view"));
      CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<ContextView> view, client->GetGlobalView());
      ctl.Print(ToJson(view), ToTable(view));
      return ExitCode::kOk;
    };
  });
}

}  // namespace conductor::cli
