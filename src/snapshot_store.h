// SnapshotStore: the port through which images (state/image.h) reach the disk and come back.
//
// A snapshot is one image in one file, named by its log position. It exists from ImageFile::Finish
// on, and only then: whatever a crash leaves before that is no snapshot and is removed at the next
// opening. Which snapshots are kept, and what of the log, is the service's decision.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/ports.h"
#include "src/result.h"
#include "src/state/image.h"
#include "src/types.h"

namespace conductor {

// Turns pieces into bytes. One thread, the one that owns the state.
class ImageEncoder : public ImageVisitor {
 public:
  // Bytes ready to be taken.
  virtual std::size_t size() const = 0;
  // What was encoded since the last call: whole frames, to be appended in the same order. After
  // OnEnd: the rest of the file.
  virtual std::string Take() = 0;
};

// A snapshot that is being written. One thread, not the encoder's. Destroyed without Finish, or
// after an error, it leaves nothing.
class ImageFile {
 public:
  virtual ~ImageFile() = default;
  virtual Status Append(std::string_view frames) = 0;
  // On disk, read back and found whole: now it is a snapshot. kFailedPrecondition: the log is not
  // on disk up to its position; sync it first, whatever the policy.
  virtual Result<SnapshotInfo> Finish() = 0;
};

// What an export needs at most to copy its checkpoint.
inline constexpr std::int64_t kCheckpointAgeMsMax = 3'600'000;

class SnapshotStore {
 public:
  virtual ~SnapshotStore() = default;

  virtual std::unique_ptr<ImageEncoder> NewEncoder() const = 0;
  // One at a time.
  virtual Result<std::unique_ptr<ImageFile>> CreateImage(Seq seq) = 0;

  // Newest first; damaged ones too, as far as a look at the file's two ends tells. Thread-safe.
  virtual Result<std::vector<SnapshotInfo>> ListSnapshots() const = 0;
  // Hands every piece to `visitor`, in the order of the file. kDataLoss: damaged, with the place.
  // kFailedPrecondition: a newer format. The visitor's errors are returned as they are.
  virtual Status ReadSnapshot(Seq seq, ImageVisitor& visitor) const = 0;
  // Removes the file of one snapshot.
  virtual Status RemoveSnapshot(Seq seq) = 0;
  // Sets a damaged one aside, under a name that is never read again, for whoever wants to look.
  virtual Status SetAside(Seq seq) = 0;

  // A complete, consistent copy of log and snapshots, in a new directory below the store's own,
  // that can be opened as a data directory. Each call makes one of its own. Thread-safe.
  virtual Result<SnapshotInfo> CreateCheckpoint() = 0;
  virtual Result<std::vector<SnapshotInfo>> ListCheckpoints() const = 0;
  // kNotFound: `path` is no checkpoint of this store.
  virtual Status RemoveCheckpoint(const std::string& path) = 0;
  // Removes those older than kCheckpointAgeMsMax: whoever had them made was killed. The result are
  // the removed ones.
  virtual Result<std::vector<SnapshotInfo>> RemoveOldCheckpoints() = 0;
};

}  // namespace conductor
