// FaultFs: a file system for RocksDB that forgets what was not synced and fails on demand.
//
// It writes through to the real one and remembers, for each file, how much of it was synced, and
// which names are so new that their directory was not. CutPower makes every change fail from then
// on; RestorePower, called when the database is closed, takes away what a machine without power
// would have lost. Not modelled: lost renames and deletions (both count as durable at once).
// All methods are thread-safe.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>

namespace conductor::storage {

class FaultFs : public rocksdb::FileSystemWrapper {
 public:
  FaultFs() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultFs"; }

  void CutPower();
  // Everything that was not synced is gone.
  void RestorePower();
  // As after kill -9: the kernel still has what was written.
  void RestoreAfterKill();
  // Of each file a random part of what was not synced stays; now and then its end is zeros.
  void RestorePowerTorn(std::uint64_t seed);

  // The write (or sync) of a file whose name ends in `suffix` fails with `error`, from the one
  // after `skip` successful ones on, until Heal.
  void FailWrites(const std::string& suffix, rocksdb::IOStatus error, int skip = 0);
  void FailSyncs(const std::string& suffix, rocksdb::IOStatus error, int skip = 0);
  void Heal();

  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    Debug* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const Options& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 Debug* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const Options& options,
                               Debug* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const Options& options, Debug* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to, const Options& options,
                             Debug* debug) override;

  // For the files and directories handed out.
  rocksdb::IOStatus BeforeWrite(const std::string& path);
  rocksdb::IOStatus BeforeSync(const std::string& path);
  void AfterWrite(const std::string& path, std::uint64_t bytes);
  void AfterTruncate(const std::string& path, std::uint64_t size);
  void AfterSync(const std::string& path, std::uint64_t size);
  std::uint64_t Written(const std::string& path);
  void AfterDirectorySync(const std::string& directory);

 private:
  struct FileState {
    std::uint64_t written = 0;
    std::uint64_t synced = 0;  // Invariant: synced <= written.
  };
  struct Failure {
    std::string suffix;
    rocksdb::IOStatus error;
    int skip = 0;
  };
  rocksdb::IOStatus Judge(std::optional<Failure>& failure, const std::string& path);
  rocksdb::IOStatus CheckPower();
  void Restore(std::mt19937_64* random);

  std::mutex mutex_;  // guards everything below
  bool powered_ = true;
  std::map<std::string, FileState> files_;
  std::set<std::string> new_names_;
  std::optional<Failure> write_failure_;
  std::optional<Failure> sync_failure_;
};

}  // namespace conductor::storage
