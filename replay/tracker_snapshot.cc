// The snapshot side of the stream tracker: what was lost is made good by asking the publisher what
// it has now. Live frames wait meanwhile, because the snapshot replaces what came before it.
#include <algorithm>
#include <utility>

#include "replay/stream_tracker.h"
#include "replay/tracker_limits.h"

namespace conductor {

std::optional<std::uint64_t> StreamTracker::wanted_snapshot() const {
  if (snapshot_.phase == SnapshotAsk::Phase::kIdle) return std::nullopt;
  return snapshot_.id;
}

// A replay goes first: often nothing is lost after all.
bool StreamTracker::MayAskSnapshot(std::int64_t now_ms) const {
  const bool replay_is_open = ask_.phase != Ask::Phase::kIdle && !ask_.probe;
  return connected_ && !waiting_ && !replay_is_open && suspects_.empty() &&
         (has_lost_ranges_ || history_starts_late_) && now_ms >= snapshot_due_ms_;
}

void StreamTracker::OnSnapshotSent(std::uint64_t id, std::int64_t now_ms) {
  if (snapshot_.phase != SnapshotAsk::Phase::kWanted || snapshot_.id != id) return;
  ++counters_.snapshots;
  snapshot_.phase = SnapshotAsk::Phase::kSent;
  snapshot_.sent_ms = snapshot_.progress_ms = now_ms;
  CancelAsk();  // A probe: the snapshot tells more.
  // A publisher that did not answer is not waited for again.
  if (snapshot_answered_) snapshot_.holds = waiting_ = true;
}

void StreamTracker::OnSnapshotStart(std::uint64_t id, const SnapshotStart& start,
                                    std::int64_t now_ms) {
  if (!IsOpenSnapshot(id)) return;
  OnSnapshotProgress(id, now_ms);
  snapshot_.started = snapshot_answered_ = true;
  if (std::string why = Contradiction(start); !why.empty()) {
    return OnSnapshotFailed(id, now_ms, std::move(why));
  }
  if (snapshot_.holds) return;
  // Frames that it replaces were applied while we did not wait for it.
  const bool other_life = !publisher_epoch_.empty() && start.epoch != publisher_epoch_;
  if (cursor_ && start.resume_number <= *cursor_ && !other_life) {
    return OnSnapshotFailed(id, now_ms, "snapshot: overtaken by live frames; asked again");
  }
  snapshot_.holds = waiting_ = true;
}

void StreamTracker::OnSnapshotProgress(std::uint64_t id, std::int64_t now_ms) {
  if (IsOpenSnapshot(id)) snapshot_.progress_ms = now_ms;
}

// Why it cannot be of the process whose frames we have; empty: it can.
std::string StreamTracker::Contradiction(const SnapshotStart& start) const {
  if (publisher_epoch_.empty()) return "";
  if (start.epoch != publisher_epoch_) {
    if (!epoch_is_live_) return "";
    return "snapshot: expected epoch " + publisher_epoch_ + " as in the live topic, got " +
           std::string(start.epoch);
  }
  if (snapshot_.holds && cursor_ && start.resume_number <= *cursor_) {
    return "snapshot: expected to resume above " + std::to_string(*cursor_) + ", got " +
           std::to_string(start.resume_number);
  }
  return "";
}

void StreamTracker::OnSnapshot(std::uint64_t id, PublisherSnapshot snapshot, std::int64_t now_ms) {
  if (!IsOpenSnapshot(id)) return;
  const SnapshotStart start{snapshot.resume_number, snapshot.epoch};
  if (std::string why = Contradiction(start); !why.empty()) {
    return OnSnapshotFailed(id, now_ms, std::move(why));
  }
  snapshot_delay_ms_ = 0;
  snapshot_due_ms_ = now_ms + kSnapshotMsMin;
  last_error_.clear();
  AdoptSnapshot(std::move(snapshot), now_ms);
}

void StreamTracker::AdoptSnapshot(PublisherSnapshot&& snapshot, std::int64_t now_ms) {
  const std::uint64_t resume = snapshot.resume_number;
  const bool below = cursor_ && resume <= *cursor_;
  const bool text_known = !publisher_epoch_.empty();
  if (text_known ? publisher_epoch_ != snapshot.epoch : below) {
    // What waits may be of the new life: nothing that was live has said otherwise.
    std::deque<ReceivedFrame> waited;
    while (!buffer_.empty()) waited.push_back(buffer_.PopFront());
    NewLife(now_ms);
    for (ReceivedFrame& frame : waited) {
      NoteSeen(frame.number);
      Wait(std::move(frame));
    }
  }
  std::uint64_t covered_from = cursor_ ? *cursor_ + 1 : 0;
  while (!buffer_.empty() && buffer_.front().number < resume) {
    covered_from = buffer_.PopFront().number + 1;
  }
  covered_.reset();
  if (covered_from < resume) covered_ = {covered_from, resume - 1};
  cursor_.reset();
  if (resume > 0) cursor_ = resume - 1;
  has_lost_ranges_ = history_starts_late_ = false;
  Settle();
  repeats_.Clear();
  publisher_epoch_ = snapshot.epoch;
  snapshot.stream = stream_;
  outputs_.emplace_back(std::move(snapshot));
  StopHolding(now_ms);
}

void StreamTracker::OnSnapshotFailed(std::uint64_t id, std::int64_t now_ms, std::string why) {
  if (snapshot_.phase == SnapshotAsk::Phase::kIdle || snapshot_.id != id) return;
  ++counters_.snapshot_failures;
  snapshot_answered_ = snapshot_.started;
  snapshot_delay_ms_ = std::clamp<std::int64_t>(
      2 * snapshot_delay_ms_, std::min<std::int64_t>(kSnapshotMsMin, ProbeMsMax()), ProbeMsMax());
  snapshot_due_ms_ = now_ms + snapshot_delay_ms_;
  StopHolding(now_ms);
  last_error_ = std::move(why);
}

// Applies what waits. What is missing between is in the ring, or lost.
void StreamTracker::StopHolding(std::int64_t now_ms) {
  const bool held = snapshot_.holds;
  AbandonSnapshot();
  if (unsettled_ && has_replay_) ScheduleProbe(now_ms);
  if (!held && !waiting_ && buffer_.empty()) return;
  waiting_ = false;
  if (!DrainBuffer()) return NewLifeAndAsk(now_ms);
  if (!SomethingMissing()) return;
  if (!has_replay_) return Conclude(true, now_ms);
  ++counters_.gaps;
  waiting_ = true;
  StartCatchUp(now_ms);
}

// A frame that the snapshot holds already, later in the queue than its answer was. Within one
// connection numbers ascend, so each is expected once.
bool StreamTracker::SkipCovered(std::uint64_t number) {
  if (!covered_) return false;
  const auto [from, to] = *covered_;
  if (number < from || number > to) {
    if (number > to) covered_.reset();
    return false;
  }
  covered_->first = number + 1;
  ++counters_.duplicates;
  return true;
}

void StreamTracker::TickSnapshot(std::int64_t now_ms) {
  if (snapshot_.phase == SnapshotAsk::Phase::kIdle) {
    if (!MayAskSnapshot(now_ms)) return;
    snapshot_.phase = SnapshotAsk::Phase::kWanted;
    snapshot_.id = ++last_ask_id_;
    return;
  }
  if (snapshot_.phase != SnapshotAsk::Phase::kSent) return;
  const Limits& limits = options_.limits;
  const std::int64_t patience_ms =
      snapshot_.started ? limits.replay_progress_ms : limits.replay_first_reply_ms;
  if (now_ms - snapshot_.sent_ms >= kSnapshotMsMax) {
    OnSnapshotFailed(snapshot_.id, now_ms, "snapshot: not whole in time");
  } else if (now_ms - snapshot_.progress_ms >= patience_ms) {
    OnSnapshotFailed(
        snapshot_.id, now_ms,
        snapshot_.started ? "snapshot: the answer stopped before its end" : "snapshot: no answer");
  }
}

}  // namespace conductor
