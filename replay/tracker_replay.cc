// The replay side of the stream tracker: what is asked, how answers are judged, and what happens
// when none comes.
#include <algorithm>
#include <utility>

#include "replay/stream_tracker.h"
#include "replay/tracker_limits.h"

namespace conductor {

void StreamTracker::StartCatchUp(std::int64_t now_ms, std::int64_t delay_ms) {
  CancelAsk();
  AbandonSnapshot();  // What waits for it waits for the replay now.
  attempts_ = 0;
  rounds_ = 0;
  replied_ = false;
  probe_delay_ms_ = 0;
  // While disconnected nothing can be concluded from an answer; OnConnected asks.
  if (connected_) ScheduleAsk(false, now_ms + delay_ms);
  if (connected_ && delay_ms <= 0) PrepareAsk();
}

void StreamTracker::ScheduleAsk(bool probe, std::int64_t due_ms) {
  ask_ = Ask{};
  ask_.phase = Ask::Phase::kDelayed;
  ask_.probe = probe;
  ask_.due_ms = due_ms;
}

// Decides what is asked from what is known now.
void StreamTracker::PrepareAsk() {
  ask_.phase = Ask::Phase::kWanted;
  ask_.id = ++last_ask_id_;
  ask_.cursor_before = cursor_;
  if (unsettled_ && anchor_) {
    ask_.from = anchor_->first;
    ask_.fingerprint = anchor_->second;
  } else if (!recent_.empty()) {
    ask_.from = recent_.back().first;
    ask_.fingerprint = recent_.back().second;
  } else {
    ask_.from = cursor_ ? *cursor_ + 1 : 0;
  }
  if (!ask_.probe) {
    ++attempts_;
    ++rounds_;
  }
}

std::optional<WantedReplay> StreamTracker::wanted_replay() const {
  if (ask_.phase != Ask::Phase::kWanted && ask_.phase != Ask::Phase::kSent) return std::nullopt;
  return WantedReplay{ask_.id, ask_.from};
}

void StreamTracker::OnReplaySent(std::uint64_t id, std::int64_t now_ms) {
  if (ask_.phase != Ask::Phase::kWanted || ask_.id != id) return;
  ++counters_.replays;
  ask_.phase = Ask::Phase::kSent;
  ask_.progress_ms = now_ms;
}

void StreamTracker::OnReplayFailed(std::uint64_t id, std::int64_t now_ms, std::string why) {
  if (ask_.phase == Ask::Phase::kIdle || ask_.id != id) return;
  OnAskTimeout(now_ms);
  last_error_ = std::move(why);
}

void StreamTracker::OnReplayFrame(std::uint64_t id, ReceivedFrame frame, std::int64_t now_ms) {
  if (!IsOpen(id)) return;
  ++counters_.replay_frames;
  ask_.any_reply = true;
  replied_ = true;
  ask_.progress_ms = now_ms;
  const bool first = !ask_.last_number;
  // Below what was asked, or out of order: of no use, and the hole it leaves is seen.
  if (frame.number < ask_.from || (!first && frame.number <= *ask_.last_number)) return;
  if (first && ProofMayBeMissing(frame.number)) {
    return RetryOrConclude(false, now_ms, "replay: the answer begins behind what was asked");
  }
  ask_.last_number = frame.number;
  const bool other = first && ask_.fingerprint && frame.number == ask_.from &&
                     frame.fingerprint != *ask_.fingerprint;
  if (other || (first && !ConfirmLife())) return NewLifeAndAsk(now_ms);
  JudgeReply(std::move(frame), first, now_ms);
}

// The answer leaves out just the frame that says whose it is. A ring that begins there is rare; a
// reply that got lost is asked for again.
bool StreamTracker::ProofMayBeMissing(std::uint64_t first) {
  if (!ask_.fingerprint || first != ask_.from + 1) return false;
  return ++unproved_ < kReplayUnprovedMax;
}

// The publisher is the one we know, or can no longer be compared. The suspects were late copies, or
// overtaken by others. False: one of them contradicts that.
bool StreamTracker::ConfirmLife() {
  Settle();
  probe_delay_ms_ = 0;
  while (!suspects_.empty()) {
    const std::uint64_t number = suspects_.front().number;
    const bool old = cursor_ && number <= *cursor_;
    const auto known = old ? recent_.Find(number) : buffer_.FindFingerprint(number);
    if (known && *known != suspects_.front().fingerprint) return false;
    ReceivedFrame frame = suspects_.PopFront();
    if (old_suspects_ > 0) --old_suspects_;
    if (old || known) {
      ++counters_.duplicates;
    } else {
      Wait(std::move(frame));
    }
  }
  return true;
}

void StreamTracker::JudgeReply(ReceivedFrame frame, bool first, std::int64_t now_ms) {
  // Waiting frames may fill the place before this one; one of its number must be the same.
  const std::optional<std::uint64_t> waiting = buffer_.FindFingerprint(frame.number);
  if ((waiting && *waiting != frame.fingerprint) || !DrainBuffer()) return NewLifeAndAsk(now_ms);
  if (cursor_ && frame.number <= *cursor_) {
    const std::optional<std::uint64_t> known = recent_.Find(frame.number);
    if (known && *known != frame.fingerprint) NewLifeAndAsk(now_ms);
    return;
  }
  const bool hole = cursor_ && frame.number > *cursor_ + 1;
  // Nothing waited for this answer: what it leaves out may be on its way live. That waits now, and
  // is there when the next answer is judged.
  if (hole && ask_.probe) {
    ++counters_.gaps;
    waiting_ = true;
    return StartCatchUp(now_ms);
  }
  if (hole && !first && RetryAllowed()) {
    ++counters_.replay_failures;
    last_error_ = "replay: the answer has a hole";
    return Retry(now_ms);
  }
  DeliverWaitingBelow(frame.number);
  DeliverAfterLoss(std::move(frame));
  if (!DrainBuffer()) NewLifeAndAsk(now_ms);
}

// The answer leaves out what came live: only what is missing from both is lost.
void StreamTracker::DeliverWaitingBelow(std::uint64_t number) {
  while (!buffer_.empty() && buffer_.front().number < number) {
    ReceivedFrame frame = buffer_.PopFront();
    if (!cursor_ || frame.number > *cursor_) DeliverAfterLoss(std::move(frame));
  }
}

void StreamTracker::OnReplayEnd(std::uint64_t id, std::int64_t now_ms) {
  if (!IsOpen(id)) return;
  ask_.any_reply = true;
  replied_ = true;
  if (!ask_.last_number && ask_.fingerprint) {
    // The frame that we have is not there. Either the process is a new one, or the answer is wrong.
    if (!seen_ || *seen_ < ask_.from) return NewLifeAndAsk(now_ms);
    return RetryOrConclude(false, now_ms, "replay: only an end marker, but newer frames are live");
  }
  if (ask_.last_number && EndsBelowWhatIsKnown()) {
    // What it had published before, it would have again.
    if (ask_.probe || !RetryAllowed()) return NewLifeAndAsk(now_ms);
    return RetryOrConclude(true, now_ms, "replay: ended before what was published earlier");
  }
  old_until_.reset();
  if (!ConfirmLife() || !DrainBuffer()) return NewLifeAndAsk(now_ms);
  if (SomethingMissing()) {
    return RetryOrConclude(true, now_ms, "replay: ended before what is live");
  }
  CancelAsk();
  waiting_ = false;
  first_catch_up_done_ = true;
  last_error_.clear();
}

// By frames of the connection before, or (when older ones are in question) by what was applied.
bool StreamTracker::EndsBelowWhatIsKnown() const {
  const std::uint64_t last = *ask_.last_number;
  return (old_until_ && last < *old_until_) || (ask_.cursor_before && last < *ask_.cursor_before);
}

bool StreamTracker::SomethingMissing() const {
  return !buffer_.empty() || (seen_ && (!cursor_ || *seen_ > *cursor_));
}

void StreamTracker::Settle() {
  unsettled_ = false;
  unproved_ = 0;
  anchor_.reset();
}

bool StreamTracker::RetryAllowed() const {
  const bool progress = cursor_ != ask_.cursor_before;
  return rounds_ < kReplayRoundsMax &&
         (progress || attempts_ < options_.limits.replay_attempts_max);
}

void StreamTracker::Retry(std::int64_t now_ms) {
  if (cursor_ != ask_.cursor_before) attempts_ = 0;
  const std::uint32_t doublings = attempts_ > 0 ? attempts_ - 1 : 0;
  waiting_ = true;
  ScheduleAsk(false, now_ms + (kReplayRetryMs << std::min(doublings, 10u)));
}

void StreamTracker::RetryOrConclude(bool life_known, std::int64_t now_ms, std::string_view why) {
  ++counters_.replay_failures;
  last_error_ = why;
  if (ask_.probe) {
    CancelAsk();
    if (unsettled_) ScheduleProbe(now_ms);
    return;
  }
  if (RetryAllowed()) return Retry(now_ms);
  Conclude(life_known, now_ms);
}

// No more is to be had: what is missing is lost, what waits is applied.
void StreamTracker::Conclude(bool life_known, std::int64_t now_ms) {
  CancelAsk();
  old_until_.reset();
  first_catch_up_done_ = true;
  // What was applied before the question came up; an older question is still open.
  if (!life_known && !unsettled_ && !recent_.empty()) anchor_ = recent_.back();
  if (!suspects_.empty()) AdoptSuspects(now_ms);
  while (!buffer_.empty()) {
    ReceivedFrame frame = buffer_.PopFront();
    if (cursor_ && frame.number <= *cursor_) continue;
    DeliverAfterLoss(std::move(frame));
  }
  if (cursor_ && seen_ && *seen_ > *cursor_) Lose(*cursor_ + 1, *seen_);
  waiting_ = false;
  if (life_known) return Settle();
  unsettled_ = true;
  ScheduleProbe(now_ms);
}

// Nobody could say whether the doubtful frames are of a new life. A continuing publisher would not
// send them; taking it for the old one would leave a dead cache in the index.
void StreamTracker::AdoptSuspects(std::int64_t now_ms) {
  std::deque<ReceivedFrame> newer;
  old_suspects_ = 0;
  while (!suspects_.empty()) newer.push_back(suspects_.PopFront());
  NewLife(now_ms);
  for (ReceivedFrame& frame : newer) {
    // A number that falls again is of a still younger life.
    if (!buffer_.empty() && frame.number <= buffer_.back().number) {
      if (buffer_.FindFingerprint(frame.number) == frame.fingerprint) continue;
      buffer_.Clear();
    }
    NoteSeen(frame.number);
    Wait(std::move(frame));
  }
}

void StreamTracker::ScheduleProbe(std::int64_t now_ms) {
  probe_delay_ms_ = std::clamp<std::int64_t>(
      2 * probe_delay_ms_, std::min<std::int64_t>(kReplayProbeMsMin, ProbeMsMax()), ProbeMsMax());
  ScheduleAsk(true, now_ms + probe_delay_ms_);
}

// No reply, or no more of it.
void StreamTracker::OnAskTimeout(std::int64_t now_ms) {
  if (ask_.any_reply) {
    return RetryOrConclude(true, now_ms, "replay: the answer stopped before its end");
  }
  // Without any reply there is one attempt; a publisher that has answered may be asked again.
  if (!ask_.probe && replied_) return RetryOrConclude(false, now_ms, "replay: no more answers");
  ++counters_.replay_failures;
  last_error_ = "replay: no answer";
  if (!ask_.probe) return Conclude(false, now_ms);
  CancelAsk();
  if (unsettled_) ScheduleProbe(now_ms);
}

void StreamTracker::OnTick(std::int64_t now_ms) {
  const Limits& limits = options_.limits;
  if (!connected_ && options_.disconnected_drop_ms > 0 && cursor_ &&
      now_ms - disconnected_since_ms_ >= options_.disconnected_drop_ms) {
    DropDisconnected();
  }
  // A publisher that is not there has nothing to catch up with, and one that has is not waited for
  // longer than this.
  if ((!connected_ && now_ms - started_ms_ >= limits.replay_first_reply_ms) ||
      now_ms - started_ms_ >= limits.first_catch_up_ms_max) {
    first_catch_up_done_ = true;
  }
  if (has_snapshot_) TickSnapshot(now_ms);
  if (ask_.phase == Ask::Phase::kDelayed && now_ms >= ask_.due_ms) PrepareAsk();
  if (ask_.phase != Ask::Phase::kSent) return;
  const std::int64_t patience_ms =
      ask_.any_reply ? limits.replay_progress_ms : limits.replay_first_reply_ms;
  if (now_ms - ask_.progress_ms >= patience_ms) OnAskTimeout(now_ms);
}

void StreamTracker::OnResumed(std::int64_t now_ms) {
  if (ask_.phase == Ask::Phase::kSent) ask_.progress_ms = now_ms;
  snapshot_.progress_ms = now_ms;
}

}  // namespace conductor
