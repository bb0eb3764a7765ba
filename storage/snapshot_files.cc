#include "storage/snapshot_files.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "src/hex.h"
#include "storage/env_files.h"
#include "storage/snapshot_format.h"
#include "storage/snapshot_reader.h"
#include "storage/snapshot_writer.h"
#include "storage/storage_error.h"

namespace conductor::storage {
namespace {

std::optional<Seq> ParseName(std::string_view name) {
  if (!name.ends_with(kSnapshotSuffix)) return std::nullopt;
  name.remove_suffix(std::string_view(kSnapshotSuffix).size());
  if (name.size() != kSnapshotNameDigits) return std::nullopt;
  Seq seq = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), seq);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) return std::nullopt;
  return seq;
}

class FileSource final : public ByteSource {
 public:
  FileSource(rocksdb::SequentialFile* file, const std::string& path) : file_(file), path_(path) {}

  Result<std::size_t> Read(std::span<char> to) override {
    // A snapshot is read back beside the apply thread, which waits for a processor then: it gets
    // one between two frames, and not only when the scheduler's time is up.
    std::this_thread::yield();
    std::size_t filled = 0;
    while (filled < to.size()) {
      rocksdb::Slice bytes;
      const rocksdb::Status read = file_->Read(to.size() - filled, &bytes, to.data() + filled);
      // A disk that cannot give the bytes back has lost them.
      if (!read.ok()) {
        return MakeError(ErrorCode::kDataLoss, "snapshot " + path_ + ": " + read.ToString());
      }
      if (bytes.empty()) break;
      if (bytes.data() != to.data() + filled) {
        std::copy_n(bytes.data(), bytes.size(), to.data() + filled);
      }
      filled += bytes.size();
    }
    return filled;
  }

 private:
  rocksdb::SequentialFile* file_;
  const std::string& path_;
};

Result<std::string> ReadAt(rocksdb::RandomAccessFile* file, const std::string& path,
                           std::uint64_t offset, std::size_t count) {
  if (count == 0) return std::string();  // RocksDB calls that an error
  std::string bytes(count, '\0');
  rocksdb::Slice read_bytes;
  const rocksdb::Status read = file->Read(offset, count, &read_bytes, bytes.data());
  if (!read.ok()) {
    return MakeError(ErrorCode::kDataLoss, "snapshot " + path + ": " + read.ToString());
  }
  return read_bytes.ToString();
}

}  // namespace

SnapshotFiles::SnapshotFiles(const std::string& data_dir, rocksdb::Env* env)
    : env_(env != nullptr ? env : rocksdb::Env::Default()),
      data_dir_(data_dir),
      directory_(data_dir + "/" + kSnapshotsDirectory) {}

std::string SnapshotFiles::PathOf(Seq seq) const {
  char digits[kSnapshotNameDigits + 1];
  std::snprintf(digits, sizeof digits, "%020llu", static_cast<unsigned long long>(seq));
  return directory_ + "/" + digits + kSnapshotSuffix;
}

Status SnapshotFiles::RemoveUnfinished() const {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto names, NamesIn(env_, directory_));
  for (const std::string& name : names) {
    if (!name.ends_with(kGrowingSuffix)) continue;
    const std::string path = directory_ + "/" + name;
    const rocksdb::Status removed = env_->DeleteFile(path);
    if (!removed.ok()) {
      return tl::unexpected(FromRocksDb(removed, "removal of unfinished snapshot " + path));
    }
  }
  return {};
}

Result<std::unique_ptr<ImageFile>> SnapshotFiles::Create(Seq seq,
                                                         std::function<Status(Seq)> may_finish) {
  CONDUCTOR_RETURN_IF_ERROR(EnsureDirectory(env_, data_dir_, directory_));
  if (writing_.exchange(true, std::memory_order_acq_rel)) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     "snapshot " + PathOf(seq) + ": another one is being written");
  }
  auto writer = std::make_unique<SnapshotWriter>(*this, seq, std::move(may_finish));
  CONDUCTOR_RETURN_IF_ERROR(writer->Open());
  return std::unique_ptr<ImageFile>(std::move(writer));
}

SnapshotInfo SnapshotFiles::Look(Seq seq) const {
  SnapshotInfo info;
  info.seq = seq;
  info.path = PathOf(seq);
  const auto look = [&]() -> Result<ImageEnd> {
    rocksdb::Status status = env_->GetFileSize(info.path, &info.bytes);
    std::uint64_t modified_unix_s = 0;
    if (status.ok()) status = env_->GetFileModificationTime(info.path, &modified_unix_s);
    info.created_unix_ms = static_cast<std::int64_t>(modified_unix_s) * 1000;
    std::unique_ptr<rocksdb::RandomAccessFile> file;
    if (status.ok()) status = env_->NewRandomAccessFile(info.path, &file, MakeEnvOptions());
    if (!status.ok()) return tl::unexpected(FromRocksDb(status, "snapshot " + info.path));
    const std::uint64_t tail_bytes = std::min<std::uint64_t>(info.bytes, kEndFrameBytes);
    CONDUCTOR_ASSIGN_OR_RETURN(const std::string head,
                               ReadAt(file.get(), info.path, 0, kSnapshotHeaderBytes));
    CONDUCTOR_ASSIGN_OR_RETURN(const std::string tail,
                               ReadAt(file.get(), info.path, info.bytes - tail_bytes, tail_bytes));
    return ReadSnapshotEnds({info.path, seq, info.bytes}, {head, tail});
  };
  if (const auto end = look()) {
    info.blocks = end->blocks;
    info.digest = Hex128(end->digest);
  } else {
    info.damage = end.error().message;
    info.damage_code = end.error().code;
  }
  return info;
}

Result<std::vector<SnapshotInfo>> SnapshotFiles::List() const {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto names, NamesIn(env_, directory_));
  std::vector<SnapshotInfo> found;
  for (const std::string& name : names) {
    const std::optional<Seq> seq = ParseName(name);
    if (!seq) continue;
    SnapshotInfo info = Look(*seq);
    // Removed while we looked.
    if (!info.damage.empty() && env_->FileExists(info.path).IsNotFound()) continue;
    found.push_back(std::move(info));
  }
  std::sort(found.begin(), found.end(),
            [](const SnapshotInfo& a, const SnapshotInfo& b) { return a.seq > b.seq; });
  return found;
}

Status SnapshotFiles::CheckFile(Seq seq, const std::string& path, ImageVisitor& visitor) const {
  std::uint64_t bytes = 0;
  std::unique_ptr<rocksdb::SequentialFile> file;
  rocksdb::Status status = env_->GetFileSize(path, &bytes);
  if (status.ok()) status = env_->NewSequentialFile(path, &file, MakeEnvOptions());
  if (!status.ok()) return tl::unexpected(FromRocksDb(status, "snapshot " + path));
  FileSource source(file.get(), path);
  return ReadSnapshotBytes({path, seq, bytes}, source, visitor);
}

Status SnapshotFiles::Read(Seq seq, ImageVisitor& visitor) const {
  return CheckFile(seq, PathOf(seq), visitor);
}

Status SnapshotFiles::Remove(Seq seq) const {
  const rocksdb::Status removed = env_->DeleteFile(PathOf(seq));
  if (!removed.ok()) {
    return tl::unexpected(FromRocksDb(removed, "removal of snapshot " + PathOf(seq)));
  }
  return SyncDirectory(env_, directory_);
}

Status SnapshotFiles::SetAside(Seq seq) const {
  const std::string path = PathOf(seq);
  const rocksdb::Status renamed = env_->RenameFile(path, path + kDamagedSuffix);
  if (!renamed.ok()) {
    return tl::unexpected(FromRocksDb(renamed, "setting snapshot " + path + " aside"));
  }
  return SyncDirectory(env_, directory_);
}

Status SnapshotFiles::LinkInto(const std::string& data_dir, Seq last) const {
  const SnapshotFiles to(data_dir, env_);
  CONDUCTOR_ASSIGN_OR_RETURN(const auto names, NamesIn(env_, directory_));
  bool any = false;
  for (const std::string& name : names) {
    const std::optional<Seq> seq = ParseName(name);
    if (!seq || *seq > last) continue;
    if (!any) CONDUCTOR_RETURN_IF_ERROR(EnsureDirectory(env_, to.data_dir_, to.directory_));
    CONDUCTOR_RETURN_IF_ERROR(LinkOrCopy(env_, PathOf(*seq), to.PathOf(*seq)));
    any = true;
  }
  return any ? SyncDirectory(env_, to.directory_) : Status{};
}

}  // namespace conductor::storage
