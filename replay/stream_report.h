// What a stream's I/O thread tells everybody else: a small copy behind a mutex, written after each
// turn that changed something, read by status requests. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "replay/stream_tracker.h"
#include "src/mutex.h"
#include "src/ports.h"

namespace conductor {

// Counters of the sockets, beside the tracker's.
struct ReaderCounters {
  std::uint64_t received = 0;          // live messages, valid or not
  std::uint64_t malformed = 0;         // no frame could be read from the message
  std::uint64_t topic_mismatch = 0;    // another topic than the registration's
  std::uint64_t second_publisher = 0;  // a bound endpoint: a second publisher's frames
  std::uint64_t connect_retries = 0;
  std::uint64_t sink_full = 0;  // times the apply queue took nothing
};

class StreamReport {
 public:
  struct Facts {
    StreamState state = StreamState::kConnecting;
    bool connected = false;
    bool first_catch_up_done = false;
    std::int64_t disconnected_since_ms = 0;
    std::int64_t last_frame_ms = -1;  // -1: never
    std::uint64_t waiting_frames = 0;
    TrackerCounters tracker;
    ReaderCounters reader;
    std::string last_error;
  };

  explicit StreamReport(std::int64_t now_ms) { facts_.disconnected_since_ms = now_ms; }

  void Set(Facts facts);
  StreamStatus Read(std::int64_t now_ms) const;

 private:
  mutable Mutex mutex_;
  Facts facts_ GUARDED_BY(mutex_);
};

}  // namespace conductor
