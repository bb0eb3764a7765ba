// The state of a data directory, recovered without a daemon: what `inspect`, `verify` and
// `snapshot` work on offline. src/service/state_views.h says what a state alone tells.
#pragma once

#include "cli/ctl.h"
#include "src/service/recover.h"

namespace conductor::cli {

struct ReadStateOptions {
  Seq until = 0;  // the last record; 0: all
  // Only snapshots below this position are used; 0: none, the log alone.
  Seq snapshots_below = ~Seq{0};
};

// From the newest good snapshot and the log behind it. Progress and warnings (a damaged snapshot
// that was passed over) go to stderr. kDataLoss: damaged, or its beginning is missing.
Result<RecoveredState> ReadState(Ctl& ctl, const storage::RocksDbEventLog& log,
                                 const ReadStateOptions& options = {});

}  // namespace conductor::cli
