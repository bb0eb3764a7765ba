// A snapshot of a state that nobody changes meanwhile: what `snapshot create` does with a data
// directory that has no daemon. The thread that owns the state.
#pragma once

#include "src/ports.h"
#include "src/snapshot_store.h"
#include "src/state/state_machine.h"

namespace conductor {

// `seq`: the last record that is in the state.
Result<SnapshotInfo> WriteSnapshot(StateMachine& state, Seq seq, SnapshotStore& snapshots);

}  // namespace conductor
