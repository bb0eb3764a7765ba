#include "replay/stream_tracker.h"

#include <algorithm>
#include <utility>

#include "replay/tracker_limits.h"
#include "src/check.h"

namespace conductor {

StreamTracker::StreamTracker(const StreamSeed& seed, const TrackerOptions& options,
                             std::int64_t now_ms)
    : stream_(seed.stream),
      options_(options),
      has_replay_(!seed.registration.replay_endpoint.empty()),
      has_snapshot_(seed.registration.type == PublisherType::kSglang &&
                    !seed.registration.snapshot_endpoint.empty()),
      first_number_(seed.registration.type == PublisherType::kMooncake ? 1 : 0),
      started_ms_(now_ms),
      cursor_(seed.cursor),
      recent_(seed.recent),
      has_lost_ranges_(seed.has_lost_ranges),
      waiting_(has_replay_),
      buffer_(options.limits.buffered_frames_per_stream_max,
              options.limits.buffered_bytes_per_stream_max),
      suspects_(options.limits.buffered_frames_per_stream_max,
                options.limits.buffered_bytes_per_stream_max),
      repeats_(kRepeatedFramesMax, kRepeatedBytesMax),
      history_starts_late_(seed.history_from.has_value()),
      publisher_epoch_(seed.publisher_epoch),
      disconnected_since_ms_(now_ms) {}

StreamState StreamTracker::state() const {
  if (!connected_) return StreamState::kConnecting;
  if (waiting_) return StreamState::kCatchingUp;
  return unsettled_ ? StreamState::kDegraded : StreamState::kLive;
}

void StreamTracker::OnConnected(std::int64_t now_ms) {
  ++counters_.connects;
  connected_ = true;
  last_error_.clear();
  if (!has_replay_) {
    first_catch_up_done_ = true;
    return;
  }
  // What is read between the two reports may be of either connection.
  if (counters_.disconnects > 0) {
    if (!buffer_.empty()) old_until_ = buffer_.back().number;
    old_suspects_ = suspects_.size();
  }
  seen_.reset();
  waiting_ = true;
  StartCatchUp(now_ms);
}

void StreamTracker::OnDisconnected(std::int64_t now_ms) {
  if (!connected_) return;
  ++counters_.disconnects;
  connected_ = false;
  disconnected_since_ms_ = now_ms;
  epoch_is_live_ = false;
  covered_.reset();
  CancelAsk();
  // With a replay endpoint they go on waiting for it.
  if (snapshot_.holds && !has_replay_) return StopHolding(now_ms);
  AbandonSnapshot();
}

void StreamTracker::OnLiveFrame(ReceivedFrame frame, std::int64_t now_ms, std::string_view epoch) {
  const bool text_known = !epoch.empty() && !publisher_epoch_.empty();
  if (text_known && epoch != publisher_epoch_) {
    NewLife(now_ms);  // whatever the numbers say
  } else if (text_known && cursor_ && frame.number <= *cursor_ && !recent_.Find(frame.number)) {
    // Of this life, and nothing to compare with: late, or once more.
    epoch_is_live_ = true;
    ++counters_.duplicates;
    return;
  }
  inbox_.push_back(std::move(frame));
  ReadInbox(now_ms);
  if (epoch.empty()) return;
  if (publisher_epoch_ != epoch) publisher_epoch_ = epoch;
  epoch_is_live_ = true;
}

// A judgement may put frames back that it sees in a new light: a loop instead of recursion.
void StreamTracker::ReadInbox(std::int64_t now_ms) {
  while (!inbox_.empty()) {
    ReceivedFrame frame = std::move(inbox_.front());
    inbox_.pop_front();
    JudgeLive(std::move(frame), now_ms);
  }
}

void StreamTracker::JudgeLive(ReceivedFrame frame, std::int64_t now_ms) {
  if (BeginsLife(frame.number)) {
    // Whatever waits above it is of a process that is gone, or can be fetched again.
    buffer_.Clear();
    old_until_.reset();
    old_suspects_ = 0;
    suspects_.Clear();
    seen_ = frame.number;
    Deliver(std::move(frame));
    waiting_ = false;
    Settle();
    first_catch_up_done_ = true;
    ask_.probe = true;
    if (ask_.phase == Ask::Phase::kDelayed) CancelAsk();
    return;
  }
  if (SkipCovered(frame.number)) return;
  if (cursor_ && frame.number <= *cursor_) return JudgeOld(std::move(frame), now_ms);
  if (!suspects_.empty()) return Suspect(std::move(frame), now_ms);
  if (!buffer_.empty() && frame.number <= buffer_.back().number) {
    return JudgeWaiting(std::move(frame), now_ms);
  }
  JudgeFresh(std::move(frame), now_ms);
}

// A number at or below the cursor.
void StreamTracker::JudgeOld(ReceivedFrame frame, std::int64_t now_ms) {
  const std::optional<std::uint64_t> known = recent_.Find(frame.number);
  if (known == frame.fingerprint) {
    ++counters_.duplicates;
    return NoteRepeat(std::move(frame));
  }
  // Nothing to compare with, but somebody to ask.
  if (!known && has_replay_ && !recent_.empty()) return Suspect(std::move(frame), now_ms);
  const bool continues = !repeats_.empty() && repeats_.back().number + 1 == frame.number;
  inbox_.push_front(std::move(frame));
  while (continues && !repeats_.empty()) inbox_.push_front(repeats_.PopBack());
  ReturnSuspects();
  NewLife(now_ms);
}

// A number above the cursor, but not above all that wait.
void StreamTracker::JudgeWaiting(ReceivedFrame frame, std::int64_t now_ms) {
  const std::optional<std::uint64_t> known = buffer_.FindFingerprint(frame.number);
  if (known == frame.fingerprint) {
    ++counters_.duplicates;
    return;
  }
  if (recent_.empty() && has_replay_) {
    // Nothing is applied that could be compared: only the younger ones are worth waiting for.
    buffer_.Clear();
    seen_ = frame.number;
    Wait(std::move(frame));
    return StartCatchUp(now_ms, ChurnDelayMs(now_ms));
  }
  if (!known && has_replay_) return Suspect(std::move(frame), now_ms);
  inbox_.push_front(std::move(frame));
  NewLife(now_ms);
}

// A number above everything seen in this life.
void StreamTracker::JudgeFresh(ReceivedFrame frame, std::int64_t now_ms) {
  NoteSeen(frame.number);
  repeats_.Clear();
  const bool next = cursor_ && frame.number == *cursor_ + 1;
  // Read between two connections it may be of either process, and once it is applied the next
  // process would prove itself with a frame of its own.
  const bool of_either = has_replay_ && !connected_;
  if (waiting_ || of_either) return Wait(std::move(frame));
  if (!has_replay_) {
    if (cursor_ && !next) ++counters_.gaps;
    return DeliverAfterLoss(std::move(frame));
  }
  if (next) return Deliver(std::move(frame));
  if (cursor_) ++counters_.gaps;
  waiting_ = true;
  Wait(std::move(frame));
  StartCatchUp(now_ms, ChurnDelayMs(now_ms));
}

// A frame that a continuing publisher would not send now. Everything after it is as doubtful.
void StreamTracker::Suspect(ReceivedFrame frame, std::int64_t now_ms) {
  const bool first = suspects_.empty();
  if (first) seen_.reset();
  NoteSeen(frame.number);
  if (!suspects_.Append(std::move(frame))) ++counters_.buffer_overflows;
  if (!first) return;
  waiting_ = true;
  // What was asked before may be answered by the process that is in doubt.
  StartCatchUp(now_ms);
}

// With a replay endpoint a new life is fetched from its start anyway.
void StreamTracker::NoteRepeat(ReceivedFrame&& frame) {
  if (has_replay_) return;
  const bool continues = !repeats_.empty() && repeats_.back().number + 1 == frame.number;
  if (!continues) repeats_.Clear();
  if (!continues && frame.number > first_number_) return;
  if (!repeats_.Append(std::move(frame))) repeats_.Clear();
}

void StreamTracker::Wait(ReceivedFrame&& frame) {
  // A frame without room is found missing when the replay ends: seen_ knows of it.
  if (!buffer_.Insert(std::move(frame))) ++counters_.buffer_overflows;
}

void StreamTracker::NoteSeen(std::uint64_t number) {
  if (!seen_ || *seen_ < number) seen_ = number;
}

void StreamTracker::Deliver(ReceivedFrame&& frame) {
  CHECK(!cursor_ || frame.number > *cursor_);
  ++counters_.frames;
  cursor_ = frame.number;
  recent_.Add(frame.number, frame.fingerprint);
  outputs_.emplace_back(std::move(frame));
}

// Delivers a frame whether or not something before it is missing, and says what is.
void StreamTracker::DeliverAfterLoss(ReceivedFrame&& frame) {
  if (!cursor_ && frame.number > first_number_) {
    history_starts_late_ = true;
    outputs_.emplace_back(HistoryStart{stream_, frame.number});
  } else if (cursor_ && frame.number > *cursor_ + 1) {
    Lose(*cursor_ + 1, frame.number - 1);
  }
  Deliver(std::move(frame));
}

void StreamTracker::Lose(std::uint64_t from, std::uint64_t to) {
  CHECK(cursor_ && from == *cursor_ + 1 && from <= to);
  counters_.lost_numbers += to - from + 1;
  cursor_ = to;
  has_lost_ranges_ = true;
  outputs_.emplace_back(Lost{stream_, from, to});
  if (options_.drop_on_lost_events) {
    outputs_.emplace_back(Dropped{stream_, DropReason::kLostEvents});
  }
}

std::int64_t StreamTracker::ChurnDelayMs(std::int64_t now_ms) const {
  return last_new_life_ms_ && now_ms - *last_new_life_ms_ < kLifeChurnMs ? churn_delay_ms_ : 0;
}

// Forgets the old life. Frames that waited are of it, or can be fetched again: the caller keeps
// those that are surely of the new one.
void StreamTracker::NewLife(std::int64_t now_ms) {
  ++counters_.epoch_changes;
  const bool soon = last_new_life_ms_ && now_ms - *last_new_life_ms_ < kLifeChurnMs;
  churn_delay_ms_ = !soon ? 0
                          : std::clamp<std::int64_t>(2 * churn_delay_ms_, kLifeChurnDelayMsMin,
                                                     options_.limits.replay_probe_ms_max);
  last_new_life_ms_ = now_ms;
  outputs_.emplace_back(NewEpoch{stream_, options_.unverified_blocks});
  ForgetLife();
  waiting_ = false;
}

// The replay endpoint proved it. The suspects are of the new life, what waited before them is not.
void StreamTracker::NewLifeAndAsk(std::int64_t now_ms) {
  for (; old_suspects_ > 0 && !suspects_.empty(); --old_suspects_) suspects_.PopFront();
  ReturnSuspects();
  NewLife(now_ms);
  waiting_ = true;
  StartCatchUp(now_ms, ChurnDelayMs(now_ms));
  ReadInbox(now_ms);
}

// Puts the suspects before everything else that is to be judged.
void StreamTracker::ReturnSuspects() {
  while (!suspects_.empty()) inbox_.push_front(suspects_.PopBack());
}

// Delivers the waiting frames that follow the cursor. False: one of them has the number of an
// applied frame and other content.
bool StreamTracker::DrainBuffer() {
  while (!buffer_.empty() && cursor_ && buffer_.front().number <= *cursor_ + 1) {
    const bool next = buffer_.front().number == *cursor_ + 1;
    if (next && !MayDeliver(buffer_.front().number)) return true;
    ReceivedFrame frame = buffer_.PopFront();
    if (next) {
      Deliver(std::move(frame));
      continue;
    }
    const std::optional<std::uint64_t> known = recent_.Find(frame.number);
    if (known && *known != frame.fingerprint) return false;
    ++counters_.duplicates;
  }
  return true;
}

bool StreamTracker::MayDeliver(std::uint64_t waiting) const {
  if (!old_until_ || waiting > *old_until_) return true;
  return ask_.last_number && waiting <= *ask_.last_number;
}

void StreamTracker::DropDisconnected() {
  outputs_.emplace_back(Dropped{stream_, DropReason::kDisconnected});
  ForgetLife();
  waiting_ = has_replay_;
}

// All that is known of the publisher's life, and what was asked about it.
void StreamTracker::ForgetLife() {
  cursor_.reset();
  recent_.Clear();
  has_lost_ranges_ = history_starts_late_ = false;
  publisher_epoch_.clear();
  epoch_is_live_ = false;
  covered_.reset();
  AbandonSnapshot();
  Settle();
  buffer_.Clear();
  old_until_.reset();
  old_suspects_ = 0;
  suspects_.Clear();
  repeats_.Clear();
  seen_.reset();
  CancelAsk();
}

}  // namespace conductor
