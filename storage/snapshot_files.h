// SnapshotFiles: the snapshots of a data directory, one file each: snapshots/SEQ.snapshot
// (docs/snapshot_format.md). All file operations go through the log's rocksdb::Env, so that a file
// system of the tests sees every one of them.
//
// A file gets its name when it is on disk and was read back; until then it is called
// SEQ.snapshot.growing. Thread-safe, but one file is written at a time. The files being written
// borrow this.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/snapshot_store.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace conductor::storage {

class SnapshotFiles {
 public:
  // `env` is borrowed; none: the default one.
  SnapshotFiles(const std::string& data_dir, rocksdb::Env* env);

  // Removes what a crash left unfinished. For the process that may write, before Create.
  Status RemoveUnfinished() const;

  // `may_finish` is asked before the file gets its name.
  Result<std::unique_ptr<ImageFile>> Create(Seq seq, std::function<Status(Seq)> may_finish);
  // Newest first. Of each the two ends are looked at.
  Result<std::vector<SnapshotInfo>> List() const;
  // kNotFound: there is none of that position. kDataLoss also when the disk cannot read it.
  Status Read(Seq seq, ImageVisitor& visitor) const;
  Status Remove(Seq seq) const;
  Status SetAside(Seq seq) const;
  // Links (or copies) those up to `last` into a data directory that is being made.
  Status LinkInto(const std::string& data_dir, Seq last) const;

  std::string PathOf(Seq seq) const;

 private:
  friend class SnapshotWriter;

  SnapshotInfo Look(Seq seq) const;
  Status CheckFile(Seq seq, const std::string& path, ImageVisitor& visitor) const;

  rocksdb::Env* const env_;
  const std::string data_dir_;
  const std::string directory_;
  std::atomic<bool> writing_{false};
};

}  // namespace conductor::storage
