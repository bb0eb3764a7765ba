#include "src/service/recover.h"

namespace conductor {
namespace {

constexpr Seq kProgressEvery = 4'096;
constexpr std::size_t kCleanupEntries = 2'048;

}  // namespace

// Of the log alone, until images can be read.
Result<RecoveredState> RecoverState(const EventLog& log, const SnapshotStore&,
                                    const RecoverOptions& options) {
  RecoveredState recovered;
  recovered.state = std::make_unique<StateMachine>();
  const Seq first = log.FirstSeq();
  const Seq last = options.until == 0 ? log.LastSeq() : options.until;
  if (first > last) return recovered;
  if (first != 1) {
    return MakeError(ErrorCode::kDataLoss, "log: the first record is " + std::to_string(first) +
                                               ", expected 1: its beginning is missing");
  }
  CONDUCTOR_RETURN_IF_ERROR(log.Read(first, last, [&](Seq seq, const Record& record) -> Status {
    recovered.state->Apply(record);
    recovered.state->CleanupSlice(kCleanupEntries);
    recovered.seq = seq;
    if (!options.progress || seq % kProgressEvery != 0) return {};
    return options.progress({.seq = seq, .last = last});
  }));
  return recovered;
}

}  // namespace conductor
