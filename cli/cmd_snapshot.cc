// conductorctl snapshot create|list|prune|export|import: snapshots of the state, and complete
// copies of log and snapshots.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "cli/ctl.h"
#include "cli/snapshot_files.h"
#include "cli/views.h"

namespace conductor::cli {

namespace {

// What the service itself keeps.
constexpr std::uint32_t kKeepDefault = 2;
constexpr std::uint32_t kKeepMax = 1'000;

Result<std::vector<SnapshotInfo>> List(Ctl& ctl) {
  if (!ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    return client->ListSnapshots();
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(ctl.data_dir));
  return log->ListSnapshots();
}

Result<ExitCode> RunCreate(Ctl& ctl) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto writer, SnapshotWriter::Open(ctl));
  CONDUCTOR_ASSIGN_OR_RETURN(const SnapshotInfo snapshot, writer->CreateSnapshot());
  ctl.Print(ToJson(snapshot), ToTable(std::vector<SnapshotInfo>{snapshot}));
  return ExitCode::kOk;
}

Result<ExitCode> RunList(Ctl& ctl) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, List(ctl));
  ctl.Print(ToJson(snapshots), ToTable(snapshots));
  return ExitCode::kOk;
}

Result<ExitCode> RunPrune(Ctl& ctl, std::uint32_t keep) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto writer,
                             SnapshotWriter::Open(ctl, SnapshotWriter::Purpose::kRemoving));
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> removed, writer->PruneSnapshots(keep));
  ctl.Print(ToJson(removed),
            removed.empty() ? "nothing to remove\n" : "removed:\n" + ToTable(removed));
  return ExitCode::kOk;
}

Result<ExitCode> RunExport(Ctl& ctl, const std::string& directory) {
  CONDUCTOR_ASSIGN_OR_RETURN(const SnapshotInfo copy, ExportTo(ctl, directory));
  ctl.Print(ToJson(copy), "exported the log up to " + std::to_string(copy.seq) + ", " +
                              std::to_string(copy.bytes) + " bytes, to " + directory + "\n");
  return ExitCode::kOk;
}

Result<ExitCode> RunImport(Ctl& ctl, const std::string& directory, const std::string& digest) {
  if (!ctl.offline()) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     "snapshot import: needs --data-dir, the directory to create");
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const DirectoryContents found,
                             ImportFrom(ctl, directory, ctl.data_dir, digest));
  ctl.Print({{"seq", found.log_last},
             {"path", ctl.data_dir},
             {"log_first", found.log_first},
             {"snapshot_seq", found.snapshot_seq},
             {"registrations", found.registrations},
             {"blocks", found.blocks},
             {"digest", found.digest}},
            "imported into " + ctl.data_dir + ": " +
                (found.snapshot_seq == 0 ? "no snapshot"
                                         : "snapshot " + std::to_string(found.snapshot_seq)) +
                " and the log " + std::to_string(found.log_first) + ".." +
                std::to_string(found.log_last) + ", " + std::to_string(found.registrations) +
                " registrations, " + std::to_string(found.blocks) + " blocks, digest " +
                found.digest + "\n");
  return ExitCode::kOk;
}

void AddList(CLI::App& snapshot, Ctl& ctl) {
  CLI::App* create = snapshot.add_subcommand("create", "Write one of the state as it is now");
  create->footer(
      "\nReturns when it is on disk and was read back.\n"
      "\nExample:\n  conductorctl snapshot create");
  create->callback([&ctl] { ctl.action = [&ctl] { return RunCreate(ctl); }; });
  CLI::App* list = snapshot.add_subcommand("list", "Those there are, damaged ones too");
  list->footer("\nExample:\n  conductorctl snapshot list");
  list->callback([&ctl] { ctl.action = [&ctl] { return RunList(ctl); }; });

  auto keep = std::make_shared<std::uint32_t>(kKeepDefault);
  CLI::App* prune = snapshot.add_subcommand("prune", "Remove old and damaged ones");
  prune->add_option("--keep", *keep, "So many of the newest good ones stay")
      ->check(CLI::Range(1u, kKeepMax))
      ->capture_default_str();
  prune->footer(
      "\nAlso removes checkpoints that are older than an hour: what a killed export left.\n"
      "\nExample:\n  conductorctl snapshot prune --keep 1");
  prune->callback([&ctl, keep] { ctl.action = [&ctl, keep] { return RunPrune(ctl, *keep); }; });
}

void AddCopies(CLI::App& snapshot, Ctl& ctl) {
  auto directory = std::make_shared<std::string>();
  CLI::App* save =
      snapshot.add_subcommand("export", "Copy log and snapshots to DIR, also while it serves");
  save->add_option("DIR", *directory, "New or empty directory")->required();
  save->footer(
      "\nDIR is a data directory: a daemon can be started on it, here or elsewhere.\n"
      "\nExamples:\n"
      "  conductorctl snapshot export /backup/conductor-1\n"
      "  conductorctl --data-dir /var/lib/conductor snapshot export /backup/conductor-1");
  save->callback(
      [&ctl, directory] { ctl.action = [&ctl, directory] { return RunExport(ctl, *directory); }; });

  auto digest = std::make_shared<std::string>();
  CLI::App* load = snapshot.add_subcommand("import", "Make a data directory from an exported DIR");
  load->add_option("DIR", *directory, "What export wrote")->required();
  load->add_option("--expect", *digest, "The digest it must have, 32 hex digits");
  load->footer(
      "\nThe copy is read to its end and its digest is shown; a new or empty --data-dir only.\n"
      "Exit code 1 when the digest is not the expected one, 4 when the copy is damaged.\n"
      "\nExample:\n"
      "  conductorctl --data-dir /var/lib/conductor snapshot import /backup/conductor-1");
  load->callback([&ctl, directory, digest] {
    ctl.action = [&ctl, directory, digest] { return RunImport(ctl, *directory, *digest); };
  });
}

}  // namespace

void AddSnapshotCommand(CLI::App& app, Ctl& ctl) {
  CLI::App* snapshot = app.add_subcommand("snapshot", "Snapshots, backups, moving house");
  snapshot->require_subcommand(1);
  snapshot->footer(
      "\nWith --data-dir: by this process when no daemon owns the directory, else by that daemon.\n"
      "\nExamples:\n"
      "  conductorctl snapshot create\n"
      "  conductorctl snapshot list\n"
      "  conductorctl snapshot prune --keep 1\n"
      "  conductorctl snapshot export /backup/conductor-1\n"
      "  conductorctl --data-dir /var/lib/conductor snapshot import /backup/conductor-1");
  AddList(*snapshot, ctl);
  AddCopies(*snapshot, ctl);
}

}  // namespace conductor::cli
