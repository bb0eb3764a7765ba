#include "cli/snapshot_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/copy_directory.h"
#include "cli/interrupt.h"
#include "cli/offline_state.h"
#include "cli/ports_file.h"
#include "src/hex.h"
#include "src/service/write_snapshot.h"
#include "storage/log_format.h"

namespace conductor::cli {

namespace {

class DaemonWriter final : public SnapshotWriter {
 public:
  explicit DaemonWriter(rpc::RpcClient& client) : client_(client) {}
  DaemonWriter(std::unique_ptr<rpc::RpcClient> client)
      : owned_(std::move(client)), client_(*owned_) {}

  Result<SnapshotInfo> CreateSnapshot() override { return client_.CreateSnapshot(); }
  Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t keep) override {
    return client_.PruneSnapshots(keep);
  }
  Result<SnapshotInfo> CreateCheckpoint() override { return client_.CreateCheckpoint(); }
  Status RemoveCheckpoint(const std::string& path) override {
    return client_.RemoveCheckpoint(path);
  }

 private:
  std::unique_ptr<rpc::RpcClient> owned_;
  rpc::RpcClient& client_;
};

class DirectoryWriter final : public SnapshotWriter {
 public:
  DirectoryWriter(Ctl& ctl, std::unique_ptr<storage::RocksDbEventLog> log)
      : ctl_(ctl), log_(std::move(log)) {}

  Result<SnapshotInfo> CreateSnapshot() override {
    CONDUCTOR_ASSIGN_OR_RETURN(RecoveredState recovered, ReadState(ctl_, *log_));
    return WriteSnapshot(*recovered.state, recovered.seq, *log_);
  }

  Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t keep) override {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, log_->ListSnapshots());
    // Read to its end before anything older goes: the ends of a file do not tell what is between.
    CONDUCTOR_ASSIGN_OR_RETURN(const RecoveredState recovered, ReadState(ctl_, *log_));
    const auto is_damaged = [&](const SnapshotInfo& each) {
      return each.IsDamaged() || std::find(recovered.damaged.begin(), recovered.damaged.end(),
                                           each.seq) != recovered.damaged.end();
    };
    const bool any_good =
        std::any_of(snapshots.begin(), snapshots.end(),
                    [&](const SnapshotInfo& each) { return each.IsGood() && !is_damaged(each); });
    std::vector<SnapshotInfo> removed;
    std::uint32_t good = 0;
    for (const SnapshotInfo& each : snapshots) {
      const bool damaged = is_damaged(each);
      if (!damaged && each.IsGood() && ++good <= std::max(keep, 1u)) continue;
      // One that cannot be read now, or not by this release, may be all there is one day.
      if (!any_good || (!damaged && !each.IsGood())) continue;
      CONDUCTOR_RETURN_IF_ERROR(log_->RemoveSnapshot(each.seq));
      removed.push_back(each);
    }
    CONDUCTOR_ASSIGN_OR_RETURN(const auto checkpoints, log_->RemoveOldCheckpoints());
    removed.insert(removed.end(), checkpoints.begin(), checkpoints.end());
    return removed;
  }

  Result<SnapshotInfo> CreateCheckpoint() override { return log_->CreateCheckpoint(); }
  Status RemoveCheckpoint(const std::string& path) override { return log_->RemoveCheckpoint(path); }

 private:
  Ctl& ctl_;
  std::unique_ptr<storage::RocksDbEventLog> log_;
};

std::string ReachableHost(const std::string& listen_address) {
  if (listen_address == "0.0.0.0") return "127.0.0.1";
  if (listen_address == "::" || listen_address == "[::]") return "[::1]";
  if (listen_address.find(':') != std::string::npos && listen_address.front() != '[') {
    return "[" + listen_address + "]";
  }
  return listen_address;
}

// The daemon that owns the directory, when its ports.json leads to one that says so.
Result<std::unique_ptr<rpc::RpcClient>> ClientOfOwner(const Ctl& ctl) {
  CONDUCTOR_ASSIGN_OR_RETURN(const PortsFile ports, ReadPortsFile(ctl.data_dir));
  const std::string address =
      ReachableHost(ports.listen_address) + ":" + std::to_string(ports.rpc_port);
  CONDUCTOR_ASSIGN_OR_RETURN(
      std::unique_ptr<rpc::RpcClient> client,
      rpc::RpcClient::Connect(address,
                              {kConnectTimeoutMs, std::max(ctl.timeout_ms, kSnapshotTimeoutMs)}));
  CONDUCTOR_ASSIGN_OR_RETURN(const StatusView status, client->GetStatus());
  std::error_code error;
  if (!std::filesystem::equivalent(status.data_dir, ctl.data_dir, error)) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     address + ": that daemon's data directory is " + status.data_dir);
  }
  return client;
}

}  // namespace

Result<std::unique_ptr<SnapshotWriter>> SnapshotWriter::Open(Ctl& ctl, Purpose purpose) {
  if (!ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client(kSnapshotTimeoutMs));
    return std::make_unique<DaemonWriter>(*client);
  }
  storage::RocksDbEventLogOptions options;
  options.data_dir = ctl.data_dir;
  options.create_if_missing = false;
  options.read_only = options.may_remove = purpose == Purpose::kRemoving;
  auto log = storage::RocksDbEventLog::Open(std::move(options));
  if (log) return std::make_unique<DirectoryWriter>(ctl, std::move(*log));
  const ErrorCode code = log.error().code;
  if (code == ErrorCode::kDataLoss || code == ErrorCode::kResourceExhausted) {
    return tl::unexpected(log.error());
  }
  if (auto owner = ClientOfOwner(ctl)) return std::make_unique<DaemonWriter>(std::move(*owner));
  return MakeError(ErrorCode::kFailedPrecondition,
                   log.error().message + "; while a daemon runs, ask it with --address");
}

Result<DirectoryContents> ReadContents(Ctl& ctl, const std::string& data_dir) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(data_dir));
  CONDUCTOR_ASSIGN_OR_RETURN(const RecoveredState recovered, ReadState(ctl, *log));
  DirectoryContents contents;
  contents.log_first = log->FirstSeq();
  contents.log_last = log->LastSeq();
  contents.snapshot_seq = recovered.snapshot_seq;
  contents.blocks = recovered.state->index().blocks();
  contents.registrations = recovered.state->streams().size();
  contents.digest = Hex128(recovered.state->Digest());
  return contents;
}

Result<SnapshotInfo> ExportTo(Ctl& ctl, const std::string& directory) {
  CONDUCTOR_RETURN_IF_ERROR(CheckTarget(directory));  // before anything is created
  CONDUCTOR_ASSIGN_OR_RETURN(const auto writer, SnapshotWriter::Open(ctl));
  const InterruptGuard guard;
  CONDUCTOR_ASSIGN_OR_RETURN(SnapshotInfo checkpoint, writer->CreateCheckpoint());
  CopyOptions options;
  options.interrupted = InterruptGuard::Interrupted;
  options.check = [](const std::string& copy) -> Status {
    CONDUCTOR_RETURN_IF_ERROR(Ctl::OpenLog(copy));
    return {};
  };
  const Status copied = CopyDirectory(checkpoint.path, directory, options);
  const Status removed = writer->RemoveCheckpoint(checkpoint.path);
  if (!removed) {
    ctl.Warn("checkpoint " + checkpoint.path + " stays behind: " + removed.error().message);
  }
  if (!copied) {
    Error error = copied.error();
    error.message += " (the daemon's files must be reachable from here)";
    return tl::unexpected(std::move(error));
  }
  checkpoint.path = directory;
  return checkpoint;
}

Result<DirectoryContents> ImportFrom(Ctl& ctl, const std::string& from, const std::string& data_dir,
                                     const std::string& digest) {
  CONDUCTOR_RETURN_IF_ERROR(CheckTarget(data_dir));
  CONDUCTOR_RETURN_IF_ERROR(Ctl::OpenLog(from));  // before anything is copied
  const InterruptGuard guard;
  DirectoryContents contents;
  CopyOptions options;
  options.leave_out = {storage::kOwnerFile, storage::kCheckpointsDirectory, kPortsFile};
  options.interrupted = InterruptGuard::Interrupted;
  options.check = [&](const std::string& copy) -> Status {
    CONDUCTOR_ASSIGN_OR_RETURN(contents, ReadContents(ctl, copy));
    if (digest.empty() || digest == contents.digest) return {};
    return MakeError(ErrorCode::kAborted, from + ": its digest is " + contents.digest +
                                              ", expected " + digest + "; nothing was imported");
  };
  CONDUCTOR_RETURN_IF_ERROR(CopyDirectory(from, data_dir, options));
  return contents;
}

}  // namespace conductor::cli
