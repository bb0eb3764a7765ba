// SnapshotEncoder: the pieces of an image as the bytes of a snapshot file
// (docs/snapshot_format.md): header, whole frames, and after OnEnd the last frame.
//
// It refuses (kInvalidArgument) what the format cannot spell. Order, ids and ranges are judged when
// the file is read back (ImageFile::Finish), off this thread, by the reader's own checks.
// One thread, the one that owns the state.
#pragma once

#include <array>
#include <string>

#include "src/index/run_table.h"
#include "src/snapshot_store.h"
#include "storage/snapshot_format.h"

namespace conductor::storage {

class SnapshotEncoder final : public ImageEncoder {
 public:
  std::size_t size() const override { return ready_.size(); }
  std::string Take() override;

  Status OnStart(const ImageStart& piece) override;
  Status OnContext(const ImageContext& piece) override;
  Status OnPool(const ImagePool& piece) override;
  Status OnRegistration(const ImageRegistration& piece) override;
  Status OnHolder(const ImageHolder& piece) override;
  Status OnSet(const ImageSet& piece) override;
  Status OnRun(const ImageRun& piece) override;
  Status OnEntry(const ImageEntry& piece) override;
  Status OnCopies(const ImageCopies& piece) override;
  Status OnParts(const ImageParts& piece) override;
  Status OnStream(const StreamFacts& piece) override;
  Status OnEnd(const ImageEnd& piece) override;

 private:
  void BeginPiece(PieceKind kind);
  Status EndPiece();
  void BeginFrame();
  void FinishFrame(FrameType type);
  void PutName(const ImageName& name);
  Status PutStreamContexts(const StreamFacts& piece);

  Seq seq_ = 0;
  std::string frame_;  // head and payload so far
  std::string ready_;  // whole frames
  std::uint64_t frames_ = 0;
  std::array<std::uint64_t, kPieceKinds> pieces_{};  // by kind - 1
};

}  // namespace conductor::storage
