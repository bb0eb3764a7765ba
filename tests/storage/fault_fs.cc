#include "tests/storage/fault_fs.h"

#include <fcntl.h>
#include <rocksdb/system_clock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
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
    std::size_t bytes = data.size();
    IOStatus status = fs_->BeforeWrite(path_, &bytes);
    if (!status.ok() && bytes == data.size()) return status;
    const Slice written(data.data(), bytes);
    IOStatus appended = FSWritableFileOwnerWrapper::Append(written, options, debug);
    if (appended.ok()) fs_->AfterWrite(path_, bytes);
    return status.ok() ? appended : status;
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
  // Reserving space ahead costs more than the rest of a test: memory is really filled with zeros.
  void PrepareWrite(std::size_t, std::size_t, const Options&, Debug*) override {}
  IOStatus Allocate(std::uint64_t, std::uint64_t, const Options&, Debug*) override {
    return IOStatus::OK();
  }
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

std::optional<std::string> ReadIfFile(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(file), {}};
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
  renames_.clear();
  fault_.reset();
  powered_ = true;
}

// What was renamed and not made durable has its old name again; what it replaced is back.
void FaultFs::UndoRenames() {
  for (auto rename = renames_.rbegin(); rename != renames_.rend(); ++rename) {
    if (::rename(rename->to.c_str(), rename->from.c_str()) != 0) continue;  // moved on since
    if (auto moved = files_.extract(rename->to)) {
      moved.key() = rename->from;
      files_.insert(std::move(moved));
    }
    if (rename->from_was_new) new_names_.insert(rename->from);
    if (rename->replaced) std::ofstream(rename->to, std::ios::binary) << *rename->replaced;
  }
  renames_.clear();
}

void FaultFs::Restore(std::mt19937_64* random) {
  const Lock lock(mutex_);
  UndoRenames();
  fault_.reset();
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

void FaultFs::FailWrites(const std::string& part, IOStatus error, int skip) {
  const Lock lock(mutex_);
  write_failure_ = Failure{part, std::move(error), skip};
}

void FaultFs::FailSyncs(const std::string& part, IOStatus error, int skip) {
  const Lock lock(mutex_);
  sync_failure_ = Failure{part, std::move(error), skip};
}

void FaultFs::Heal() {
  const Lock lock(mutex_);
  write_failure_.reset();
  sync_failure_.reset();
  fault_.reset();
}

void FaultFs::FailAt(Fault fault, int n) {
  const Lock lock(mutex_);
  fault_ = fault;
  fault_countdown_ = n;
  hit_.clear();
}

std::string FaultFs::Hit() {
  const Lock lock(mutex_);
  return hit_;
}

IOStatus FaultFs::CheckPower() {
  return powered_ ? IOStatus::OK() : IOStatus::IOError("no power");
}

IOStatus FaultFs::JudgeFault(Operation operation, const std::string& path, std::size_t* bytes) {
  if (!fault_) return IOStatus::OK();
  const bool meant = fault_ == Fault::kPowerCut ||
                     (operation == Operation::kSync) == (fault_ == Fault::kSyncFailure);
  const bool short_write = fault_ == Fault::kShortWrite && hit_.empty();
  if (!meant || (short_write && bytes == nullptr)) return IOStatus::OK();
  if (fault_countdown_-- > 0) return IOStatus::OK();
  if (hit_.empty()) hit_ = path;
  const Fault fault = *fault_;
  if (fault == Fault::kPowerCut) {
    powered_ = false;
    return CheckPower();
  }
  if (fault == Fault::kIoError || fault == Fault::kSyncFailure) {
    fault_.reset();
    if (fault == Fault::kSyncFailure) files_[path].sync_failed = true;
    return IOStatus::IOError("While writing to file: " + path, "Input/output error");
  }
  fault_countdown_ = 0;  // the disk stays full
  if (short_write) *bytes /= 2;
  return IOStatus::NoSpace("While appending to file: " + path, "No space left on device");
}

IOStatus FaultFs::Judge(std::optional<Failure>& failure, const std::string& path) {
  if (!powered_) return CheckPower();
  if (!failure || path.find(failure->part) == std::string::npos) return IOStatus::OK();
  if (failure->skip-- > 0) return IOStatus::OK();
  failure->skip = 0;
  return failure->error;
}

IOStatus FaultFs::BeforeWrite(const std::string& path, std::size_t* bytes) {
  const Lock lock(mutex_);
  IOStatus status = Judge(write_failure_, path);
  return status.ok() ? JudgeFault(Operation::kWrite, path, bytes) : status;
}

void FaultFs::HoldSyncs(const std::string& part) {
  const Lock lock(mutex_);
  held_part_ = part;
}

void FaultFs::WaitForHeldSync() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return held_syncs_ > 0; });
}

void FaultFs::ReleaseSyncs() {
  const Lock lock(mutex_);
  held_part_.reset();
  changed_.notify_all();
}

IOStatus FaultFs::BeforeSync(const std::string& path) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (held_part_ && path.find(*held_part_) != std::string::npos) {
    ++held_syncs_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_part_; });
    --held_syncs_;
  }
  IOStatus status = Judge(sync_failure_, path);
  if (status.ok()) return JudgeFault(Operation::kSync, path, nullptr);
  if (powered_) files_[path].sync_failed = true;
  return status;
}

// Renames, links and deletions need no space; only a power cut is about them. The caller has the
// lock.
IOStatus FaultFs::BeforeName(const std::string& path) {
  if (!powered_) return CheckPower();
  if (fault_ != Fault::kPowerCut) return IOStatus::OK();
  return JudgeFault(Operation::kName, path, nullptr);
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
  if (!state.sync_failed) state.synced = std::max(state.synced, size);
}

std::uint64_t FaultFs::Written(const std::string& path) {
  const Lock lock(mutex_);
  return files_[path].written;
}

void FaultFs::AfterDirectorySync(const std::string& directory) {
  const Lock lock(mutex_);
  std::erase_if(new_names_, [&](const auto& path) { return DirectoryOf(path) == directory; });
  std::erase_if(renames_, [&](const auto& rename) { return DirectoryOf(rename.to) == directory; });
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
  IOStatus status = BeforeName(path);
  if (!status.ok()) return status;
  files_.erase(path);
  new_names_.erase(path);
  std::erase_if(renames_, [&](const auto& rename) { return rename.to == path; });
  return FileSystemWrapper::DeleteFile(path, options, debug);
}

IOStatus FaultFs::RenameFile(const std::string& from, const std::string& to, const Options& options,
                             Debug* debug) {
  const Lock lock(mutex_);
  IOStatus status = BeforeName(to);
  if (!status.ok()) return status;
  Rename rename{from, to, new_names_.erase(from) != 0, ReadIfFile(to)};
  status = FileSystemWrapper::RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  renames_.push_back(std::move(rename));
  if (auto moved = files_.extract(from)) {
    files_.erase(to);
    moved.key() = to;
    files_.insert(std::move(moved));
  }
  return status;
}

IOStatus FaultFs::LinkFile(const std::string& from, const std::string& to, const Options& options,
                           Debug* debug) {
  const Lock lock(mutex_);
  IOStatus status = BeforeName(to);
  if (!status.ok()) return status;
  return FileSystemWrapper::LinkFile(from, to, options, debug);
}

namespace {

class SleeplessClock : public rocksdb::SystemClockWrapper {
 public:
  SleeplessClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "SleeplessClock"; }
  void SleepForMicroseconds(int) override {}
};

class FaultEnv : public rocksdb::EnvWrapper {
 public:
  explicit FaultEnv(const std::shared_ptr<FaultFs>& fs) : EnvWrapper(rocksdb::NewCompositeEnv(fs)) {
    file_system_ = fs;
    system_clock_ = std::make_shared<SleeplessClock>();
  }
  const char* Name() const override { return "FaultEnv"; }
};

}  // namespace

std::unique_ptr<rocksdb::Env> MakeFaultEnv(const std::shared_ptr<FaultFs>& fs) {
  return std::make_unique<FaultEnv>(fs);
}

}  // namespace conductor::storage
