// conductorctl verify: recomputes the state digest from snapshot and log and compares it, with the
// daemon's own at the same position, or, offline, with what each snapshot says of itself.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/ctl.h"
#include "cli/offline_state.h"
#include "cli/table.h"
#include "src/hex.h"

namespace conductor::cli {

namespace {

// A daemon may drop what is being read below a snapshot it has just made.
constexpr int kAttemptsMax = 3;

struct VerifyFlags {
  std::string expected;  // a digest from elsewhere; empty: none
  bool all_snapshots = false, from_log = false;
};

struct Comparison {
  std::string what;
  Seq seq = 0;
  Seq began_at = 0;      // the snapshot it was recomputed from; 0: the log's beginning
  std::string digest;    // recomputed
  std::string expected;  // empty: nothing to compare with
  bool Matches() const { return expected.empty() || digest == expected; }
};

Result<Comparison> Recompute(Ctl& ctl, const storage::RocksDbEventLog& log, const std::string& what,
                             const ReadStateOptions& options) {
  CONDUCTOR_ASSIGN_OR_RETURN(const RecoveredState recovered, ReadState(ctl, log, options));
  return Comparison{what, recovered.seq, recovered.snapshot_seq, Hex128(recovered.state->Digest()),
                    ""};
}

// 0 with --from-log: no snapshot is used.
Result<Seq> SnapshotsBelow(const VerifyFlags& flags, const storage::RocksDbEventLog& log) {
  if (!flags.from_log) return ~Seq{0};
  if (log.FirstSeq() == 1) return Seq{0};
  return MakeError(ErrorCode::kFailedPrecondition,
                   "--from-log: the log begins at " + std::to_string(log.FirstSeq()) +
                       ", what came before is in the snapshots only; leave --from-log out");
}

Result<Comparison> CompareWithDaemon(Ctl& ctl, const VerifyFlags& flags, const StatusView& status) {
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
  if (status.log_applied == 0) {
    return Comparison{"daemon", 0, 0, Hex128(StateMachine().Digest()), status.digest};
  }
  ReadStateOptions options;
  options.until = status.log_applied;
  CONDUCTOR_ASSIGN_OR_RETURN(options.snapshots_below, SnapshotsBelow(flags, **log));
  // One that was made since is of no use.
  options.snapshots_below = std::min(options.snapshots_below, status.log_applied + 1);
  CONDUCTOR_ASSIGN_OR_RETURN(Comparison comparison, Recompute(ctl, **log, "daemon", options));
  comparison.expected = status.digest;
  return comparison;
}

Result<std::vector<Comparison>> VerifyLive(Ctl& ctl, const VerifyFlags& flags) {
  CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
  for (int attempt = 1;; ++attempt) {
    CONDUCTOR_ASSIGN_OR_RETURN(const StatusView status, client->GetStatus());
    if (status.readiness.phase == "rebuilding" || status.readiness.phase == "loading_snapshot") {
      return tl::unexpected(Error{ErrorCode::kUnavailable,
                                  "the daemon is still rebuilding its index; ask again later",
                                  "not_ready", "", -1});
    }
    auto comparison = CompareWithDaemon(ctl, flags, status);
    if (comparison) return std::vector<Comparison>{std::move(*comparison)};
    if (attempt == kAttemptsMax) return tl::unexpected(comparison.error());
    CONDUCTOR_ASSIGN_OR_RETURN(const StatusView now, client->GetStatus());
    const bool moved = now.log_first != status.log_first || now.snapshot_seq != status.snapshot_seq;
    if (!moved) return tl::unexpected(comparison.error());
  }
}

// The snapshot against the records that led to it, from an older snapshot or the log's beginning.
// None: neither is there any more.
Result<std::optional<Comparison>> CompareWithSnapshot(Ctl& ctl, const storage::RocksDbEventLog& log,
                                                      const SnapshotInfo& snapshot,
                                                      const std::vector<SnapshotInfo>& all) {
  const bool reached =
      log.FirstSeq() == 1 || std::any_of(all.begin(), all.end(), [&](const SnapshotInfo& each) {
        return each.seq < snapshot.seq && each.damage.empty() && log.FirstSeq() <= each.seq + 1;
      });
  if (!reached || !snapshot.damage.empty() || snapshot.digest.empty()) return std::nullopt;
  CONDUCTOR_ASSIGN_OR_RETURN(Comparison comparison,
                             Recompute(ctl, log, "snapshot " + std::to_string(snapshot.seq),
                                       {.until = snapshot.seq, .snapshots_below = snapshot.seq}));
  comparison.expected = snapshot.digest;
  return comparison;
}

Result<std::vector<Comparison>> VerifyOffline(Ctl& ctl, const VerifyFlags& flags) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(ctl.data_dir));
  std::vector<Comparison> comparisons;
  CONDUCTOR_ASSIGN_OR_RETURN(const Seq below, SnapshotsBelow(flags, *log));
  CONDUCTOR_ASSIGN_OR_RETURN(Comparison whole,
                             Recompute(ctl, *log, "log", {.snapshots_below = below}));
  comparisons.push_back(whole);
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, log->ListSnapshots());
  if (flags.from_log && !snapshots.empty()) {
    CONDUCTOR_ASSIGN_OR_RETURN(Comparison other, Recompute(ctl, *log, "snapshot and log", {}));
    other.expected = std::exchange(other.digest, whole.digest);
    comparisons.push_back(std::move(other));
  }
  for (const SnapshotInfo& snapshot : snapshots) {
    if (!flags.all_snapshots && &snapshot != &snapshots.front()) break;
    CONDUCTOR_ASSIGN_OR_RETURN(auto comparison,
                               CompareWithSnapshot(ctl, *log, snapshot, snapshots));
    if (comparison) comparisons.push_back(std::move(*comparison));
  }
  return comparisons;
}

Result<ExitCode> RunVerify(Ctl& ctl, const VerifyFlags& flags) {
  CONDUCTOR_ASSIGN_OR_RETURN(std::vector<Comparison> comparisons,
                             ctl.offline() ? VerifyOffline(ctl, flags) : VerifyLive(ctl, flags));
  if (!flags.expected.empty()) {
    Comparison expected = comparisons.front();
    expected.what = "--expect";
    expected.expected = flags.expected;
    comparisons.push_back(std::move(expected));
  }
  bool match = true;
  Json json = {{"match", true}, {"comparisons", Json::array()}};
  Table table({"compared with", "seq", "began at", "digest recomputed", "digest there", "result"});
  for (const Comparison& each : comparisons) {
    match = match && each.Matches();
    json["comparisons"].push_back({{"with", each.what},
                                   {"seq", each.seq},
                                   {"digest", each.digest},
                                   {"expected", each.expected},
                                   {"match", each.Matches()},
                                   {"snapshot_seq", each.began_at}});
    const char* result = each.expected.empty() ? "read" : each.Matches() ? "equal" : "DIFFERENT";
    table.AddRow({each.what, std::to_string(each.seq),
                  each.began_at == 0 ? "log" : "snapshot " + std::to_string(each.began_at),
                  each.digest, each.expected, result});
  }
  json["match"] = match;
  ctl.Print(json, table.ToText());
  return match ? ExitCode::kOk : ExitCode::kNo;
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Ctl& ctl) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command =
      app.add_subcommand("verify", "Rebuild the state from snapshot and log, compare digests");
  command->add_option("--expect", flags->expected, "A digest to compare with, 32 hex digits");
  command->add_flag("--from-log", flags->from_log,
                    "Use no snapshot; the log must still begin at 1");
  command->add_flag("--all-snapshots", flags->all_snapshots,
                    "Offline: check every snapshot, not only the newest");
  command->footer(
      "\nWithout --data-dir the daemon's digest is compared, at the position it had when asked; "
      "its "
      "data\ndirectory must be here. Offline, a snapshot is checked against the records that led "
      "to "
      "it.\nOn a terminal a bar shows the progress; elsewhere --progress prints lines.\n"
      "Exit code 1 when digests differ, 4 when log or snapshots are damaged.\n"
      "\nExamples:\n"
      "  conductorctl verify\n"
      "  conductorctl --data-dir /var/lib/conductor verify --all-snapshots --progress");
  command->callback(
      [&ctl, flags] { ctl.action = [&ctl, flags] { return RunVerify(ctl, *flags); }; });
}

}  // namespace conductor::cli
