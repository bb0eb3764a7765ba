// A store's snapshots below one position, for reading: what `verify` starts from when it checks the
// snapshot at that position against the records that led to it. Borrows the store; as thread-safe.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/snapshot_store.h"

namespace conductor::cli {

class OlderSnapshots final : public SnapshotStore {
 public:
  // 0: none are visible. `store` must outlive this.
  OlderSnapshots(const SnapshotStore& store, Seq below) : store_(store), below_(below) {}

  Result<std::vector<SnapshotInfo>> ListSnapshots() const override {
    auto snapshots = store_.ListSnapshots();
    if (snapshots) {
      std::erase_if(*snapshots, [&](const SnapshotInfo& each) { return each.seq >= below_; });
    }
    return snapshots;
  }
  Status ReadSnapshot(Seq seq, ImageVisitor& visitor) const override {
    return store_.ReadSnapshot(seq, visitor);
  }

  std::unique_ptr<ImageEncoder> NewEncoder() const override { return store_.NewEncoder(); }
  Result<std::unique_ptr<ImageFile>> CreateImage(Seq) override { return Refuse(); }
  Status RemoveSnapshot(Seq) override { return Refuse(); }
  Status SetAside(Seq) override { return Refuse(); }
  Result<SnapshotInfo> CreateCheckpoint() override { return Refuse(); }
  Result<std::vector<SnapshotInfo>> ListCheckpoints() const override {
    return store_.ListCheckpoints();
  }
  Status RemoveCheckpoint(const std::string&) override { return Refuse(); }
  Result<std::vector<SnapshotInfo>> RemoveOldCheckpoints() override { return Refuse(); }

 private:
  static tl::unexpected<Error> Refuse() {
    return MakeError(ErrorCode::kFailedPrecondition, "these snapshots are for reading only");
  }

  const SnapshotStore& store_;
  const Seq below_;
};

}  // namespace conductor::cli
