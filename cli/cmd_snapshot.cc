// conductorctl snapshot create|list|export|import: complete copies of the log.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "cli/copy_directory.h"
#include "cli/ctl.h"
#include "cli/text.h"
#include "cli/views.h"

namespace conductor::cli {

namespace {

// By the daemon, or by this process when the directory has no owner.
Result<SnapshotInfo> Create(Ctl& ctl) {
  if (!ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client(kSnapshotTimeoutMs));
    return client->CreateSnapshot();
  }
  storage::RocksDbEventLogOptions options;
  options.data_dir = ctl.data_dir;
  options.create_if_missing = false;
  auto log = storage::RocksDbEventLog::Open(std::move(options));
  if (log) return (*log)->CreateCheckpoint();
  if (log.error().code == ErrorCode::kDataLoss) return tl::unexpected(log.error());
  return MakeError(ErrorCode::kFailedPrecondition,
                   log.error().message + "; while a daemon runs, ask it with --address");
}

Result<std::vector<SnapshotInfo>> List(Ctl& ctl) {
  if (!ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    return client->ListSnapshots();
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(ctl.data_dir));
  return log->ListCheckpoints();
}

Result<ExitCode> RunCreate(Ctl& ctl) {
  CONDUCTOR_ASSIGN_OR_RETURN(const SnapshotInfo snapshot, Create(ctl));
  ctl.Print(ToJson(snapshot), ToTable(std::vector<SnapshotInfo>{snapshot}));
  return ExitCode::kOk;
}

Result<ExitCode> RunList(Ctl& ctl) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, List(ctl));
  ctl.Print(ToJson(snapshots), ToTable(snapshots));
  return ExitCode::kOk;
}

Result<ExitCode> RunExport(Ctl& ctl, const std::string& directory) {
  CONDUCTOR_RETURN_IF_ERROR(CheckTarget(directory));  // before anything is created
  CONDUCTOR_ASSIGN_OR_RETURN(SnapshotInfo snapshot, Create(ctl));
  if (Status copied = CopyDirectory(snapshot.path, directory); !copied) {
    Error error = copied.error();
    error.message += " (the daemon's files must be reachable from here)";
    return tl::unexpected(std::move(error));
  }
  snapshot.path = directory;
  ctl.Print(ToJson(snapshot), ToTable(std::vector<SnapshotInfo>{snapshot}));
  return ExitCode::kOk;
}

Result<ExitCode> RunImport(Ctl& ctl, const std::string& directory) {
  if (!ctl.offline()) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     "snapshot import: needs --data-dir, the directory to create");
  }
  Seq last = 0;
  {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(directory));
    last = log->LastSeq();
  }
  CONDUCTOR_RETURN_IF_ERROR(CopyDirectory(directory, ctl.data_dir));
  ctl.Print({{"seq", last}, {"path", ctl.data_dir}},
            "imported the log up to " + std::to_string(last) + " into " + ctl.data_dir + "\n");
  return ExitCode::kOk;
}

}  // namespace

void AddSnapshotCommand(CLI::App& app, Ctl& ctl) {
  CLI::App* snapshot = app.add_subcommand("snapshot", "Complete copies of the log");
  snapshot->require_subcommand(1);
  snapshot->footer(
      "\nExamples:\n"
      "  conductorctl snapshot create\n"
      "  conductorctl snapshot list\n"
      "  conductorctl snapshot export /backup/conductor-1\n"
      "  conductorctl --data-dir /var/lib/conductor snapshot import /backup/conductor-1");
  CLI::App* create = snapshot->add_subcommand("create", "Write one below the data directory");
  create->footer("\nExample:\n  conductorctl snapshot create");
  create->callback([&ctl] { ctl.action = [&ctl] { return RunCreate(ctl); }; });
  CLI::App* list = snapshot->add_subcommand("list", "Those below the data directory");
  list->footer("\nExample:\n  conductorctl snapshot list");
  list->callback([&ctl] { ctl.action = [&ctl] { return RunList(ctl); }; });

  auto directory = std::make_shared<std::string>();
  CLI::App* save = snapshot->add_subcommand("export", "Create one and copy it to DIR");
  save->add_option("DIR", *directory, "New or empty directory")->required();
  save->footer("\nExample:\n  conductorctl snapshot export /backup/conductor-1");
  save->callback(
      [&ctl, directory] { ctl.action = [&ctl, directory] { return RunExport(ctl, *directory); }; });
  CLI::App* load = snapshot->add_subcommand("import", "Make a data directory from an exported DIR");
  load->add_option("DIR", *directory, "What export wrote")->required();
  load->footer(
      "\nExample:\n"
      "  conductorctl --data-dir /var/lib/conductor snapshot import /backup/conductor-1");
  load->callback(
      [&ctl, directory] { ctl.action = [&ctl, directory] { return RunImport(ctl, *directory); }; });
}

}  // namespace conductor::cli
