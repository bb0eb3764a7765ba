// FaultFs: a file system for RocksDB that forgets what was not synced and fails on demand.
//
// It writes through to the real one and remembers, for each file, how much of it was synced, and
// which names are so new that their directory was not. CutPower makes every change fail from then
// on; RestorePower, called when the database is closed, takes away what a machine without power
// would have lost: bytes, new names and renames. Not modelled: lost deletions (durable at once).
// A sync that failed says nothing about those after it: what the file had not synced until then
// stays lost, even if a later sync succeeds.
// All methods are thread-safe.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

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

  // The write (or sync) of a file whose path has `part` in it fails with `error`, from the one
  // after `skip` successful ones on, until Heal.
  void FailWrites(const std::string& part, rocksdb::IOStatus error, int skip = 0);
  void FailSyncs(const std::string& part, rocksdb::IOStatus error, int skip = 0);
  void Heal();
  // Syncs of files whose path has `part` in it wait until Release.
  void HoldSyncs(const std::string& part);
  void WaitForHeldSync();
  void ReleaseSyncs();

  // Every operation that changes the disk is counted. The n-th (from 0) that the fault is about
  // fails; which file that was, or nothing while it was not reached, is in Hit().
  enum class Fault {
    kNoSpace,      // a write or a new file; all after it too, until Heal
    kShortWrite,   // half of it is written; then as kNoSpace
    kIoError,      // a write or a new file, once
    kSyncFailure,  // a sync of a file or of a directory, once
    kPowerCut,     // any; nothing works any more, until RestorePower
  };
  void FailAt(Fault fault, int n);
  std::string Hit();

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

  // For the files and directories handed out. `bytes` may come back smaller: a short write.
  rocksdb::IOStatus BeforeWrite(const std::string& path, std::size_t* bytes = nullptr);
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
    bool sync_failed = false;  // then `synced` stays
  };
  struct Failure {
    std::string part;
    rocksdb::IOStatus error;
    int skip = 0;
  };
  // A rename that the directory was not synced after.
  struct Rename {
    std::string from, to;
    bool from_was_new = false;
    std::optional<std::string> replaced;  // the bytes of what was there
  };
  enum class Operation { kWrite, kSync, kName };
  rocksdb::IOStatus Judge(std::optional<Failure>& failure, const std::string& path);
  rocksdb::IOStatus JudgeFault(Operation operation, const std::string& path, std::size_t* bytes);
  rocksdb::IOStatus BeforeName(const std::string& path);
  rocksdb::IOStatus CheckPower();
  void UndoRenames();
  void Restore(std::mt19937_64* random);

  std::mutex mutex_;  // guards everything below
  bool powered_ = true;
  std::map<std::string, FileState> files_;
  std::set<std::string> new_names_;
  std::vector<Rename> renames_;
  std::optional<Fault> fault_;
  int fault_countdown_ = 0;
  std::string hit_;
  std::optional<Failure> write_failure_;
  std::optional<Failure> sync_failure_;
  std::optional<std::string> held_part_;
  int held_syncs_ = 0;
  std::condition_variable changed_;
};

// An Env on that file system that never sleeps: RocksDB waits a second after each failed flush.
std::unique_ptr<rocksdb::Env> MakeFaultEnv(const std::shared_ptr<FaultFs>& fs);

}  // namespace conductor::storage
