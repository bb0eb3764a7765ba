// The state of a log and its snapshots: the newest good snapshot, and the log behind it. What the
// daemon does at its start, and what `verify` and `inspect` do without one.
//
// Decision table. The snapshots are looked at from the newest on, until a row decides; each look
// meets exactly one row (tests/src/service/recover_test.cc goes through every combination of two
// snapshots and a log, and meets every row). "Log from 1": it has its first record.
//
//   a snapshot                    | what is made of it
//   ends beyond the log's end     | damaged: the log lost records that it holds (the log on disk
//   goes
//                                 | on behind such a snapshot, so that it never is). A warning,
//                                 next
//   damaged, as its ends show     | a warning, next
//   ends before the log begins    | no use: a hole. Next
//   of a newer format             | kFailedPrecondition
//   unreadable now                | a warning, next
//   damaged, as reading shows     | a warning, next
//   good                          | it, and the log behind it
//   no further one, log from 1    | the log alone
//   no further one, one of them
//     was unreadable now          | the reason it cannot be read
//   no further one                | kDataLoss, names every damaged file and the hole
//
// Up to a position (RecoverOptions::until) snapshots beyond it are passed over, and no damage.
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
  std::uint64_t events = 0;           // of frames, read from the log
  std::vector<std::string> warnings;  // a snapshot each that could not be used
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
