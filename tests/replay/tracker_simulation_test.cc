// A model publisher (ring, lossy live channel, restarts, replies that are slow, cut, holed or
// missing) against the tracker, with crashes of ours that go on from the derived state. Checked
// after every fact: numbers are contiguous within a life, or the hole is said; nothing comes twice.
// With a ring that suffices and a replay that works, nothing is lost and lives never mix. With a
// snapshot endpoint that works, nothing stays lost whatever the ring.
// One seed gives one run: CONDUCTOR_SEED=n repeats it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <random>
#include <utility>

#include "tests/replay/tracker_harness.h"

namespace conductor {
namespace {

struct Conditions {
  bool replay = true;
  bool honest_replay = true;  // always answers, completely
  bool cut_replies = false;   // ends too early, but never without one new number
  bool snapshot = false;      // an endpoint, and epoch texts on the live stream
  std::size_t ring_max = 1'000'000;
  int crash_permille = 3, restart_permille = 3, bounce_permille = 5, drop_percent = 10;
};

// The state as the log would derive it.
struct Derived {
  StreamSeed seed;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> recent;
  std::vector<std::uint64_t> numbers;  // applied in this life
  std::string lives;                   // the publisher lives they came from
  std::uint64_t lost = 0, epochs = 0, histories = 0;
  std::uint64_t snapshots = 0;
  std::optional<std::uint64_t> announced;

  void Reset() {
    seed.cursor.reset();
    recent.clear();
    numbers.clear();
    lives.clear();
    announced.reset();
    seed.has_lost_ranges = false;
    seed.history_from.reset();
    seed.publisher_epoch.clear();
  }
  void Apply(const StreamTracker::Output& output) {
    if (std::holds_alternative<NewEpoch>(output)) {
      ++epochs;
      Reset();
    } else if (const auto* history = std::get_if<HistoryStart>(&output)) {
      ASSERT_FALSE(seed.cursor);
      ++histories;
      announced = history->number;
      seed.history_from = history->number;
    } else if (const auto* gap = std::get_if<Lost>(&output)) {
      ASSERT_TRUE(seed.cursor);
      ASSERT_EQ(gap->from, *seed.cursor + 1);
      ASSERT_LE(gap->from, gap->to);
      lost += gap->to - gap->from + 1;
      seed.cursor = gap->to;
      seed.has_lost_ranges = true;
    } else if (const auto* snapshot = std::get_if<PublisherSnapshot>(&output)) {
      const bool same_life =
          seed.publisher_epoch.empty() || seed.publisher_epoch == snapshot->epoch;
      ASSERT_TRUE(same_life) << "without a new life before it";
      ASSERT_TRUE(!seed.cursor || snapshot->resume_number > *seed.cursor);
      ++snapshots;
      Reset();
      recent.clear();
      lives = snapshot->epoch;
      seed.publisher_epoch = snapshot->epoch;
      for (std::uint64_t n = 0; n < snapshot->resume_number; ++n) numbers.push_back(n);
      if (snapshot->resume_number > 0) seed.cursor = snapshot->resume_number - 1;
    } else {
      const auto& frame = std::get<ReceivedFrame>(output);
      if (seed.cursor) {
        ASSERT_EQ(frame.number, *seed.cursor + 1);
      } else if (frame.number > 0) {
        ASSERT_EQ(announced, frame.number);
      }
      seed.cursor = frame.number;
      numbers.push_back(frame.number);
      if (lives.empty() || lives.back() != frame.payload[0]) lives += frame.payload[0];
      recent.emplace_back(frame.number, frame.fingerprint);
      if (recent.size() > kRecentFingerprintsPerStream) recent.pop_front();
    }
  }
  StreamSeed Seed() const {
    StreamSeed copy = seed;
    copy.recent.assign(recent.begin(), recent.end());
    return copy;
  }
};

class World {
 public:
  World(unsigned seed, const Conditions& conditions)
      : random_(seed), conditions_(conditions), harness_(FirstSeed(conditions)) {
    derived_.seed = FirstSeed(conditions);
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) Step();
    conditions_.honest_replay = true;
    conditions_.cut_replies = false;
    conditions_.drop_percent = 0;
    honest_snapshots_ = true;
    Settle();
    Publish();  // Shows a loss at the very end.
    Settle();
  }
  const Derived& derived() const { return derived_; }
  std::uint64_t published() const { return next_; }
  char life() const { return life_; }
  std::uint64_t restarts() const { return restarts_; }
  StreamTracker& tracker() { return harness_.tracker; }

 private:
  static StreamSeed FirstSeed(const Conditions& conditions) {
    StreamSeed seed = TrackerHarness::Seed(conditions.replay);
    if (conditions.snapshot) {
      seed.registration.type = PublisherType::kSglang;
      seed.registration.snapshot_endpoint = "tcp://127.0.0.1:3";
    }
    return seed;
  }
  bool Chance(int permille) { return static_cast<int>(random_() % 1'000) < permille; }
  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  void Publish() {
    ring_.push_back(next_);
    if (ring_.size() > conditions_.ring_max) ring_.pop_front();
    const bool dropped = Below(100) < conditions_.drop_percent;
    if (connected_ && !dropped) wire_.push_back(MakeFrame(next_, life_));
    ++next_;
  }
  void Deliver(int count) {
    for (; count > 0 && !wire_.empty(); --count) {
      const std::string epoch = conditions_.snapshot ? wire_.front().payload : "";
      harness_.tracker.OnLiveFrame(wire_.front(), harness_.now, epoch);
      wire_.pop_front();
      Drain();
    }
  }
  void Drain() {
    auto& outputs = harness_.tracker.outputs();
    while (!outputs.empty() && !::testing::Test::HasFatalFailure()) {
      derived_.Apply(outputs.front());
      outputs.pop_front();
    }
  }
  void Disconnect() {
    if (!connected_) return;
    connected_ = false;
    if (Chance(500)) wire_.clear();  // else: still in the receive queue
    harness_.Disconnect();
  }
  void Connect() {
    if (connected_) return;
    Deliver(static_cast<int>(wire_.size()));
    connected_ = true;
    // Some publishers' proxies repeat the last few frames.
    if (Chance(300)) {
      for (std::uint64_t n = next_ > 3 ? next_ - 3 : 0; n < next_; ++n) {
        wire_.push_back(MakeFrame(n, life_));
      }
    }
    harness_.Connect();
  }
  void RestartPublisher() {
    ++restarts_;
    Disconnect();
    replies_.clear();
    open_ = false;
    snapshot_.reset();
    Deliver(static_cast<int>(wire_.size()));
    ring_.clear();
    next_ = 0;
    life_ = life_ == 'z' ? 'A' : static_cast<char>(life_ + 1);
  }
  void Crash() {
    wire_.clear();
    replies_.clear();
    open_ = false;
    connected_ = false;
    snapshot_.reset();
    snapshot_id_ = 0;
    const std::int64_t now = harness_.now;
    std::destroy_at(&harness_);
    std::construct_at(&harness_, derived_.Seed());
    harness_.now = now;
  }

  void ServeReplay() {
    const auto wanted = harness_.tracker.wanted_replay();
    if (!wanted || wanted->id != harness_.open) {
      replies_.clear();
      open_ = false;
    }
    if (const auto from = harness_.Ask()) {
      open_ = conditions_.honest_replay || Chance(700);
      end_ = conditions_.honest_replay || Chance(800);
      int fresh = 0;
      for (std::uint64_t n : ring_) {
        if (n < *from) continue;
        if (!conditions_.honest_replay && Chance(100)) continue;  // a hole
        replies_.push_back(MakeFrame(n, life_));
        if (n > *from) ++fresh;
        if (conditions_.cut_replies && fresh > 1 && Chance(50)) break;
      }
    }
    if (!open_) return;
    for (int count = 1 + Below(20); count > 0 && !replies_.empty(); --count) {
      const ReceivedFrame frame = replies_.front();
      replies_.pop_front();
      harness_.tracker.OnReplayFrame(harness_.open, frame, harness_.now);
      Drain();
      const auto still = harness_.tracker.wanted_replay();
      if (!still || still->id != harness_.open) return;
    }
    if (replies_.empty() && end_) {
      open_ = false;
      harness_.End();
      Drain();
    }
  }

  // The publisher counts a batch of its own between what is in the snapshot and what comes after.
  void ServeSnapshot() {
    StreamTracker& tracker = harness_.tracker;
    const auto wanted = tracker.wanted_snapshot();
    if (wanted && *wanted != snapshot_id_) {
      snapshot_id_ = *wanted;
      tracker.OnSnapshotSent(snapshot_id_, harness_.now);
      snapshot_.reset();
      if (!honest_snapshots_ && Chance(300)) return;  // no answer
      Publish();
      snapshot_ = PublisherSnapshot{0, next_, std::string(1, life_), {}};
      snapshot_started_ = false;
      return;
    }
    if (!snapshot_) return;
    if (!std::exchange(snapshot_started_, true)) {
      tracker.OnSnapshotStart(snapshot_id_, {snapshot_->resume_number, snapshot_->epoch},
                              harness_.now);
    } else if (!honest_snapshots_ && Chance(300)) {
      tracker.OnSnapshotFailed(snapshot_id_, harness_.now, "snapshot: broken");
      snapshot_.reset();
    } else {
      tracker.OnSnapshot(snapshot_id_, *std::exchange(snapshot_, std::nullopt), harness_.now);
    }
    Drain();
  }

  void Step() {
    if (Chance(conditions_.restart_permille)) RestartPublisher();
    if (Chance(conditions_.bounce_permille)) Disconnect();
    if (Chance(conditions_.crash_permille)) Crash();
    if (!connected_ && Chance(200)) Connect();
    if (Chance(500)) Publish();
    if (Chance(600)) Deliver(1 + Below(4));
    if (Chance(700)) ServeReplay();
    if (conditions_.snapshot && Chance(400)) ServeSnapshot();
    harness_.Pass(Below(40));
    Drain();
  }
  // Ten simulated minutes in which everything works.
  void Settle() {
    Connect();
    for (int i = 0; i < 12'000 && !::testing::Test::HasFatalFailure(); ++i) {
      Deliver(10);
      ServeReplay();
      if (conditions_.snapshot) ServeSnapshot();
      harness_.Pass(50);
      Drain();
    }
  }

  std::mt19937 random_;
  Conditions conditions_;
  TrackerHarness harness_;
  Derived derived_;
  char life_ = 'a';
  std::uint64_t next_ = 0, restarts_ = 0;
  std::deque<std::uint64_t> ring_;
  bool connected_ = false;
  std::deque<ReceivedFrame> wire_;
  bool open_ = false, end_ = true;  // the answer to the replay that is open
  std::deque<ReceivedFrame> replies_;
  std::optional<PublisherSnapshot> snapshot_;  // the answer that is on its way
  std::uint64_t snapshot_id_ = 0;
  bool snapshot_started_ = false;
  bool honest_snapshots_ = false;
};

class TrackerSimulationTest : public ::testing::Test {
 protected:
  // Runs `check` on many worlds, or on the one of CONDUCTOR_SEED.
  template <typename Check>
  void ForSeeds(const Conditions& conditions, const Check& check) {
    const char* fixed = std::getenv("CONDUCTOR_SEED");
    const unsigned first = fixed != nullptr ? static_cast<unsigned>(std::atoi(fixed)) : 1;
    const unsigned last = fixed != nullptr ? first : 150;
    std::cout << "seeds " << first << ".." << last << "\n";
    for (unsigned seed = first; seed <= last; ++seed) {
      SCOPED_TRACE("CONDUCTOR_SEED=" + std::to_string(seed));
      World world(seed, conditions);
      world.Run(3'000);
      if (HasFatalFailure()) return;
      check(world);
      if (HasFailure()) return;
    }
  }
  // The index has the current life, wholly, and nothing else.
  static void ExpectComplete(World& world) {
    EXPECT_EQ(world.derived().lost, 0u);
    EXPECT_EQ(world.derived().histories, 0u);
    EXPECT_LE(world.derived().epochs, world.restarts());
    ExpectWhole(world);
  }
  // Whatever was lost on the way.
  static void ExpectWhole(World& world) {
    EXPECT_FALSE(world.derived().seed.has_lost_ranges);
    EXPECT_FALSE(world.derived().seed.history_from);
    EXPECT_EQ(world.derived().lives, std::string(1, world.life()));
    ASSERT_EQ(world.derived().numbers.size(), world.published());
    EXPECT_EQ(world.tracker().state(), StreamState::kLive);
  }
  // It is where the publisher is, and of the same life.
  static void ExpectCurrent(World& world) {
    ASSERT_TRUE(world.derived().seed.cursor);
    EXPECT_EQ(*world.derived().seed.cursor, world.published() - 1);
    EXPECT_EQ(world.derived().lives.back(), world.life());
    EXPECT_NE(world.tracker().state(), StreamState::kCatchingUp);
    EXPECT_EQ(world.tracker().waiting_frames(), 0u);
  }
};

TEST_F(TrackerSimulationTest, NothingIsLostWhenRingAndReplaySuffice) {
  ForSeeds({}, [](World& world) { ExpectComplete(world); });
}

TEST_F(TrackerSimulationTest, NothingIsLostWhenAnswersAreCutShort) {
  Conditions conditions;
  conditions.cut_replies = true;
  ForSeeds(conditions, [](World& world) { ExpectComplete(world); });
}

TEST_F(TrackerSimulationTest, SmallRingsLoseOnlyWhatTheySay) {
  Conditions conditions;
  conditions.ring_max = 5;
  conditions.drop_percent = 40;
  ForSeeds(conditions, [](World& world) { ExpectCurrent(world); });
}

TEST_F(TrackerSimulationTest, UnreliableReplaysEndInTheCurrentLife) {
  Conditions conditions;
  conditions.honest_replay = false;
  conditions.restart_permille = 6;
  ForSeeds(conditions, [](World& world) { ExpectCurrent(world); });
}

TEST_F(TrackerSimulationTest, WithoutReplayTheStreamFollowsItsPublisher) {
  Conditions conditions;
  conditions.replay = false;
  ForSeeds(conditions, [](World& world) {
    ASSERT_TRUE(world.derived().seed.cursor);
    EXPECT_EQ(*world.derived().seed.cursor, world.published() - 1);
    EXPECT_EQ(world.tracker().counters().replays, 0u);
  });
}

TEST_F(TrackerSimulationTest, SnapshotsMakeGoodWhatSmallRingsLose) {
  for (const bool replay : {true, false}) {
    Conditions conditions;
    conditions.replay = replay;
    conditions.snapshot = true;
    conditions.ring_max = 5;
    conditions.drop_percent = 40;
    std::uint64_t snapshots = 0;
    ForSeeds(conditions, [&](World& world) {
      ExpectWhole(world);
      // Without a replay endpoint a repetition of what was lost before our crash looks like one.
      EXPECT_TRUE(!replay || world.derived().epochs <= world.restarts());
      snapshots += world.derived().snapshots;
    });
    EXPECT_GT(snapshots, 0u);
  }
}

}  // namespace
}  // namespace conductor
