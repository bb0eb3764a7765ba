// The snapshot rows (S) and the epoch row (N1) of the decision table in stream_tracker.h.
#include <gtest/gtest.h>

#include "replay/tracker_limits.h"
#include "tests/replay/tracker_harness.h"

namespace conductor {
namespace {

class H : public TrackerHarness {
 public:
  using TrackerHarness::TrackerHarness;
  // An SGLang stream that has applied 0..10 of life a and can give snapshots.
  static StreamSeed SeedWithSnapshot(bool replay) {
    StreamSeed seed = SeedAt(replay, 0, 10);
    seed.registration.type = PublisherType::kSglang;
    seed.registration.snapshot_endpoint = "tcp://127.0.0.1:3";
    return seed;
  }

  void Live(std::uint64_t number, const char* epoch = "", char life = 'a') {
    tracker.OnLiveFrame(MakeFrame(number, life), now, epoch);
  }
  // Sends the snapshot request that is wanted, if it is a new one.
  bool AskSnapshot() {
    const auto wanted = tracker.wanted_snapshot();
    if (!wanted || wanted == snapshot) return false;
    snapshot = *wanted;
    tracker.OnSnapshotSent(snapshot, now);
    return true;
  }
  bool AskSnapshotWithin(std::int64_t ms_max) {
    for (std::int64_t passed = 0; passed <= ms_max; passed += 10) {
      if (AskSnapshot()) return true;
      Pass(10);
    }
    return false;
  }
  void Start(std::uint64_t resume, const char* epoch) {
    tracker.OnSnapshotStart(snapshot, {resume, epoch}, now);
  }
  void Whole(std::uint64_t resume, const char* epoch) {
    tracker.OnSnapshot(snapshot, {0, resume, epoch, {{std::nullopt, {1, {}}}}}, now);
  }
  void Snapshot(std::uint64_t resume, const char* epoch) {
    Start(resume, epoch);
    Whole(resume, epoch);
  }
  void Fail() { tracker.OnSnapshotFailed(snapshot, now, "snapshot: broken"); }

  std::uint64_t snapshot = 0;
};

// 11..35 are beyond the ring: lost, and the snapshot is being asked for.
H BeyondTheRing(bool replay = true) {
  H h(H::SeedWithSnapshot(replay));
  h.Connect();
  if (replay) {
    EXPECT_EQ(h.Ask(), Asked(10));
    h.Reply(36, 40, 'a');
    h.End();
  } else {
    for (std::uint64_t n = 36; n <= 40; ++n) h.Live(n);
  }
  EXPECT_EQ(h.Out(), "L11-35 F36 F37 F38 F39 F40");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_TRUE(h.AskSnapshotWithin(100));
  EXPECT_EQ(h.State(), StreamState::kCatchingUp);
  return h;
}

TEST(TrackerSnapshotTest, S1S2ALossBeyondTheRingIsMadeGood) {
  for (const bool replay : {true, false}) {
    H h = BeyondTheRing(replay);
    h.Live(41);
    h.Live(42);
    h.Live(43);
    EXPECT_EQ(h.Out(), "") << "live frames wait";
    h.Snapshot(43, "e1");
    EXPECT_EQ(h.Out(), "S43:1 F43");
    EXPECT_EQ(h.State(), StreamState::kLive);
    EXPECT_EQ(h.tracker.cursor(), 43u);
    EXPECT_EQ(h.tracker.counters().snapshots, 1u);
    EXPECT_EQ(h.tracker.counters().snapshot_failures, 0u);
    EXPECT_EQ(h.tracker.last_error(), "");
    h.Live(44);
    EXPECT_EQ(h.Out(), "F44");
    EXPECT_FALSE(h.AskSnapshotWithin(120'000));
  }
}

TEST(TrackerSnapshotTest, S1ALateJoinIsMadeGood) {
  H h([] {
    StreamSeed seed = H::SeedWithSnapshot(true);
    seed.cursor.reset();
    seed.recent.clear();
    return seed;
  }());
  h.Connect();
  h.Ask();
  h.Reply(36, 37, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "H36 F36 F37");
  ASSERT_TRUE(h.AskSnapshotWithin(100));
  h.Snapshot(38, "e1");
  EXPECT_EQ(h.Out(), "S38:1");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerSnapshotTest, S1OnlyWhenSomethingIsMissing) {
  H h(H::SeedWithSnapshot(true));
  h.Connect();
  h.Ask();
  h.Reply(10, 12, 'a');
  h.End();
  EXPECT_FALSE(h.AskSnapshotWithin(120'000));
  h.Live(14);
  EXPECT_FALSE(h.AskSnapshot()) << "the replay goes first";
  h.Ask();
  h.Reply(12, 14, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13 F14");
  EXPECT_FALSE(h.AskSnapshotWithin(120'000));
}

TEST(TrackerSnapshotTest, S1WhatWasLostBeforeOurRestartIsMadeGoodToo) {
  StreamSeed seed = H::SeedWithSnapshot(true);
  seed.has_lost_ranges = true;
  H h(seed);
  h.Connect();
  h.Ask();
  h.Reply(10);
  h.End();
  EXPECT_TRUE(h.AskSnapshotWithin(100));
}

TEST(TrackerSnapshotTest, S1OtherPublishersHaveNone) {
  StreamSeed seed = H::SeedWithSnapshot(false);
  seed.registration.type = PublisherType::kVllm;
  H h(seed);
  h.Connect();
  h.Live(14);
  EXPECT_EQ(h.Out(), "L11-13 F14");
  EXPECT_FALSE(h.AskSnapshotWithin(120'000));
}

TEST(TrackerSnapshotTest, S2TheRestIsInTheRing) {
  H h = BeyondTheRing();
  h.Live(45);
  h.Snapshot(43, "e1");
  EXPECT_EQ(h.Out(), "S43:1");
  EXPECT_EQ(h.Ask(), Asked(40));
  h.Reply(40, 45, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F43 F44 F45");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerSnapshotTest, S2WithoutARingTheRestIsLostAndAskedForAgain) {
  H h = BeyondTheRing(/*replay=*/false);
  h.Live(45);
  h.Snapshot(43, "e1");
  EXPECT_EQ(h.Out(), "S43:1 L43-44 F45");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_FALSE(h.AskSnapshotWithin(kSnapshotMsMin - 50));
  EXPECT_TRUE(h.AskSnapshotWithin(200));
}

TEST(TrackerSnapshotTest, S3AnotherEpochTextIsANewLife) {
  StreamSeed seed = H::SeedWithSnapshot(true);
  seed.has_lost_ranges = true;
  seed.publisher_epoch = "e1";
  H h(seed);
  h.Connect();
  h.Ask();
  h.Reply(10);
  h.End();
  ASSERT_TRUE(h.AskSnapshotWithin(100));
  h.Snapshot(500, "e2");  // The number alone would not tell.
  EXPECT_EQ(h.Out(), "E S500:1");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 1u);
}

TEST(TrackerSnapshotTest, S3WithoutATextALowerNumberIsANewLife) {
  H h = BeyondTheRing();
  h.Live(41, "", 'b');
  h.Snapshot(41, "e2");
  EXPECT_EQ(h.Out(), "S41:1 F41b");
  H low = BeyondTheRing();
  low.Snapshot(7, "e2");
  EXPECT_EQ(low.Out(), "E S7:1");
}

TEST(TrackerSnapshotTest, S4OfAnotherProcessItIsRefused) {
  H h = BeyondTheRing();
  h.Live(41, "e1");
  h.Snapshot(42, "e2");
  EXPECT_EQ(h.Out(), "F41");
  EXPECT_EQ(h.tracker.last_error(), "snapshot: expected epoch e1 as in the live topic, got e2");
  EXPECT_EQ(h.tracker.counters().snapshot_failures, 1u);
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_TRUE(h.AskSnapshotWithin(kSnapshotMsMin + 50));
}

TEST(TrackerSnapshotTest, S4AnOlderOneIsRefused) {
  H h = BeyondTheRing();
  h.Live(41, "e1");
  h.Snapshot(40, "e1");
  EXPECT_EQ(h.Out(), "F41");
  EXPECT_EQ(h.tracker.last_error(), "snapshot: expected to resume above 40, got 40");
}

TEST(TrackerSnapshotTest, S5ABrokenOneIsAskedAgainWithBackOff) {
  H h = BeyondTheRing();
  std::int64_t last_ms = 0;
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 9; ++i) {
    h.Live(static_cast<std::uint64_t>(41 + i));
    EXPECT_EQ(h.Out(), "") << "it may answer: frames wait";
    h.Start(42, "e1");
    h.Fail();
    EXPECT_EQ(h.Out(), "F" + std::to_string(41 + i));
    EXPECT_EQ(h.tracker.last_error(), "snapshot: broken");
    last_ms = h.now;
    ASSERT_TRUE(h.AskSnapshotWithin(70'000));
    waits.push_back((h.now - last_ms) / 1'000);
  }
  EXPECT_EQ(waits, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 60, 60, 60}));
  EXPECT_EQ(h.tracker.counters().snapshot_failures, 9u);
}

TEST(TrackerSnapshotTest, S5OneThatDoesNotAnswerIsWaitedForOnce) {
  H h = BeyondTheRing();
  h.Live(41);
  h.Pass(1'990);
  EXPECT_EQ(h.Out(), "");
  h.Pass(10);
  EXPECT_EQ(h.Out(), "F41");
  EXPECT_EQ(h.tracker.last_error(), "snapshot: no answer");
  ASSERT_TRUE(h.AskSnapshotWithin(1'100));
  h.Live(42);
  EXPECT_EQ(h.Out(), "F42") << "not waited for";
  // It answers after all, and later than what was applied meanwhile.
  h.Start(44, "e1");
  h.Live(43);
  EXPECT_EQ(h.Out(), "") << "from its first answer on it is";
  h.Whole(44, "e1");
  EXPECT_EQ(h.Out(), "S44:1");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerSnapshotTest, S5AnAnswerThatWasOvertakenIsAskedForAgain) {
  H h = BeyondTheRing();
  h.Pass(2'000);
  ASSERT_TRUE(h.AskSnapshotWithin(1'100));
  h.Live(41);
  h.Live(42);
  h.Start(42, "e1");
  EXPECT_EQ(h.tracker.last_error(), "snapshot: overtaken by live frames; asked again");
  ASSERT_TRUE(h.AskSnapshotWithin(2'100));
  h.Live(43);
  EXPECT_EQ(h.Out(), "F41 F42");
  h.Snapshot(43, "e1");
  EXPECT_EQ(h.Out(), "S43:1 F43");
}

TEST(TrackerSnapshotTest, S5OneThatStopsOrNeverEndsIsGivenUp) {
  H h = BeyondTheRing();
  h.Start(42, "e1");
  h.Pass(9'990);
  h.tracker.OnSnapshotProgress(h.snapshot, h.now);
  h.Pass(9'990);
  EXPECT_EQ(h.State(), StreamState::kCatchingUp);
  h.Pass(10);
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_EQ(h.tracker.last_error(), "snapshot: the answer stopped before its end");
  ASSERT_TRUE(h.AskSnapshotWithin(1'100));
  h.Start(42, "e1");
  for (std::int64_t ms = 0; ms < kSnapshotMsMax; ms += 5'000) {
    EXPECT_EQ(h.State(), StreamState::kCatchingUp);
    h.Pass(5'000);
    h.tracker.OnSnapshotProgress(h.snapshot, h.now);
  }
  EXPECT_EQ(h.tracker.last_error(), "snapshot: not whole in time");
  h.Whole(42, "e1");
  EXPECT_EQ(h.Out(), "") << "it was given up";
}

TEST(TrackerSnapshotTest, S6WhatIsInItMayComeLate) {
  for (const bool replay : {true, false}) {
    H h = BeyondTheRing(replay);
    h.Snapshot(43, "e1");
    EXPECT_EQ(h.Out(), "S43:1");
    h.Live(41);
    h.Live(42);
    h.Live(43);
    EXPECT_EQ(h.Out(), "F43");
    EXPECT_EQ(h.tracker.counters().duplicates, 2u);
    EXPECT_EQ(h.tracker.counters().epoch_changes, 0u);
    EXPECT_EQ(h.State(), StreamState::kLive);
  }
}

TEST(TrackerSnapshotTest, S6ButOnlyOnceAndOnItsConnection) {
  H twice = BeyondTheRing(/*replay=*/false);
  twice.Snapshot(43, "e1");
  twice.Live(42);
  twice.Live(42);
  EXPECT_EQ(twice.Out(), "S43:1 E H42 F42");
  H later = BeyondTheRing(/*replay=*/false);
  later.Snapshot(43, "e1");
  later.Disconnect();
  later.Connect();
  later.Live(42);
  EXPECT_EQ(later.Out(), "S43:1 E H42 F42");
}

TEST(TrackerSnapshotTest, DisconnectionEndsTheWait) {
  H h = BeyondTheRing(/*replay=*/false);
  h.Live(42);
  h.Disconnect();
  EXPECT_EQ(h.Out(), "L41-41 F42");
  h.Snapshot(43, "e1");
  EXPECT_EQ(h.Out(), "") << "of the connection before";
  H with = BeyondTheRing();
  with.Live(42);
  with.Disconnect();
  with.Connect();
  EXPECT_EQ(with.Ask(), Asked(40));
  with.Reply(40, 42, 'a');
  with.End();
  EXPECT_EQ(with.Out(), "F41 F42");
}

TEST(TrackerSnapshotTest, AGapWhileItIsOpenWaitsForItToo) {
  H h = BeyondTheRing();
  h.Live(41);
  h.Live(44);
  EXPECT_EQ(h.Out(), "");
  h.Fail();
  EXPECT_EQ(h.Out(), "F41");
  EXPECT_EQ(h.Ask(), Asked(41));
  h.Reply(41, 44, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F42 F43 F44");
}

TEST(TrackerSnapshotTest, N1AnotherEpochTextIsANewLifeWhateverTheNumber) {
  for (const bool replay : {true, false}) {
    H h(H::SeedWithSnapshot(replay));
    h.Connect();
    if (replay) {
      h.Ask();
      h.Reply(10);
      h.End();
    }
    h.Live(11, "e1");
    h.Live(12, "e1");
    EXPECT_EQ(h.Out(), "F11 F12");
    h.Live(13, "e2", 'b');
    if (replay) {
      EXPECT_EQ(h.Out(), "E");
      EXPECT_EQ(h.Ask(), Asked(0));
      h.Reply(0, 13, 'b');
      h.End();
      EXPECT_EQ(h.Out(), "F0b F1b F2b F3b F4b F5b F6b F7b F8b F9b F10b F11b F12b F13b");
    } else {
      EXPECT_EQ(h.Out(), "E H13 F13b");
    }
    EXPECT_EQ(h.tracker.counters().epoch_changes, 1u);
    h.Live(14, "e2", 'b');
    EXPECT_EQ(h.Out(), "F14b");
  }
}

TEST(TrackerSnapshotTest, N1FromZeroTheNewLifeBeginsAtOnce) {
  H h(H::SeedWithSnapshot(false));
  h.Connect();
  h.Live(11, "e1");
  h.Live(0, "e2", 'b');
  EXPECT_EQ(h.Out(), "F11 E F0b");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 1u);
}

TEST(TrackerSnapshotTest, N1ATextThatIsNotSaidChangesNothing) {
  H h(H::SeedWithSnapshot(false));
  h.Connect();
  h.Live(11, "e1");
  h.Live(12);
  h.Live(13, "e1");
  EXPECT_EQ(h.Out(), "F11 F12 F13");
}

TEST(TrackerSnapshotTest, N2TheSameTextIsTheSameLife) {
  for (const bool replay : {true, false}) {
    H h = BeyondTheRing(replay);
    h.Snapshot(43, "e1");
    h.Live(43, "e1");
    h.Disconnect();
    h.Connect();
    if (replay) {
      h.Ask();
      h.Reply(43);
      h.End();
    }
    h.Live(42, "e1");  // Below the snapshot: nothing to compare with.
    h.Live(43, "e1");
    h.Live(44, "e1");
    EXPECT_EQ(h.Out(), "S43:1 F43 F44");
    EXPECT_EQ(h.tracker.counters().duplicates, 2u);
    EXPECT_EQ(h.tracker.counters().epoch_changes, 0u);
  }
}

TEST(TrackerSnapshotTest, N1TheTextOfASnapshotIsComparedWithTheNextFrames) {
  H h = BeyondTheRing(/*replay=*/false);
  h.Snapshot(43, "e1");
  h.Live(43, "e2", 'b');
  EXPECT_EQ(h.Out(), "S43:1 E H43 F43b");
}

}  // namespace
}  // namespace conductor
