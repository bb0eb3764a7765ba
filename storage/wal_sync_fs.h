// WalSyncFs: tells when RocksDB begins to sync a write-ahead file.
//
// RocksDB, as Debian builds it, aborts the process when it is told to sync a file whose last write
// has failed. Who syncs therefore keeps writes out, but not for as long as a disk takes: only until
// RocksDB has looked at the file and calls the file system.
//
// Passes everything through. Thread-safe.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace conductor::storage {

class WalSyncFs : public rocksdb::FileSystemWrapper {
 public:
  explicit WalSyncFs(const std::shared_ptr<rocksdb::FileSystem>& base)
      : rocksdb::FileSystemWrapper(base) {}
  const char* Name() const override { return "WalSyncFs"; }

  // Calls `begun` once, when this thread's next sync of that file (000012.log) begins. Forget: the
  // sync has ended, with or without that.
  void CallAtSync(const std::string& file, std::function<void()> begun);
  void Forget();

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;

  void BeforeSync(const std::string& path);  // for the files handed out

 private:
  struct Call {
    std::thread::id thread;
    std::string suffix;  // of the file's path
    std::function<void()> begun;
  };
  std::mutex mutex_;
  std::optional<Call> call_;  // guarded by mutex_
};

// `base` with that file system; borrowed, must outlive the result.
std::unique_ptr<rocksdb::Env> MakeEnvWith(const std::shared_ptr<WalSyncFs>& fs, rocksdb::Env* base);

}  // namespace conductor::storage
