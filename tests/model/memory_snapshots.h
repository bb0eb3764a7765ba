// MemorySnapshots: a SnapshotStore without a disk. Images are tapes; what the encoder hands over as
// bytes only stands for their pieces. A test decides what fails, what waits and what is damaged.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/snapshot_store.h"
#include "src/state/image_tape.h"

namespace conductor::model {

class MemorySnapshots final : public SnapshotStore {
 public:
  std::unique_ptr<ImageEncoder> NewEncoder() const override;
  Result<std::unique_ptr<ImageFile>> CreateImage(Seq seq) override;
  Result<std::vector<SnapshotInfo>> ListSnapshots() const override;
  Status ReadSnapshot(Seq seq, ImageVisitor& visitor) const override;
  Status RemoveSnapshot(Seq seq) override;
  Status SetAside(Seq seq) override;
  Result<SnapshotInfo> CreateCheckpoint() override;
  Result<std::vector<SnapshotInfo>> ListCheckpoints() const override;
  Status RemoveCheckpoint(const std::string& path) override;
  Result<std::vector<SnapshotInfo>> RemoveOldCheckpoints() override;

  // The next append to an image fails. (`finish`: its end instead.)
  void FailNext(Error error, bool finish = false);
  // Appends wait until Release.
  void Hold();
  void Release();
  void WaitForHeldAppend();
  // A checkpoint that the next RemoveOldCheckpoints removes.
  void AddOldCheckpoint(SnapshotInfo checkpoint);
  // Reading it fails; `seen`: a look at its ends shows it already.
  void Damage(Seq seq, bool seen);
  // A newer release wrote it.
  void MakeNewer(Seq seq);
  // Whole, but it cannot be read now.
  void MakeUnreadable(Seq seq, bool unreadable);
  std::vector<Seq> seqs() const;  // ascending
  bool AnyDamaged() const;
  std::vector<Seq> set_aside() const;  // in the order it was done
  // What a frame of the encoder weighs, whatever is in it.
  void SetFrameBytes(std::size_t bytes) { frame_bytes_ = bytes; }

 private:
  friend class MemoryImageFile;
  friend class MemoryEncoder;
  struct Kept {
    std::shared_ptr<ImageTape> tape;
    bool damaged = false, seen = false, newer = false, unreadable = false;
    // What is wrong with it; `read` to its end, or only looked at.
    std::optional<Error> Wrong(bool read) const;
  };

  mutable std::mutex mutex_;  // guards everything below
  mutable std::condition_variable changed_;
  mutable std::shared_ptr<ImageTape> tape_;  // of the newest encoder
  std::map<Seq, Kept> kept_;
  std::vector<Seq> set_aside_;
  std::vector<SnapshotInfo> old_checkpoints_;
  std::optional<Error> append_failure_, finish_failure_;
  bool held_ = false;
  int waiting_ = 0;
  std::size_t frame_bytes_ = 1;
};

}  // namespace conductor::model
