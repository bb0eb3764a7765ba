#include "cli/ctl.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <utility>

#include "conductor_version.h"

namespace conductor::cli {

namespace {

constexpr char kDescription[] = "conductorctl: asks and administers a Conductor daemon.";

constexpr char kFooter[] = R"(
Examples:
  conductorctl status
  conductorctl --address 10.0.0.7:50052 -o json services
  conductorctl query --model my-model --block-size 16 --tokens 1,2,3,4
  conductorctl --data-dir ~/.mooncake/conductor inspect log --tail 20
  conductorctl snapshot export /backup/conductor-1
  conductorctl doctor

Exit codes: 0 fine, 1 the answer is "no", 2 usage, 3 cannot reach the daemon, 4 damaged data.
'conductorctl COMMAND --help' shows the options of a command and an example.)";

constexpr int kOpenAttemptsMax = 3;
constexpr std::uint32_t kTimeoutMsMax = 3'600'000;

Json ErrorJson(const Error& error) {
  Json json = {{"error", error.message}, {"reason", error.reason}};
  if (!error.field.empty()) json["field"] = error.field;
  if (error.index >= 0) json["index"] = error.index;
  return json;
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void AddGlobalOptions(CLI::App& app, Ctl& ctl, std::string* output) {
  app.footer(kFooter);
  app.set_version_flag("--version", "conductorctl " CONDUCTOR_VERSION " (" CONDUCTOR_COMMIT ")");
  app.add_option("--address", ctl.address, "The daemon's RPC address")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option(
         "--data-dir", ctl.data_dir,
         "Work on this data directory; what writes asks the daemon that owns it, if one does")
      ->type_name("DIR");
  app.add_option("-o,--output", *output, "table or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.add_option("--timeout-ms", ctl.timeout_ms, "How long one request may take")
      ->type_name("MS")
      ->check(CLI::Range(1u, kTimeoutMsMax))
      ->capture_default_str();
  app.add_flag("--progress", ctl.progress,
               "Show how far long work has come, also where stderr is no terminal");
  app.require_subcommand(1);
  app.fallthrough();
}

ExitCode Run(Ctl& ctl, CtlStreams streams) {
  const Result<ExitCode> result = ctl.action();
  if (result) return *result;
  streams.err << "conductorctl: " << result.error().message << "\n";
  if (ctl.json) streams.out << Dump(ErrorJson(result.error()));
  return CtlExitCode(result.error());
}

}  // namespace

Result<rpc::RpcClient*> Ctl::Client(std::uint32_t timeout_ms_min) {
  if (client_ == nullptr || timeout_ms_min > timeout_ms) {
    const rpc::RpcClient::Options options = {kConnectTimeoutMs,
                                             std::max(timeout_ms, timeout_ms_min)};
    CONDUCTOR_ASSIGN_OR_RETURN(client_, rpc::RpcClient::Connect(address, options));
  }
  return client_.get();
}

Result<rpc::RpcClient*> Ctl::LiveClient(const std::string& command) {
  if (offline()) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     command +
                         ": needs a running daemon (--address); with --data-dir there are "
                         "inspect, verify and snapshot");
  }
  return Client();
}

Result<std::unique_ptr<storage::RocksDbEventLog>> Ctl::OpenLog(const std::string& data_dir) {
  storage::RocksDbEventLogOptions options;
  options.data_dir = data_dir;
  options.create_if_missing = false;
  options.read_only = true;
  auto log = storage::RocksDbEventLog::Open(options);
  // A running daemon may remove a file between the moment it is found and the moment it is opened.
  for (int attempt = 1; !log && attempt < kOpenAttemptsMax; ++attempt) {
    log = storage::RocksDbEventLog::Open(options);
  }
  if (log || log.error().code == ErrorCode::kDataLoss) return log;
  return MakeError(ErrorCode::kFailedPrecondition, log.error().message);
}

void Ctl::Print(const Json& json_output, const std::string& text) {
  streams_.out << (json ? Dump(json_output) : text) << std::flush;
}

void Ctl::PrintLine(const Json& json_output, const std::string& text) {
  if (json) {
    streams_.out << json_output.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    streams_.out << text;
  }
  streams_.out << std::flush;
}

void Ctl::Warn(const std::string& text) {
  streams_.err << "conductorctl: warning: " << text << "\n" << std::flush;
}

ProgressStyle Ctl::progress_style() const {
  if (streams_.err_is_terminal) return ProgressStyle::kBar;
  return progress ? ProgressStyle::kLines : ProgressStyle::kNone;
}

ExitCode CtlExitCode(const Error& error) {
  switch (error.code) {
    case ErrorCode::kDataLoss:
      return ExitCode::kDamaged;
    case ErrorCode::kUnavailable:
      return error.reason.empty() ? ExitCode::kUnreachable : ExitCode::kNo;
    case ErrorCode::kDeadlineExceeded:
      return ExitCode::kUnreachable;
    case ErrorCode::kInvalidArgument:
      // A conflict with what is registered is an answer, not a slip of the command line.
      return error.reason == "invalid_registration" ? ExitCode::kNo : ExitCode::kUsage;
    case ErrorCode::kFailedPrecondition:
      return ExitCode::kUsage;
    default:
      return ExitCode::kNo;
  }
}

ExitCode RunCtl(int argc, const char* const* argv, CtlStreams streams) {
  Ctl ctl(streams);
  std::string output = "table";
  CLI::App app(kDescription, "conductorctl");
  AddGlobalOptions(app, ctl, &output);
  for (const auto add : {AddStatusCommand, AddServicesCommand, AddViewCommand, AddQueryCommand,
                         AddRegisterCommand, AddUnregisterCommand, AddSnapshotCommand,
                         AddInspectCommand, AddVerifyCommand, AddDoctorCommand}) {
    add(app, ctl);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success, streams.out, streams.err);
    return ExitCode::kOk;
  } catch (const CLI::Error& error) {
    streams.err << "conductorctl: " << error.what() << "\nRun with --help.\n";
    return ExitCode::kUsage;
  }
  ctl.json = output == "json";
  ctl.address_given = app.count("--address") > 0;
  return Run(ctl, streams);
}

}  // namespace conductor::cli
