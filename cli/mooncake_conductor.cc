// mooncake_conductor: the daemon. Reads what it was started with, then runs until it is told to
// stop (daemon.h).
#include <cstdio>

#include "cli/daemon.h"
#include "cli/logging.h"
#include "cli/process.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "rpc/rpc_server.h"

using conductor::LogLevel;
using conductor::cli::ExitCode;
using conductor::cli::LogLine;

int main(int argc, char** argv) {
  // Before any thread, in this order: threads inherit the signal mask, and gRPC may start some.
  auto signals = conductor::cli::StopSignals::Open();
  conductor::rpc::InitializeRpcProcess();
  const auto line = conductor::cli::ReadCommandLine(argc, argv);
  if (!line.settings) {
    std::fputs(line.text.c_str(), line.exit_code == ExitCode::kOk ? stdout : stderr);
    return static_cast<int>(line.exit_code);
  }
  if (line.settings->check_only) {
    std::puts("configuration is valid");
    return static_cast<int>(ExitCode::kOk);
  }
  if (!signals) {
    std::fprintf(stderr, "mooncake_conductor: %s\n", signals.error().message.c_str());
    return static_cast<int>(ExitCode::kUsage);
  }
  conductor::cli::StartLogging(line.settings->log_level);
  if (const auto limit = conductor::cli::RaiseOpenFilesLimit(); !limit) {
    LogLine(LogLevel::kWarn, "event=open_files_limit_not_raised reason=" +
                                 conductor::cli::LogValue(limit.error().message));
  }
  const ExitCode code = conductor::cli::RunDaemon(*line.settings, *signals);
  conductor::cli::StopLogging();
  return static_cast<int>(code);
}
