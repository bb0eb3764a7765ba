#include "src/service/write_snapshot.h"

namespace conductor {

Result<SnapshotInfo> WriteSnapshot(StateMachine&, Seq, SnapshotStore&) {
  return MakeError(ErrorCode::kUnimplemented, "images");
}

}  // namespace conductor
