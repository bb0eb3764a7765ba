// What `snapshot` does to data directories: through the daemon that owns one, or by itself when
// nobody does. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/ctl.h"
#include "src/ports.h"
#include "src/result.h"

namespace conductor::cli {

// Who may write to a data directory: the daemon (asked through --address, or found through the
// directory's ports.json while it owns the one of --data-dir), else this process.
class SnapshotWriter {
 public:
  virtual ~SnapshotWriter() = default;
  // For kRemoving a directory nobody owns is opened without writing to it: on a full disk too.
  // CreateSnapshot and CreateCheckpoint fail then.
  enum class Purpose { kWriting, kRemoving };
  static Result<std::unique_ptr<SnapshotWriter>> Open(Ctl& ctl,
                                                      Purpose purpose = Purpose::kWriting);

  virtual Result<SnapshotInfo> CreateSnapshot() = 0;
  // Checkpoints that a killed export left too; all that is gone is in the result.
  virtual Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t keep) = 0;
  virtual Result<SnapshotInfo> CreateCheckpoint() = 0;
  virtual Status RemoveCheckpoint(const std::string& path) = 0;
};

// What a directory was found to hold, read from end to end.
struct DirectoryContents {
  Seq log_first = 0, log_last = 0;
  Seq snapshot_seq = 0;  // where the recovery began; 0: at the log's start
  std::uint64_t blocks = 0, registrations = 0;
  std::string digest;  // at log_last
};
Result<DirectoryContents> ReadContents(Ctl& ctl, const std::string& data_dir);

// A checkpoint copied to `directory`, which must be new or empty; the checkpoint is gone
// afterwards, whatever happened.
Result<SnapshotInfo> ExportTo(Ctl& ctl, const std::string& directory);

// `from` copied to `data_dir`, which must be new or empty, and read there. `digest`: what has to be
// found; empty: nothing is expected.
Result<DirectoryContents> ImportFrom(Ctl& ctl, const std::string& from, const std::string& data_dir,
                                     const std::string& digest);

}  // namespace conductor::cli
