// Drives one StreamTracker with a hand-held clock and spells what it says as a short text:
// "E" new epoch, "H5" history starts at 5, "L11-13" lost, "Dl"/"Dd" dropped (lost events,
// disconnected), "S21:3" a snapshot of 3 blocks that resumes at 21, "F14" frame 14 of life a,
// "F14b" of life b.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "replay/stream_tracker.h"

namespace conductor {

inline std::uint64_t FrameFingerprint(std::uint64_t number, char life) {
  return number * 1'000 + static_cast<unsigned char>(life);
}

inline ReceivedFrame MakeFrame(std::uint64_t number, char life = 'a', std::size_t bytes = 1) {
  return {number, FrameFingerprint(number, life), std::string(bytes, life)};
}

inline std::string Spell(const StreamTracker::Output& output) {
  if (std::holds_alternative<NewEpoch>(output)) return "E";
  if (const auto* history = std::get_if<HistoryStart>(&output)) {
    return "H" + std::to_string(history->number);
  }
  if (const auto* lost = std::get_if<Lost>(&output)) {
    return "L" + std::to_string(lost->from) + "-" + std::to_string(lost->to);
  }
  if (const auto* dropped = std::get_if<Dropped>(&output)) {
    return dropped->reason == DropReason::kDisconnected ? "Dd" : "Dl";
  }
  if (const auto* snapshot = std::get_if<PublisherSnapshot>(&output)) {
    return "S" + std::to_string(snapshot->resume_number) + ":" +
           std::to_string(snapshot->links.size());
  }
  const auto& frame = std::get<ReceivedFrame>(output);
  const char life = frame.payload.empty() ? 'a' : frame.payload[0];
  return "F" + std::to_string(frame.number) + (life == 'a' ? "" : std::string(1, life));
}

class TrackerHarness {
 public:
  static StreamSeed Seed(bool replay, PublisherType type = PublisherType::kVllm) {
    StreamSeed seed;
    seed.stream = 7;
    seed.registration.instance_id = "i1";
    seed.registration.endpoint = "tcp://127.0.0.1:1";
    seed.registration.type = type;
    if (replay) seed.registration.replay_endpoint = "tcp://127.0.0.1:2";
    return seed;
  }
  // A stream that has applied [from, to] of life a.
  static StreamSeed SeedAt(bool replay, std::uint64_t from, std::uint64_t to) {
    StreamSeed seed = Seed(replay);
    seed.epoch = 1;
    seed.cursor = to;
    for (std::uint64_t n = from; n <= to; ++n)
      seed.recent.emplace_back(n, FrameFingerprint(n, 'a'));
    return seed;
  }

  explicit TrackerHarness(const StreamSeed& seed, TrackerOptions options = {})
      : tracker(seed, options, 0), lost_(seed.has_lost_ranges) {}

  // The state that operators see: the tracker's own, and what the state machine knows to be lost
  // (without clears, which no harness applies).
  StreamState State() {
    bool lost = lost_;
    for (const auto& output : tracker.outputs()) Note(output, &lost);
    const StreamState said = tracker.state();
    return said == StreamState::kLive && lost ? StreamState::kDegraded : said;
  }
  // What it said since the last call.
  std::string Out() {
    std::string text;
    while (!tracker.outputs().empty()) {
      if (!text.empty()) text += ' ';
      Note(tracker.outputs().front(), &lost_);
      text += Spell(tracker.outputs().front());
      tracker.outputs().pop_front();
    }
    return text;
  }
  void Live(std::uint64_t number, char life = 'a') {
    tracker.OnLiveFrame(MakeFrame(number, life), now);
  }
  void Connect() { tracker.OnConnected(now); }
  void Disconnect() { tracker.OnDisconnected(now); }
  // Sends the replay that is wanted, if it is a new one: its start. Else none.
  std::optional<std::uint64_t> Ask() {
    const auto wanted = tracker.wanted_replay();
    if (!wanted || wanted->id == open) return std::nullopt;
    open = wanted->id;
    tracker.OnReplaySent(open, now);
    return wanted->from;
  }
  void Reply(std::uint64_t number, char life = 'a') {
    tracker.OnReplayFrame(open, MakeFrame(number, life), now);
  }
  void Reply(std::uint64_t from, std::uint64_t to, char life) {
    for (std::uint64_t n = from; n <= to; ++n) Reply(n, life);
  }
  void End() { tracker.OnReplayEnd(open, now); }
  void Pass(std::int64_t ms) {
    now += ms;
    tracker.OnTick(now);
  }
  // Waits for the next ask, at most `ms_max`.
  std::optional<std::uint64_t> AskWithin(std::int64_t ms_max) {
    for (std::int64_t passed = 0; passed <= ms_max; passed += 10) {
      if (const auto from = Ask()) return from;
      Pass(10);
    }
    return std::nullopt;
  }

  std::int64_t now = 0;
  std::uint64_t open = 0;
  StreamTracker tracker;

 private:
  static void Note(const StreamTracker::Output& output, bool* lost) {
    if (std::holds_alternative<Lost>(output)) *lost = true;
    if (std::holds_alternative<NewEpoch>(output)) *lost = false;
    if (std::holds_alternative<PublisherSnapshot>(output)) *lost = false;
    const auto* dropped = std::get_if<Dropped>(&output);
    if (dropped != nullptr && dropped->reason == DropReason::kDisconnected) *lost = false;
  }
  bool lost_;
};

using Asked = std::optional<std::uint64_t>;

}  // namespace conductor
