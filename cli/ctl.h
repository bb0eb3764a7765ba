// What every subcommand of conductorctl shares: the global options, the daemon or the data
// directory to ask, the output. A subcommand's Add...Command declares its options and leaves the
// action to run; RunCtl parses, runs it, and turns its error into text and exit code. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "cli/exit_code.h"
#include "cli/json_fields.h"
#include "cli/progress.h"
#include "rpc/client.h"
#include "storage/rocksdb_event_log.h"

namespace CLI {
class App;
}  // namespace CLI

namespace conductor::cli {

inline constexpr std::uint32_t kConnectTimeoutMs = 1'000;
inline constexpr std::uint32_t kRequestTimeoutMs = 10'000;
// A checkpoint waits for the disk.
inline constexpr std::uint32_t kSnapshotTimeoutMs = 300'000;

struct CtlStreams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
};

class Ctl {
 public:
  using Action = std::function<Result<ExitCode>()>;

  explicit Ctl(CtlStreams streams) : streams_(streams) {}

  // --- global options, filled by the parser
  // -------------------------------------------------------
  std::string address = "127.0.0.1:50052";
  bool address_given = false;
  std::string data_dir;  // empty: ask the daemon
  bool json = false;
  std::uint32_t timeout_ms = kRequestTimeoutMs;
  bool progress = false;  // plain lines where there is no terminal

  Action action;  // of the subcommand that was given

  bool offline() const { return !data_dir.empty() && !address_given; }
  // Connects on first use. `timeout_ms_min` raises the request timeout for slow calls.
  Result<rpc::RpcClient*> Client(std::uint32_t timeout_ms_min = 0);
  // kFailedPrecondition with a hint when --data-dir was given to a command that needs a daemon.
  Result<rpc::RpcClient*> LiveClient(const std::string& command);
  // The data directory, opened read-only. Errors are kDataLoss or kFailedPrecondition.
  static Result<std::unique_ptr<storage::RocksDbEventLog>> OpenLog(const std::string& data_dir);

  // `json` with -o json, else `text`.
  void Print(const Json& json_output, const std::string& text);
  // With -o json: the same on one line, for output without an end.
  void PrintLine(const Json& json_output, const std::string& text);
  // A line on stderr; the exit code is not touched.
  void Warn(const std::string& text);
  std::istream& in() { return streams_.in; }
  std::ostream& err() { return streams_.err; }
  ProgressStyle progress_style() const;

 private:
  CtlStreams streams_;
  std::unique_ptr<rpc::RpcClient> client_;
};

ExitCode CtlExitCode(const Error& error);

// The whole program. Never throws.
ExitCode RunCtl(int argc, const char* const* argv, CtlStreams streams);

void AddStatusCommand(CLI::App& app, Ctl& ctl);
void AddServicesCommand(CLI::App& app, Ctl& ctl);
void AddViewCommand(CLI::App& app, Ctl& ctl);
void AddQueryCommand(CLI::App& app, Ctl& ctl);
void AddRegisterCommand(CLI::App& app, Ctl& ctl);
void AddUnregisterCommand(CLI::App& app, Ctl& ctl);
void AddSnapshotCommand(CLI::App& app, Ctl& ctl);
void AddInspectCommand(CLI::App& app, Ctl& ctl);
void AddVerifyCommand(CLI::App& app, Ctl& ctl);
void AddDoctorCommand(CLI::App& app, Ctl& ctl);

}  // namespace conductor::cli
