#include "tests/durability/tapped_log.h"

#include <algorithm>

#include "src/hex.h"
#include "src/state/state_machine.h"

namespace conductor::durability {

std::string TappedLog::Attach(EventLog& log) {
  log_ = &log;
  const std::lock_guard lock(mutex_);
  const Seq last = log.LastSeq();
  if (last < acknowledged_) {
    return "the log ends at " + std::to_string(last) + ", acknowledged was " +
           std::to_string(acknowledged_);
  }
  for (const Record& record : unclear_) {
    if (history_.size() < last) history_.push_back(record);
  }
  unclear_.clear();
  if (last > history_.size()) {
    return "the log ends at " + std::to_string(last) + ", written was " +
           std::to_string(history_.size());
  }
  history_.resize(last);
  return "";
}

Result<Seq> TappedLog::Append(std::span<const Record> records, Durability durability) {
  {
    const std::lock_guard lock(mutex_);
    unclear_.assign(records.begin(), records.end());
  }
  auto seq = log_->Append(records, durability);
  const std::lock_guard lock(mutex_);
  if (!seq) return seq;
  history_.insert(history_.end(), unclear_.begin(), unclear_.end());
  unclear_.clear();
  if (durability == Durability::kSynced) acknowledged_ = std::max(acknowledged_, *seq);
  return seq;
}

Status TappedLog::Sync() {
  const Seq target = appended();
  const Status status = log_->Sync();
  const std::lock_guard lock(mutex_);
  if (status) acknowledged_ = std::max(acknowledged_, target);
  return status;
}

// What was not on disk may be gone; who wrote it writes it again.
Result<Seq> TappedLog::Reopen() {
  auto last = log_->Reopen();
  if (!last) return last;
  const std::string wrong = Attach(*log_);
  if (!wrong.empty()) return MakeError(ErrorCode::kInternal, "tapped log: " + wrong);
  return last;
}

Seq TappedLog::appended() const {
  const std::lock_guard lock(mutex_);
  return history_.size();
}

std::string TappedLog::DigestAt(Seq seq) const {
  StateMachine state;
  const std::lock_guard lock(mutex_);
  for (Seq i = 0; i < seq; ++i) state.Apply(history_[i]);
  return Hex128(state.Digest());
}

}  // namespace conductor::durability
