#include "storage/wal_sync_fs.h"

#include <utility>

namespace conductor::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class WalFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WalFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path, WalSyncFs* fs)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), fs_(fs) {}

  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    fs_->BeforeSync(path_);
    return FSWritableFileOwnerWrapper::Sync(options, debug);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    fs_->BeforeSync(path_);
    return FSWritableFileOwnerWrapper::Fsync(options, debug);
  }

 private:
  const std::string path_;
  WalSyncFs* const fs_;  // outlives every file: the Env holds it
};

class EnvWithFs : public rocksdb::EnvWrapper {
 public:
  EnvWithFs(const std::shared_ptr<WalSyncFs>& fs, rocksdb::Env* base) : EnvWrapper(base) {
    file_system_ = fs;
    system_clock_ = base->GetSystemClock();
  }
  const char* Name() const override { return "EnvWithFs"; }
};

}  // namespace

void WalSyncFs::CallAtSync(const std::string& file, std::function<void()> begun) {
  const std::lock_guard<std::mutex> lock(mutex_);
  call_ = Call{std::this_thread::get_id(), "/" + file, std::move(begun)};
}

void WalSyncFs::Forget() {
  const std::lock_guard<std::mutex> lock(mutex_);
  call_.reset();
}

void WalSyncFs::BeforeSync(const std::string& path) {
  std::function<void()> begun;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!call_ || call_->thread != std::this_thread::get_id() || !path.ends_with(call_->suffix)) {
      return;
    }
    begun = std::move(call_->begun);
    call_.reset();
  }
  begun();
}

IOStatus WalSyncFs::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    IODebugContext* debug) {
  IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
  if (status.ok() && path.ends_with(".log")) {
    *file = std::make_unique<WalFile>(std::move(*file), path, this);
  }
  return status;
}

std::unique_ptr<rocksdb::Env> MakeEnvWith(const std::shared_ptr<WalSyncFs>& fs,
                                          rocksdb::Env* base) {
  return std::make_unique<EnvWithFs>(fs, base);
}

}  // namespace conductor::storage
