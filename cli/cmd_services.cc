// conductorctl services: the registered publishers and how their streams are.
#include <CLI/CLI.hpp>

#include "cli/ctl.h"
#include "cli/views.h"

namespace conductor::cli {

void AddServicesCommand(CLI::App& app, Ctl& ctl) {
  CLI::App* command =
      app.add_subcommand("services", "Registered publishers and the state of their streams");
  command->footer("\nExample:\n  conductorctl -o json services");
  command->callback([&ctl] {
    ctl.action = [&ctl]() -> Result<ExitCode> {
      CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.LiveClient("services"));
      CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<ServiceView> services, client->ListServices());
      ctl.Print(ToJson(services), ToTable(services));
      return ExitCode::kOk;
    };
  });
}

}  // namespace conductor::cli
