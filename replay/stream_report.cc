#include "replay/stream_report.h"

#include <algorithm>
#include <utility>

namespace conductor {

void StreamReport::Set(Facts facts) {
  MutexLock lock(mutex_);
  facts_ = std::move(facts);
}

StreamStatus StreamReport::Read(std::int64_t now_ms) const {
  Facts facts;
  {
    MutexLock lock(mutex_);
    facts = facts_;
  }
  const auto age = [now_ms](std::int64_t then_ms) {
    return std::max<std::int64_t>(0, now_ms - then_ms);
  };
  StreamStatus status;
  status.state = facts.state;
  status.last_frame_age_ms = facts.last_frame_ms < 0 ? -1 : age(facts.last_frame_ms);
  status.disconnected_for_ms = facts.connected ? -1 : age(facts.disconnected_since_ms);
  status.last_error = std::move(facts.last_error);
  status.first_catch_up_done = facts.first_catch_up_done;
  status.counters = {
      {"frames_received_total", facts.reader.received},
      {"frames_delivered_total", facts.tracker.frames},
      {"frames_malformed_total", facts.reader.malformed},
      {"ignored_topic_mismatch_total", facts.reader.topic_mismatch},
      {"ignored_second_publisher_total", facts.reader.second_publisher},
      {"duplicates_dropped_total", facts.tracker.duplicates},
      {"gaps_total", facts.tracker.gaps},
      {"replay_requests_total", facts.tracker.replays},
      {"replay_frames_total", facts.tracker.replay_frames},
      {"replay_failures_total", facts.tracker.replay_failures},
      {"snapshot_requests_total", facts.tracker.snapshots},
      {"snapshot_failures_total", facts.tracker.snapshot_failures},
      {"lost_numbers_total", facts.tracker.lost_numbers},
      {"epoch_changes_total", facts.tracker.epoch_changes},
      {"buffer_overflows_total", facts.tracker.buffer_overflows},
      {"connects_total", facts.tracker.connects},
      {"disconnects_total", facts.tracker.disconnects},
      {"connect_retries_total", facts.reader.connect_retries},
      {"queue_full_total", facts.reader.sink_full},
  };
  return status;
}

}  // namespace conductor
