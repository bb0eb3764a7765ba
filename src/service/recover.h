// The state of a log and its snapshots: the newest good snapshot, and the log behind it. What the
// daemon does at its start, and what `verify` and `inspect` do without one.
//
// Decision table (tests/src/service/recover_test.cc has a row each). "Reaches" means that the log
// begins no later than the record after the snapshot; the start of the log is position 1.
//
//   newest snapshot | an older good one | log from 1 | outcome
//   good, reaches   |                   |            | it, and the log behind it
//   damaged         | reaches           |            | that one, with a warning
//   damaged         | no                | yes        | the log alone, with a warning
//   damaged         | no                | no         | kDataLoss, names every file
//   good, no reach  |                   | no         | kDataLoss, names the hole
//   beyond the log  | as damaged: the log lost records that the snapshot holds (the log on disk
//                   | goes on behind such a snapshot, so that it never is)
//   newer format    |                   |            | kFailedPrecondition
//   none            |                   | yes        | the log alone
//   none            |                   | no         | kDataLoss
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/ports.h"
#include "src/snapshot_store.h"
#include "src/state/state_machine.h"

namespace conductor {

struct RecoverProgress {
  bool loading_snapshot = false;     // else the log is read
  Seq first = 0, seq = 0, last = 0;  // of the log: before it, reached, at its end
  // Of the snapshot: blocks read and in all. Of the log: block operations applied (blocks_total
  // stays 0: only their records are counted beforehand).
  std::uint64_t blocks = 0, blocks_total = 0;
};

struct RecoveredState {
  std::unique_ptr<StateMachine> state;
  Seq seq = 0;                        // every record up to it is in the state
  Seq snapshot_seq = 0;               // where it began; 0: at the log's start
  std::vector<std::string> warnings;  // a damaged snapshot each, with what was done instead
  std::vector<Seq> damaged;           // snapshots that cannot be used
};

struct RecoverOptions {
  Seq until = 0;  // the last record to apply; 0: all
  // Called every few thousand blocks or records; an error ends the recovery and is returned.
  std::function<Status(const RecoverProgress&)> progress;
};

// What a fact asks of the index: requested, stored or removed names.
std::uint64_t BlockOperations(const Fact& fact);

Result<RecoveredState> RecoverState(const EventLog& log, const SnapshotStore& snapshots,
                                    const RecoverOptions& options);

}  // namespace conductor
