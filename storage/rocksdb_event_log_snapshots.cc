// The half of RocksDbEventLog that is about what is kept: snapshots, checkpoints, and where the log
// begins.
#include <rocksdb/env.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/checkpoints.h"
#include "storage/log_retention.h"
#include "storage/log_store.h"
#include "storage/rocksdb_event_log.h"
#include "storage/snapshot_encoder.h"
#include "storage/snapshot_reader.h"
#include "storage/storage_error.h"

namespace conductor::storage {
namespace {

using ReadLock = std::shared_lock<std::shared_mutex>;
using RetentionLock = std::lock_guard<std::mutex>;

}  // namespace

void RocksDbEventLog::Warn(const std::string& line) const {
  if (options_.on_warning) options_.on_warning(line);
}

// A log that ends before a good snapshot lost its end, but no record that counts: the snapshot
// holds them. Their positions are not given to others. The caller is OpenStore.
Status RocksDbEventLog::GoOnBehind(const std::vector<SnapshotInfo>& snapshots) {
  for (const SnapshotInfo& snapshot : snapshots) {
    if (snapshot.seq <= LastSeq()) break;
    NullVisitor checks;
    Status whole = snapshots_.Read(snapshot.seq, checks);
    if (!whole) {
      Warn(whole.error().message);
      continue;
    }
    if (!options_.read_only) {
      const rocksdb::Status moved = WriteFirst(*store_, snapshot.seq + 1, /*sync=*/true);
      if (!moved.ok()) return tl::unexpected(FromRocksDb(moved, Named() + ": first record"));
    }
    store_->report.only_in_snapshot = snapshot.seq - LastSeq();
    store_->report.first = snapshot.seq + 1;
    store_->report.last = snapshot.seq;
    first_.store(store_->report.first, std::memory_order_release);
    last_.store(store_->report.last, std::memory_order_release);
    synced_.store(store_->report.last, std::memory_order_release);
    break;
  }
  return {};
}

// Failing is no error: nothing is wrong with the log, and the next drop tries again. (What is wrong
// with the disk, the next write says.)
void RocksDbEventLog::GiveBackSpace() {
  if (FirstSeq() == 1) return;
  const rocksdb::Status removed = RemoveFilesBelow(*store_, FirstSeq());
  if (!removed.ok()) {
    Warn(FromRocksDb(removed, Named() + ": removal of dropped records").message);
  }
}

Status RocksDbEventLog::DropBelow(Seq first) {
  const RetentionLock retention_lock(retention_mutex_);
  const ReadLock lock(store_mutex_);
  CONDUCTOR_RETURN_IF_ERROR(CheckWritable());
  const Seq synced = synced_.load(std::memory_order_acquire);
  if (first > synced + 1) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Named() + ": drop below record " + std::to_string(first) +
                         ", but the log is on disk up to " + std::to_string(synced));
  }
  const std::lock_guard<std::mutex> sync_lock(sync_mutex_);
  if (first > FirstSeq()) {
    const std::lock_guard<std::mutex> write_lock(write_mutex_);
    CONDUCTOR_RETURN_IF_ERROR(CheckWritable());
    // Synced below, where appends do not wait for the disk.
    const rocksdb::Status moved = WriteFirst(*store_, first, /*sync=*/false);
    // The write-ahead file is the log's too: what it did not take, or sync, ends the handle.
    if (!moved.ok()) return End(moved, "first record");
    first_.store(first, std::memory_order_release);
  }
  CONDUCTOR_RETURN_IF_ERROR(SyncFiles());
  GiveBackSpace();
  return {};
}

std::unique_ptr<ImageEncoder> RocksDbEventLog::NewEncoder() const {
  return std::make_unique<SnapshotEncoder>();
}

Result<std::unique_ptr<ImageFile>> RocksDbEventLog::CreateImage(Seq seq) {
  if (options_.read_only) {
    return MakeError(ErrorCode::kFailedPrecondition, Named() + " is open read-only");
  }
  return snapshots_.Create(seq, [this](Seq finished) -> Status {
    const Seq synced = synced_.load(std::memory_order_acquire);
    if (finished <= synced) return {};
    return MakeError(ErrorCode::kFailedPrecondition,
                     "snapshot " + snapshots_.PathOf(finished) + ": the log is on disk up to " +
                         std::to_string(synced) + ", expected the snapshot's position");
  });
}

Result<std::vector<SnapshotInfo>> RocksDbEventLog::ListSnapshots() const {
  return snapshots_.List();
}

Status RocksDbEventLog::ReadSnapshot(Seq seq, ImageVisitor& visitor) const {
  return snapshots_.Read(seq, visitor);
}

Status RocksDbEventLog::CheckMayRemove() const {
  if (owner_ != nullptr) return {};
  return MakeError(ErrorCode::kFailedPrecondition, Named() + " is open read-only");
}

// What lives that ended too early left behind.
Status RocksDbEventLog::RemoveLeftovers() {
  CONDUCTOR_RETURN_IF_ERROR(snapshots_.RemoveUnfinished());
  CONDUCTOR_RETURN_IF_ERROR(RemoveUnfinishedCheckpoints(options_.data_dir));
  if (options_.read_only) return {};
  // Whoever had a checkpoint made asks its maker to remove it, and that one is gone. Failing is no
  // error: nothing is wrong with the log.
  const auto removed =
      DeleteCheckpointsUpTo(options_.data_dir, std::numeric_limits<std::int64_t>::max());
  if (!removed) Warn(removed.error().message);
  return {};
}

Status RocksDbEventLog::RemoveSnapshot(Seq seq) {
  const RetentionLock lock(retention_mutex_);
  CONDUCTOR_RETURN_IF_ERROR(CheckMayRemove());
  return snapshots_.Remove(seq);
}

Status RocksDbEventLog::SetAside(Seq seq) {
  const RetentionLock lock(retention_mutex_);
  return snapshots_.SetAside(seq);
}

Result<SnapshotInfo> RocksDbEventLog::CreateCheckpoint() {
  const RetentionLock retention_lock(retention_mutex_);
  const ReadLock lock(store_mutex_);
  const std::lock_guard<std::mutex> sync_lock(sync_mutex_);
  CONDUCTOR_RETURN_IF_ERROR(SyncFiles());
  auto checkpoint = WriteCheckpoint(StoreOptions(), store_->db.get(), snapshots_);
  if (!checkpoint) {
    // The space of half a copy is what a full disk needs first.
    const Status removed = RemoveUnfinishedCheckpoints(options_.data_dir);
    if (!removed) Warn(removed.error().message);
  }
  return checkpoint;
}

Result<std::vector<SnapshotInfo>> RocksDbEventLog::ListCheckpoints() const {
  return FindCheckpoints(options_.data_dir);
}

Status RocksDbEventLog::RemoveCheckpoint(const std::string& path) {
  const RetentionLock lock(retention_mutex_);
  CONDUCTOR_RETURN_IF_ERROR(CheckMayRemove());
  return DeleteCheckpoint(options_.data_dir, path);
}

Result<std::vector<SnapshotInfo>> RocksDbEventLog::RemoveOldCheckpoints() {
  const RetentionLock lock(retention_mutex_);
  CONDUCTOR_RETURN_IF_ERROR(CheckMayRemove());
  const auto now_ms = static_cast<std::int64_t>(base_env_->NowMicros() / 1'000);
  return DeleteCheckpointsUpTo(options_.data_dir, now_ms - kCheckpointAgeMsMax);
}

}  // namespace conductor::storage
