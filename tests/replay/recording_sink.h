// A FactSink that keeps what it is offered, derives each stream's seed from it as the state would,
// and can be full. With a real clock and a way to wait for a condition with a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/limits.h"
#include "src/ports.h"

namespace conductor::replay_test {

struct SteadyClock : Clock {
  std::int64_t MonotonicMs() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  std::int64_t UnixMs() const override { return MonotonicMs(); }
};

struct NoDigests : DigestSource {
  std::optional<Digest> FindDigest(StreamId, const std::string&, const BlockName&) const override {
    return std::nullopt;
  }
};

class RecordingSink : public FactSink {
 public:
  bool Offer(StreamId stream, std::vector<Fact>& facts, std::size_t) override {
    std::lock_guard lock(mutex_);
    ++offers_;
    if (full_) {
      changed_.notify_all();
      return false;
    }
    for (Fact& fact : facts) Record(streams_[stream], std::move(fact));
    facts.clear();
    changed_.notify_all();
    return true;
  }

  void OnStreamState(StreamId stream, StreamState state) override {
    std::lock_guard lock(mutex_);
    states_[stream].push_back(state);
  }
  std::vector<StreamState> States(StreamId stream) const {
    std::lock_guard lock(mutex_);
    const auto found = states_.find(stream);
    return found == states_.end() ? std::vector<StreamState>() : found->second;
  }

  // "E F0 F1 L2-4 F5": as tracker_harness.h spells it, with "G3" for a counting group.
  std::string Spelled(StreamId stream) const {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? "" : found->second.spelled;
  }
  std::vector<Frame> Frames(StreamId stream) const {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? std::vector<Frame>() : found->second.frames;
  }
  std::size_t FrameCount(StreamId stream) const {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? 0 : found->second.frames.size();
  }
  std::vector<PublisherSnapshot> Snapshots(StreamId stream) const {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? std::vector<PublisherSnapshot>() : found->second.snapshots;
  }
  StreamSeed Seed(StreamSeed base) const {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(base.stream);
    if (found == streams_.end()) return base;
    base.cursor = found->second.cursor;
    base.recent.assign(found->second.recent.begin(), found->second.recent.end());
    return base;
  }
  void SetFull(bool full) {
    std::lock_guard lock(mutex_);
    full_ = full;
  }
  std::uint64_t offers() const {
    std::lock_guard lock(mutex_);
    return offers_;
  }

  // Waits until something is offered or a few milliseconds have passed.
  void WaitABit() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(5));
  }

 private:
  struct Stream {
    std::string spelled;
    std::vector<Frame> frames;
    std::vector<PublisherSnapshot> snapshots;
    std::optional<std::uint64_t> cursor;
    std::deque<std::pair<std::uint64_t, std::uint64_t>> recent;
  };
  static void Spell(Stream& stream, const std::string& word) {
    stream.spelled += stream.spelled.empty() ? word : " " + word;
  }
  static void Record(Stream& stream, Fact fact) {
    if (auto* frame = std::get_if<Frame>(&fact)) {
      Spell(stream, "F" + std::to_string(frame->number));
      stream.cursor = frame->number;
      stream.recent.emplace_back(frame->number, frame->fingerprint);
      if (stream.recent.size() > kRecentFingerprintsPerStream) stream.recent.pop_front();
      stream.frames.push_back(std::move(*frame));
    } else if (std::holds_alternative<NewEpoch>(fact)) {
      Spell(stream, "E");
      stream.cursor.reset();
      stream.recent.clear();
    } else if (auto* history = std::get_if<HistoryStart>(&fact)) {
      Spell(stream, "H" + std::to_string(history->number));
    } else if (auto* lost = std::get_if<Lost>(&fact)) {
      Spell(stream, "L" + std::to_string(lost->from) + "-" + std::to_string(lost->to));
      stream.cursor = lost->to;
    } else if (auto* snapshot = std::get_if<PublisherSnapshot>(&fact)) {
      Spell(stream, "S" + std::to_string(snapshot->resume_number) + ":" +
                        std::to_string(snapshot->links.size()));
      stream.cursor.reset();
      if (snapshot->resume_number > 0) stream.cursor = snapshot->resume_number - 1;
      stream.snapshots.push_back(std::move(*snapshot));
    } else if (auto* group = std::get_if<CountingGroup>(&fact)) {
      Spell(stream, "G" + std::to_string(group->group));
    } else if (auto* dropped = std::get_if<Dropped>(&fact)) {
      const bool gone = dropped->reason == DropReason::kDisconnected;
      Spell(stream, gone ? "Dd" : "Dl");
      if (gone) {
        stream.cursor.reset();
        stream.recent.clear();
      }
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<StreamId, Stream> streams_;
  std::map<StreamId, std::vector<StreamState>> states_;
  bool full_ = false;
  std::uint64_t offers_ = 0;
};

}  // namespace conductor::replay_test
