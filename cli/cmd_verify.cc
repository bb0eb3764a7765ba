// conductorctl verify: recomputes the state digest from the log alone and compares it, with the
// daemon's own at the same position, or, offline, with what each snapshot of the log gives.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "cli/ctl.h"
#include "cli/table.h"
#include "src/service/conductor_service.h"

namespace conductor::cli {

namespace {

struct VerifyFlags {
  std::string expected;  // a digest from elsewhere; empty: none
  bool all_snapshots = false;
};

struct Comparison {
  std::string what;
  Seq seq = 0;
  std::string digest;    // of the log
  std::string expected;  // empty: nothing to compare with
  bool Matches() const { return expected.empty() || digest == expected; }
};

Result<std::string> DigestAt(const EventLog& log, Seq seq) {
  return DigestOfLog(log, seq, nullptr);
}

Result<std::vector<Comparison>> VerifyLive(Ctl& ctl) {
  CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
  CONDUCTOR_ASSIGN_OR_RETURN(const StatusView status, client->GetStatus());
  if (status.readiness.phase == "rebuilding") {
    return tl::unexpected(Error{ErrorCode::kUnavailable,
                                "the daemon is still rebuilding its index; ask again later",
                                "not_ready", "", -1});
  }
  // Opened after the daemon was asked, so that it holds the position the daemon spoke of.
  const std::string directory = ctl.data_dir.empty() ? status.data_dir : ctl.data_dir;
  auto log = Ctl::OpenLog(directory);
  if (!log) {
    Error error = log.error();
    error.message += " (verify reads the daemon's log: run it where that directory is)";
    return tl::unexpected(std::move(error));
  }
  if ((*log)->LastSeq() < status.log_applied) {
    return MakeError(ErrorCode::kDataLoss,
                     directory + ": the log ends at " + std::to_string((*log)->LastSeq()) +
                         ", the daemon has applied " + std::to_string(status.log_applied));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(std::string digest, DigestAt(**log, status.log_applied));
  return std::vector<Comparison>{{"daemon", status.log_applied, std::move(digest), status.digest}};
}

Result<std::vector<Comparison>> VerifyOffline(const Ctl& ctl, const VerifyFlags& flags) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(ctl.data_dir));
  std::vector<Comparison> comparisons;
  CONDUCTOR_ASSIGN_OR_RETURN(std::string digest, DigestAt(*log, log->LastSeq()));
  comparisons.push_back({"log", log->LastSeq(), std::move(digest), ""});
  CONDUCTOR_ASSIGN_OR_RETURN(std::vector<SnapshotInfo> snapshots, log->ListCheckpoints());
  if (!flags.all_snapshots && snapshots.size() > 1) {
    snapshots.erase(snapshots.begin(), snapshots.end() - 1);
  }
  for (const SnapshotInfo& snapshot : snapshots) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto copy, Ctl::OpenLog(snapshot.path));
    CONDUCTOR_ASSIGN_OR_RETURN(std::string of_copy, DigestAt(*copy, copy->LastSeq()));
    CONDUCTOR_ASSIGN_OR_RETURN(std::string of_log, DigestAt(*log, copy->LastSeq()));
    comparisons.push_back({snapshot.path, copy->LastSeq(), std::move(of_log), std::move(of_copy)});
  }
  return comparisons;
}

Result<ExitCode> RunVerify(Ctl& ctl, const VerifyFlags& flags) {
  CONDUCTOR_ASSIGN_OR_RETURN(std::vector<Comparison> comparisons,
                             ctl.offline() ? VerifyOffline(ctl, flags) : VerifyLive(ctl));
  if (!flags.expected.empty()) {
    const Comparison& first = comparisons.front();
    comparisons.push_back({"--expect", first.seq, first.digest, flags.expected});
  }
  bool match = true;
  Json json = {{"match", true}, {"comparisons", Json::array()}};
  Table table({"compared with", "seq", "digest of the log", "digest there", "result"});
  for (const Comparison& each : comparisons) {
    match = match && each.Matches();
    json["comparisons"].push_back({{"with", each.what},
                                   {"seq", each.seq},
                                   {"digest", each.digest},
                                   {"expected", each.expected},
                                   {"match", each.Matches()}});
    const char* result = each.expected.empty() ? "read" : each.Matches() ? "equal" : "DIFFERENT";
    table.AddRow({each.what, std::to_string(each.seq), each.digest, each.expected, result});
  }
  json["match"] = match;
  ctl.Print(json, table.ToText());
  return match ? ExitCode::kOk : ExitCode::kNo;
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Ctl& ctl) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command =
      app.add_subcommand("verify", "Rebuild the state from the log and compare digests");
  command->add_option("--expect", flags->expected, "A digest to compare with, 32 hex digits");
  command->add_flag("--all-snapshots", flags->all_snapshots,
                    "Offline: compare every snapshot, not only the newest");
  command->footer(
      "\nWithout --data-dir the daemon's digest is compared; its data directory must be here.\n"
      "Exit code 1 when digests differ, 4 when the log is damaged.\n"
      "\nExamples:\n"
      "  conductorctl verify\n"
      "  conductorctl --data-dir /var/lib/conductor verify --all-snapshots");
  command->callback(
      [&ctl, flags] { ctl.action = [&ctl, flags] { return RunVerify(ctl, *flags); }; });
}

}  // namespace conductor::cli
