// A model publisher (ring, lossy live channel, restarts, replies that are slow, cut, holed or
// missing) against the tracker, with crashes of ours that go on from the derived state. Checked
// after every fact: numbers are contiguous within a life, or the hole is said; nothing comes twice.
// With a ring that suffices and a replay that works, nothing is lost and lives never mix.
// One seed gives one run: CONDUCTOR_SEED=n repeats it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <random>

#include "tests/replay/tracker_harness.h"

namespace conductor {
namespace {

struct Conditions {
  bool replay = true;
  bool honest_replay = true;  // always answers, completely
  bool cut_replies = false;   // ends too early, but never without one new number
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
  std::optional<std::uint64_t> announced;

  void Reset() {
    seed.cursor.reset();
    recent.clear();
    numbers.clear();
    lives.clear();
    announced.reset();
  }
  void Apply(const StreamTracker::Output& output) {
    if (std::holds_alternative<NewEpoch>(output)) {
      ++epochs;
      Reset();
    } else if (const auto* history = std::get_if<HistoryStart>(&output)) {
      ASSERT_FALSE(seed.cursor);
      ++histories;
      announced = history->number;
    } else if (const auto* gap = std::get_if<Lost>(&output)) {
      ASSERT_TRUE(seed.cursor);
      ASSERT_EQ(gap->from, *seed.cursor + 1);
      ASSERT_LE(gap->from, gap->to);
      lost += gap->to - gap->from + 1;
      seed.cursor = gap->to;
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
      : random_(seed), conditions_(conditions), harness_(TrackerHarness::Seed(conditions.replay)) {
    derived_.seed = TrackerHarness::Seed(conditions.replay);
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) Step();
    conditions_.honest_replay = true;
    conditions_.cut_replies = false;
    conditions_.drop_percent = 0;
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
      harness_.tracker.OnLiveFrame(wire_.front(), harness_.now);
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

  void Step() {
    if (Chance(conditions_.restart_permille)) RestartPublisher();
    if (Chance(conditions_.bounce_permille)) Disconnect();
    if (Chance(conditions_.crash_permille)) Crash();
    if (!connected_ && Chance(200)) Connect();
    if (Chance(500)) Publish();
    if (Chance(600)) Deliver(1 + Below(4));
    if (Chance(700)) ServeReplay();
    harness_.Pass(Below(40));
    Drain();
  }
  // Ten simulated minutes in which everything works.
  void Settle() {
    Connect();
    for (int i = 0; i < 12'000 && !::testing::Test::HasFatalFailure(); ++i) {
      Deliver(10);
      ServeReplay();
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

}  // namespace
}  // namespace conductor
