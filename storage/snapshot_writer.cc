#include "storage/snapshot_writer.h"

#include <rocksdb/env.h>

#include <utility>

#include "storage/env_files.h"
#include "storage/snapshot_format.h"
#include "storage/snapshot_reader.h"
#include "storage/storage_error.h"

namespace conductor::storage {
namespace {

// Handed to the disk as it comes, so that the sync at the end (and the log's own syncs meanwhile)
// do not wait for all of it.
constexpr std::uint64_t kHandOutBytes = 8u << 20;

}  // namespace

SnapshotWriter::SnapshotWriter(SnapshotFiles& files, Seq seq, std::function<Status(Seq)> may_finish)
    : files_(files),
      seq_(seq),
      may_finish_(std::move(may_finish)),
      path_(files.PathOf(seq)),
      growing_path_(path_ + kGrowingSuffix) {}

SnapshotWriter::~SnapshotWriter() {
  Abandon();
  files_.writing_.store(false, std::memory_order_release);
}

void SnapshotWriter::Abandon() {
  if (!std::exchange(growing_, false)) return;
  if (file_ != nullptr) file_->Close().PermitUncheckedError();
  file_.reset();
  // What cannot be removed now is removed at the next opening.
  files_.env_->DeleteFile(growing_path_).PermitUncheckedError();
}

Status SnapshotWriter::Open() {
  const rocksdb::Status opened =
      files_.env_->NewWritableFile(growing_path_, &file_, MakeEnvOptions());
  growing_ = true;  // also after an error: the file may be there
  if (!opened.ok()) return tl::unexpected(FromRocksDb(opened, "snapshot " + growing_path_));
  return {};
}

Status SnapshotWriter::CheckOpen() const {
  if (file_ != nullptr) return {};
  return MakeError(ErrorCode::kFailedPrecondition,
                   "snapshot " + path_ + ": finished, or given up after an error");
}

Status SnapshotWriter::Append(std::string_view frames) {
  CONDUCTOR_RETURN_IF_ERROR(CheckOpen());
  rocksdb::Status status = file_->Append(frames);
  bytes_ += frames.size();
  if (status.ok() && bytes_ - bytes_handed_out_ >= kHandOutBytes) {
    status = file_->RangeSync(bytes_handed_out_, bytes_ - bytes_handed_out_);
    bytes_handed_out_ = bytes_;
  }
  if (status.ok()) return {};
  Error error = FromRocksDb(status, "snapshot " + growing_path_ + ": write");
  Abandon();
  return tl::unexpected(std::move(error));
}

Status SnapshotWriter::WriteOut() {
  rocksdb::Status status = file_->Sync();
  // From here on reads come from the disk, not from what the kernel remembers.
  if (status.ok()) file_->InvalidateCache(0, 0).PermitUncheckedError();
  if (status.ok()) status = file_->Close();
  file_.reset();
  if (!status.ok()) {
    return tl::unexpected(FromRocksDb(status, "snapshot " + growing_path_ + ": sync"));
  }
  NullVisitor checks;
  return files_.CheckFile(seq_, growing_path_, checks);
}

Status SnapshotWriter::Publish() {
  CONDUCTOR_RETURN_IF_ERROR(may_finish_(seq_));
  const rocksdb::Status renamed = files_.env_->RenameFile(growing_path_, path_);
  if (!renamed.ok()) return tl::unexpected(FromRocksDb(renamed, "snapshot " + path_));
  Status synced = SyncDirectory(files_.env_, files_.directory_);
  // A name that may be gone after a power cut is no snapshot: nothing may be dropped for it.
  if (!synced) files_.env_->DeleteFile(path_).PermitUncheckedError();
  return synced;
}

Result<SnapshotInfo> SnapshotWriter::Finish() {
  CONDUCTOR_RETURN_IF_ERROR(CheckOpen());
  Status done = WriteOut();
  if (done) done = Publish();
  if (!done) {
    Abandon();
    return tl::unexpected(std::move(done).error());
  }
  growing_ = false;
  return files_.Look(seq_);
}

}  // namespace conductor::storage
