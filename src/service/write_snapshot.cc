#include "src/service/write_snapshot.h"

#include <memory>

#include "src/state/image_cut.h"

namespace conductor {
namespace {

constexpr std::size_t kBlocksPerStep = 65'536;

}  // namespace

Result<SnapshotInfo> WriteSnapshot(StateMachine& state, Seq seq, SnapshotStore& snapshots) {
  const std::unique_ptr<ImageEncoder> encoder = snapshots.NewEncoder();
  if (encoder == nullptr) return MakeError(ErrorCode::kUnimplemented, "a store without images");
  CONDUCTOR_ASSIGN_OR_RETURN(const std::unique_ptr<ImageFile> file, snapshots.CreateImage(seq));
  ImageCut cut(state, seq, *encoder);
  for (bool done = false; !done;) {
    done = cut.Step(kBlocksPerStep);
    CONDUCTOR_RETURN_IF_ERROR(cut.status());
    CONDUCTOR_RETURN_IF_ERROR(file->Append(encoder->Take()));
  }
  return file->Finish();
}

}  // namespace conductor
