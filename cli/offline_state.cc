#include "cli/offline_state.h"

#include <string>

namespace conductor::cli {
namespace {

constexpr std::size_t kCleanupEntriesPerRecord = 2'048;

}  // namespace

Result<std::unique_ptr<StateMachine>> ReadState(const EventLog& log) {
  auto state = std::make_unique<StateMachine>();
  const Seq first = log.FirstSeq(), last = log.LastSeq();
  if (first > last) return state;
  if (first != 1) {
    return MakeError(ErrorCode::kDataLoss, "log: the first record is " + std::to_string(first) +
                                               ", expected 1: its beginning is missing");
  }
  CONDUCTOR_RETURN_IF_ERROR(log.Read(first, last, [&](Seq, const Record& record) -> Status {
    state->Apply(record);
    state->CleanupSlice(kCleanupEntriesPerRecord);
    return {};
  }));
  return state;
}

}  // namespace conductor::cli
