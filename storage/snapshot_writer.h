// SnapshotWriter: the file of a snapshot while it grows. Made by SnapshotFiles::Create, which it
// borrows; one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/snapshot_store.h"
#include "storage/snapshot_files.h"

namespace rocksdb {
class WritableFile;
}  // namespace rocksdb

namespace conductor::storage {

class SnapshotWriter final : public ImageFile {
 public:
  SnapshotWriter(SnapshotFiles& files, Seq seq, std::function<Status(Seq)> may_finish);
  ~SnapshotWriter() override;

  Status Open();
  Status Append(std::string_view frames) override;
  Result<SnapshotInfo> Finish() override;

 private:
  Status CheckOpen() const;
  Status WriteOut();
  Status Publish();
  void Abandon();

  SnapshotFiles& files_;
  const Seq seq_;
  const std::function<Status(Seq)> may_finish_;
  const std::string path_, growing_path_;
  std::unique_ptr<rocksdb::WritableFile> file_;  // none: finished, or given up
  bool growing_ = false;                         // there is something to remove
  std::uint64_t bytes_ = 0, bytes_handed_out_ = 0;
};

}  // namespace conductor::storage
