#include "cli/offline_state.h"

#include <ostream>
#include <string>

#include "cli/older_snapshots.h"
#include "cli/progress.h"
#include "cli/system_clock.h"

namespace conductor::cli {

Result<RecoveredState> ReadState(Ctl& ctl, const storage::RocksDbEventLog& log,
                                 const ReadStateOptions& options) {
  const SystemClock clock;
  Progress progress(ctl.progress_style(), ctl.err(), clock);
  RecoverOptions recover;
  recover.until = options.until;
  recover.progress = [&](const RecoverProgress& now) { return progress.Update(now); };
  const OlderSnapshots snapshots(log, options.snapshots_below);
  Result<RecoveredState> recovered = RecoverState(log, snapshots, recover);
  if (recovered) {
    for (const std::string& warning : recovered->warnings) ctl.Warn(warning);
  }
  return recovered;
}

}  // namespace conductor::cli
