#include "tests/storage/fault_fs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "src/check.h"

namespace conductor::storage {
namespace {

using rocksdb::IOStatus;
using rocksdb::Slice;
using Options = rocksdb::IOOptions;
using Debug = rocksdb::IODebugContext;

constexpr std::uint64_t kSectorBytes = 512;

class FaultFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path, FaultFs* fs)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), fs_(fs) {}

  IOStatus Append(const Slice& data, const Options& options, Debug* debug) override {
    IOStatus status = fs_->BeforeWrite(path_);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Append(data, options, debug);
    if (status.ok()) fs_->AfterWrite(path_, data.size());
    return status;
  }
  IOStatus Append(const Slice& data, const Options& options, const rocksdb::DataVerificationInfo&,
                  Debug* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(std::uint64_t size, const Options& options, Debug* debug) override {
    IOStatus status = fs_->BeforeWrite(path_);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Truncate(size, options, debug);
    if (status.ok()) fs_->AfterTruncate(path_, size);
    return status;
  }
  IOStatus Sync(const Options& options, Debug* debug) override {
    const std::uint64_t size = fs_->Written(path_);  // what came before the sync began
    IOStatus status = fs_->BeforeSync(path_);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Flush(options, debug);
    if (status.ok()) fs_->AfterSync(path_, size);
    return status;
  }
  IOStatus Fsync(const Options& options, Debug* debug) override { return Sync(options, debug); }
  // Promises nothing, so that nothing is marked as synced.
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const Options&, Debug*) override {
    return IOStatus::OK();
  }

 private:
  const std::string path_;
  FaultFs* const fs_;
};

class FaultDirectory : public rocksdb::FSDirectory {
 public:
  FaultDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, std::string path, FaultFs* fs)
      : directory_(std::move(directory)), path_(std::move(path)), fs_(fs) {}

  IOStatus Fsync(const Options&, Debug*) override {
    IOStatus status = fs_->BeforeSync(path_ + "/");
    if (status.ok()) fs_->AfterDirectorySync(path_);
    return status;
  }
  std::size_t GetUniqueId(char* id, std::size_t bytes_max) const override {
    return directory_->GetUniqueId(id, bytes_max);
  }

 private:
  const std::unique_ptr<rocksdb::FSDirectory> directory_;
  const std::string path_;
  FaultFs* const fs_;
};

using Lock = std::lock_guard<std::mutex>;

std::string DirectoryOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

void WriteZeros(const std::string& path, std::uint64_t from, std::uint64_t bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  CHECK(file >= 0);
  const std::vector<char> zeros(bytes, '\0');
  CHECK(::pwrite(file, zeros.data(), zeros.size(), static_cast<off_t>(from)) ==
        static_cast<ssize_t>(bytes));
  ::close(file);
}

}  // namespace

void FaultFs::CutPower() {
  const Lock lock(mutex_);
  powered_ = false;
}

void FaultFs::RestorePower() {
  std::mt19937_64* nothing_stays = nullptr;
  Restore(nothing_stays);
}

void FaultFs::RestorePowerTorn(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Restore(&random);
}

void FaultFs::RestoreAfterKill() {
  const Lock lock(mutex_);
  files_.clear();
  new_names_.clear();
  powered_ = true;
}

void FaultFs::Restore(std::mt19937_64* random) {
  const Lock lock(mutex_);
  for (const auto& [path, state] : files_) {
    if (new_names_.contains(path)) {
      ::unlink(path.c_str());
      continue;
    }
    const std::uint64_t unsynced = state.written - state.synced;
    if (unsynced == 0) continue;
    const std::uint64_t kept = random == nullptr ? 0 : (*random)() % (unsynced + 1);
    CHECK(::truncate(path.c_str(), static_cast<off_t>(state.synced + kept)) == 0);
    if (kept != 0 && (*random)() % 2 == 0) {
      const std::uint64_t zeros = std::min(kept, kSectorBytes);
      WriteZeros(path, state.synced + kept - zeros, zeros);
    }
  }
  files_.clear();
  new_names_.clear();
  powered_ = true;
}

void FaultFs::FailWrites(const std::string& suffix, IOStatus error, int skip) {
  const Lock lock(mutex_);
  write_failure_ = Failure{suffix, std::move(error), skip};
}

void FaultFs::FailSyncs(const std::string& suffix, IOStatus error, int skip) {
  const Lock lock(mutex_);
  sync_failure_ = Failure{suffix, std::move(error), skip};
}

void FaultFs::Heal() {
  const Lock lock(mutex_);
  write_failure_.reset();
  sync_failure_.reset();
}

IOStatus FaultFs::CheckPower() {
  return powered_ ? IOStatus::OK() : IOStatus::IOError("no power");
}

IOStatus FaultFs::Judge(std::optional<Failure>& failure, const std::string& path) {
  if (!powered_) return CheckPower();
  if (!failure || !path.ends_with(failure->suffix)) return IOStatus::OK();
  if (failure->skip-- > 0) return IOStatus::OK();
  failure->skip = 0;
  return failure->error;
}

IOStatus FaultFs::BeforeWrite(const std::string& path) {
  const Lock lock(mutex_);
  return Judge(write_failure_, path);
}

IOStatus FaultFs::BeforeSync(const std::string& path) {
  const Lock lock(mutex_);
  return Judge(sync_failure_, path);
}

void FaultFs::AfterWrite(const std::string& path, std::uint64_t bytes) {
  const Lock lock(mutex_);
  files_[path].written += bytes;
}

void FaultFs::AfterTruncate(const std::string& path, std::uint64_t size) {
  const Lock lock(mutex_);
  FileState& state = files_[path];
  state.written = size;
  state.synced = std::min(state.synced, size);
}

void FaultFs::AfterSync(const std::string& path, std::uint64_t size) {
  const Lock lock(mutex_);
  FileState& state = files_[path];
  state.synced = std::max(state.synced, size);
}

std::uint64_t FaultFs::Written(const std::string& path) {
  const Lock lock(mutex_);
  return files_[path].written;
}

void FaultFs::AfterDirectorySync(const std::string& directory) {
  const Lock lock(mutex_);
  std::erase_if(new_names_, [&](const auto& path) { return DirectoryOf(path) == directory; });
}

IOStatus FaultFs::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                  std::unique_ptr<rocksdb::FSWritableFile>* file, Debug* debug) {
  IOStatus status = BeforeWrite(path);
  if (status.ok()) status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
  if (!status.ok()) return status;
  *file = std::make_unique<FaultFile>(std::move(*file), path, this);
  const Lock lock(mutex_);
  files_[path] = FileState{};
  new_names_.insert(path);
  return status;
}

IOStatus FaultFs::NewDirectory(const std::string& path, const Options& options,
                               std::unique_ptr<rocksdb::FSDirectory>* directory, Debug* debug) {
  IOStatus status = FileSystemWrapper::NewDirectory(path, options, directory, debug);
  if (!status.ok()) return status;
  *directory = std::make_unique<FaultDirectory>(std::move(*directory), path, this);
  return status;
}

IOStatus FaultFs::DeleteFile(const std::string& path, const Options& options, Debug* debug) {
  const Lock lock(mutex_);
  if (!powered_) return CheckPower();
  files_.erase(path);
  new_names_.erase(path);
  return FileSystemWrapper::DeleteFile(path, options, debug);
}

IOStatus FaultFs::RenameFile(const std::string& from, const std::string& to, const Options& options,
                             Debug* debug) {
  const Lock lock(mutex_);
  if (!powered_) return CheckPower();
  IOStatus status = FileSystemWrapper::RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  if (auto moved = files_.extract(from)) {
    files_.erase(to);
    moved.key() = to;
    files_.insert(std::move(moved));
  }
  new_names_.erase(from);
  return status;
}

IOStatus FaultFs::LinkFile(const std::string& from, const std::string& to, const Options& options,
                           Debug* debug) {
  const Lock lock(mutex_);
  if (!powered_) return CheckPower();
  return FileSystemWrapper::LinkFile(from, to, options, debug);
}

}  // namespace conductor::storage
