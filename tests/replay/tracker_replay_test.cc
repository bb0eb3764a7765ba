// The replay rows (R, E, T, P) of the decision table in stream_tracker.h.
#include <gtest/gtest.h>

#include "replay/tracker_limits.h"
#include "tests/replay/tracker_harness.h"

namespace conductor {
namespace {

using H = TrackerHarness;

// A stream at 10 that is connected and has just been asked from 10.
H Asking(char, TrackerOptions options = {}) {
  H h(H::SeedAt(true, 0, 10), options);
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(10));
  return h;
}

// The same, live.
H Settled(TrackerOptions options = {}) {
  H h = Asking('a', options);
  h.Reply(10);
  h.End();
  EXPECT_EQ(h.State(), StreamState::kLive);
  return h;
}

TEST(TrackerReplayTest, R1SameFrameMeansSameLife) {
  H h = Asking('a');
  h.Reply(10, 12, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 0u);
}

TEST(TrackerReplayTest, R2OtherFrameMeansNewLife) {
  H h = Asking('a');
  h.Live(11);  // It waited, and is not of the new life.
  h.Reply(10, 'b');
  EXPECT_EQ(h.Out(), "E");
  h.Reply(11, 'b');  // The rest of an answer that is no longer wanted.
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Reply(0, 11, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "F0b F1b F2b F3b F4b F5b F6b F7b F8b F9b F10b F11b");
}

TEST(TrackerReplayTest, R3RingHasMovedOn) {
  H h = Settled();
  h.Live(40);
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Reply(36, 40, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "L11-35 F36 F37 F38 F39 F40");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_EQ(h.tracker.counters().lost_numbers, 25u);
  EXPECT_EQ(h.AskWithin(120'000), Asked());
}

TEST(TrackerReplayTest, R3WhatWaitsBelowTheRingIsNotLost) {
  H h = Settled();
  for (const std::uint64_t n : {20, 21, 30}) h.Live(n);
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Reply(36, 40, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "L11-19 F20 F21 L22-29 F30 L31-35 F36 F37 F38 F39 F40");
  EXPECT_EQ(h.tracker.counters().duplicates, 0u);
}

TEST(TrackerReplayTest, R3HistoryBeginsWithTheFirstFrameThatIsKnown) {
  H h(H::Seed(true));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  for (std::uint64_t n = 10; n <= 14; ++n) h.Live(n);
  h.Reply(13, 15, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "H10 F10 F11 F12 F13 F14 F15");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, R3aNothingIsLostWhenTheFirstNumberStaysTheNextOne) {
  H h = Settled();
  h.Live(14);
  for (std::uint32_t asks = 1; asks < kReplayUnprovedMax; ++asks) {
    EXPECT_EQ(h.AskWithin(1'000), Asked(10));
    h.Reply(11, 14, 'a');
    EXPECT_EQ(h.Out(), "");
  }
  EXPECT_EQ(h.AskWithin(1'000), Asked(10));
  h.Reply(11, 14, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13 F14");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

// The reply of 10 was lost; what follows is of another process.
TEST(TrackerReplayTest, R3aAnAnswerWithoutTheFrameThatProvesItIsAskedForAgain) {
  H h = Asking('a');
  h.Reply(11, 13, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.State(), StreamState::kCatchingUp);
  EXPECT_EQ(h.AskWithin(1'000), Asked(10));
  h.Reply(10, 'b');
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
}

TEST(TrackerReplayTest, R3aAProbeWithoutTheFrameThatProvesItSettlesNothingYet) {
  H h = Asking('a');
  h.Pass(2'000);
  for (std::uint32_t probes = 1; probes < kReplayUnprovedMax; ++probes) {
    EXPECT_EQ(h.AskWithin(60'000), Asked(10));
    h.Reply(11, 'b');
    h.End();
    EXPECT_EQ(h.Out(), "");
    EXPECT_EQ(h.State(), StreamState::kDegraded);
  }
  EXPECT_EQ(h.AskWithin(60'000), Asked(10));
  h.Reply(10, 'b');
  EXPECT_EQ(h.Out(), "E");
}

TEST(TrackerReplayTest, R3WaitingFramesReachTheFirstNumberOfTheRing) {
  H h = Asking('a');
  for (std::uint64_t n = 11; n <= 20; ++n) h.Live(n);
  h.Reply(15, 21, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13 F14 F15 F16 F17 F18 F19 F20 F21");
}

TEST(TrackerReplayTest, R3LateJoinIntoARolledRingIsLiveWithHistoryStart) {
  H h(H::Seed(true));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Live(9);
  h.Reply(5, 9, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "H5 F5 F6 F7 F8 F9");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, R4LostNumbersAreNeverAppliedLate) {
  H h = Settled();
  h.Live(12);
  h.Ask();
  h.Pass(2'000);
  EXPECT_EQ(h.Out(), "L11-11 F12");
  EXPECT_EQ(h.AskWithin(2'000), Asked(10));
  h.Reply(10, 13, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F13");
}

TEST(TrackerReplayTest, R5ContradictionWithAnAppliedFrameIsANewLife) {
  H h(H::Seed(true));
  h.Connect();
  h.Ask();
  h.Live(0);
  h.Live(1);
  EXPECT_EQ(h.Out(), "F0 F1");
  h.Reply(0);
  h.Reply(1, 'b');
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
}

TEST(TrackerReplayTest, R5ContradictionWithAWaitingFrameIsANewLife) {
  H h = Asking('a');
  h.Live(13);
  h.Reply(12, 'b');  // The ring no longer has 10: nothing to compare with.
  EXPECT_EQ(h.Out(), "L11-11 F12b F13");
  h.Reply(13, 'b');
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
}

TEST(TrackerReplayTest, R7HoleInTheAnswerIsAskedAgainFromTheLastApplied) {
  H h = Settled();
  h.Live(16);
  h.Ask();
  h.Reply(10, 12, 'a');
  h.Reply(14);  // 13 was dropped on the way.
  EXPECT_EQ(h.Out(), "F11 F12");
  EXPECT_EQ(h.AskWithin(1'000), Asked(12));
  h.Reply(12, 16, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F13 F14 F15 F16");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, R7HoleThatStaysIsLostAndTheRestIsApplied) {
  H h = Settled();
  h.Live(16);
  int asks = 0;
  while (h.AskWithin(2'000) && asks < 20) {
    ++asks;
    const std::uint64_t from = h.tracker.wanted_replay()->from;
    for (std::uint64_t n = from; n <= 16; ++n) {
      if (n != 13) h.Reply(n);  // A batch that its publisher failed to send.
    }
    h.End();
  }
  EXPECT_EQ(h.Out(), "F11 F12 L13-13 F14 F15 F16");
  EXPECT_EQ(asks, 1 + 3);  // The first made progress, three did not.
  EXPECT_EQ(h.State(), StreamState::kDegraded);
}

TEST(TrackerReplayTest, R7RoundsAreBounded) {
  H h = Settled();
  h.Live(100'000);
  std::uint32_t asks = 0;
  while (h.AskWithin(120'000) && h.State() == StreamState::kCatchingUp && asks < 1'000) {
    ++asks;
    const std::uint64_t from = h.tracker.wanted_replay()->from;
    h.Reply(from, from + 1, 'a');  // One new number each time.
    h.End();
  }
  EXPECT_EQ(asks, kReplayRoundsMax);
  EXPECT_EQ(h.tracker.cursor(), 100'000u);
}

TEST(TrackerReplayTest, E1OnlyAnEndMarkerIsANewLife) {
  H h = Asking('a');
  h.End();
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
  h.End();
  EXPECT_EQ(h.State(), StreamState::kLive);
  h.Live(0, 'b');
  EXPECT_EQ(h.Out(), "F0b");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 1u);
}

TEST(TrackerReplayTest, E1LiveFrameOfTheNewLifeComesFirst) {
  H h = Asking('a');
  h.Live(0, 'b');
  EXPECT_EQ(h.Out(), "E F0b");
  h.End();  // Of the old question.
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 1u);
}

TEST(TrackerReplayTest, E2EndMarkerThatContradictsTheLiveStreamIsAskedAgain) {
  H h = Asking('a');
  h.Live(11);
  h.End();
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.AskWithin(1'000), Asked(10));
  h.Reply(10, 11, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, E2EndMarkerThatStaysWrongIsLoss) {
  H h = Settled();
  h.Live(14);
  int asks = 0;
  while (h.State() == StreamState::kCatchingUp && h.AskWithin(2'000)) {
    ++asks;
    h.End();
  }
  EXPECT_EQ(asks, 3);
  EXPECT_EQ(h.Out(), "L11-13 F14");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
}

TEST(TrackerReplayTest, E2WithNothingAppliedEndsInHistoryStart) {
  H h(H::Seed(true));
  h.Connect();
  h.Live(4);
  int asks = 0;
  while (h.State() == StreamState::kCatchingUp && h.AskWithin(2'000)) {
    ++asks;
    h.End();
  }
  EXPECT_EQ(asks, 3);
  EXPECT_EQ(h.Out(), "H4 F4");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, E3TruncatedAnswerIsAskedAgain) {
  H h = Settled();
  h.Live(20);
  h.Ask();
  h.Reply(10, 15, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13 F14 F15");
  EXPECT_EQ(h.AskWithin(1'000), Asked(15));
  h.Reply(15, 20, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F16 F17 F18 F19 F20");
}

TEST(TrackerReplayTest, T1NoReplyCostsOneAttempt) {
  H h = Settled();
  h.Live(13);
  h.Live(15);
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Pass(1'990);
  EXPECT_EQ(h.Out(), "");
  h.Pass(10);
  EXPECT_EQ(h.Out(), "L11-12 F13 L14-14 F15");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_EQ(h.tracker.last_error(), "replay: no answer");
  h.Live(16);
  EXPECT_EQ(h.Out(), "F16");
}

// What is applied while nobody could say whose life it is must not vouch for itself.
TEST(TrackerReplayTest, T1TheProbeComparesWhatWasKnownBeforeTheSilence) {
  for (const char life : {'a', 'b'}) {
    H h = Asking('a');
    h.Pass(2'000);
    h.Live(11, life);
    EXPECT_EQ(h.Out(), life == 'a' ? "F11" : "F11b");
    EXPECT_EQ(h.State(), StreamState::kDegraded);
    EXPECT_EQ(h.AskWithin(60'000), Asked(10)) << "not 11, which is the one in question";
    h.Reply(10, life);
    if (life == 'a') {
      h.Reply(11, life);
      h.End();
      EXPECT_EQ(h.Out(), "");
      EXPECT_EQ(h.State(), StreamState::kLive);
      h.Live(13);
      EXPECT_EQ(h.Ask(), Asked(11)) << "settled: from the last one again";
    } else {
      EXPECT_EQ(h.Out(), "E");
      EXPECT_EQ(h.Ask(), Asked(0));
    }
  }
}

TEST(TrackerReplayTest, T1NoReplyOnFirstConnect) {
  H h(H::Seed(true));
  h.Connect();
  h.Ask();
  h.Live(7);
  h.Pass(2'000);
  EXPECT_EQ(h.Out(), "H7 F7");
  EXPECT_TRUE(h.tracker.first_catch_up_done());
  EXPECT_EQ(h.State(), StreamState::kDegraded);  // Until a probe settles the life.
  EXPECT_EQ(h.AskWithin(2'000), Asked(7));
  h.Reply(7);
  h.End();
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, T1ReplayThatCannotBeAskedIsNoReply) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Live(12);
  h.tracker.OnReplayFailed(h.tracker.wanted_replay()->id, h.now, "why");
  EXPECT_EQ(h.Out(), "L11-11 F12");
}

TEST(TrackerReplayTest, T1SuspectsWithoutAnAnswerAreANewLife) {
  H h(H::SeedAt(true, 3'000, 4'000));
  h.Connect();
  h.Ask();
  h.Reply(4'000);
  h.End();
  h.Live(5, 'b');
  h.Live(6, 'b');
  h.Live(9, 'b');
  EXPECT_EQ(h.Ask(), Asked(4'000));
  h.Pass(2'000);
  EXPECT_EQ(h.Out(), "E H5 F5b F6b L7-8 F9b");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
}

TEST(TrackerReplayTest, T1LateReplyOfAGivenUpReplayIsIgnored) {
  H h = Settled();
  h.Live(13);
  h.Ask();
  h.Pass(2'000);
  EXPECT_EQ(h.Out(), "L11-12 F13");
  h.Reply(10, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 0u);
}

TEST(TrackerReplayTest, T1TimeThatWeDidNotReadDoesNotCount) {
  H h = Settled();
  h.Live(13);
  h.Ask();
  h.now += 60'000;  // The queue to the apply thread was full.
  h.tracker.OnResumed(h.now);
  h.Pass(1'000);
  EXPECT_EQ(h.Out(), "");
  h.Reply(10, 13, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13");
}

TEST(TrackerReplayTest, T2StalledAnswerIsAskedAgainAndThenLost) {
  H h = Settled();
  h.Live(20);
  h.Ask();
  h.Reply(10, 12, 'a');
  h.Pass(9'990);
  EXPECT_EQ(h.Ask(), Asked());
  h.Pass(10);
  EXPECT_EQ(h.Out(), "F11 F12");
  int asks = 0;
  while (h.AskWithin(2'000)) {
    ++asks;
    h.Reply(12);
    h.Pass(10'000);
    if (h.State() != StreamState::kCatchingUp) break;
  }
  EXPECT_EQ(asks, 3);
  EXPECT_EQ(h.Out(), "L13-19 F20");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
}

TEST(TrackerReplayTest, T2PublisherThatWentSilentAfterAPartialAnswer) {
  H h = Settled();
  h.Live(20);
  h.Ask();
  h.Reply(10, 12, 'a');
  h.End();
  int asks = 0;
  while (h.State() == StreamState::kCatchingUp && h.AskWithin(3'000)) {
    ++asks;
    h.Pass(2'000);
  }
  EXPECT_EQ(asks, 3);
  EXPECT_EQ(h.Out(), "F11 F12 L13-19 F20");
}

TEST(TrackerReplayTest, P1ProbesBackOffAndSettleTheLife) {
  H h = Asking('a');
  h.Live(11);
  h.Pass(2'000);
  EXPECT_EQ(h.Out(), "F11");  // Nothing is missing, but the life is not proved.
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  for (std::int64_t expected = 1'000; expected < 100'000; expected *= 2) {
    const std::int64_t delay = std::min<std::int64_t>(expected, 60'000);
    h.Pass(delay - 10);
    EXPECT_EQ(h.Ask(), Asked()) << expected;
    h.Pass(10);
    EXPECT_EQ(h.Ask(), Asked(10)) << expected;
    h.Pass(2'000);
  }
  h.Pass(60'000);
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Live(12);
  EXPECT_EQ(h.Out(), "F12");  // Nothing waits for a probe.
  h.Reply(10, 12, 'a');
  h.End();
  EXPECT_EQ(h.State(), StreamState::kLive);
  EXPECT_EQ(h.AskWithin(120'000), Asked());
}

TEST(TrackerReplayTest, P1ProbeFindsANewLife) {
  H h = Asking('a');
  h.Pass(2'000);
  EXPECT_EQ(h.AskWithin(2'000), Asked(10));
  h.Reply(10, 'b');
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
}

TEST(TrackerReplayTest, P1ProbeWithOnlyAnEndMarkerBelowLiveFramesSettlesNothing) {
  H h = Asking('a');
  h.Live(11);
  h.Pass(2'000);
  EXPECT_EQ(h.AskWithin(2'000), Asked(10));
  h.End();
  EXPECT_EQ(h.Out(), "F11");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 0u);
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_EQ(h.AskWithin(10'000), Asked(10));
}

TEST(TrackerReplayTest, P1ProbeFromTheStartBringsTheHistory) {
  H h(H::Seed(true));
  h.Connect();
  h.Ask();
  h.Pass(2'000);
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_EQ(h.AskWithin(2'000), Asked(0));
  h.Reply(0, 2, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F0 F1 F2");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, P1GapDuringAProbeIsAskedForAnew) {
  H h = Asking('a');
  h.Pass(2'000);
  EXPECT_EQ(h.AskWithin(2'000), Asked(10));
  h.Live(13);
  EXPECT_EQ(h.Ask(), Asked(10));
  EXPECT_EQ(h.State(), StreamState::kCatchingUp);
  h.Reply(10, 13, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, ReplayEndpointOfAnotherPublisherIsNotAskedInALoop) {
  H h(H::Seed(true));
  h.Connect();
  int asks = 0;
  for (std::uint64_t step = 0; step < 1'000; ++step) {
    if (step % 10 == 0) h.Live(step / 10);
    if (h.Ask()) {
      ++asks;
      h.Reply(0, 5, 'x');
      h.End();
    }
    h.Pass(10);
  }
  EXPECT_LT(asks, 20);  // In ten seconds.
}

// A publisher whose ring is shorter than what it sent since we connected: we have read the first
// frame, its answer is there before the next ones are read.
TEST(TrackerReplayTest, P1WhatIsOnItsWayLiveIsNotLost) {
  H h(H::Seed(true));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Live(0);
  EXPECT_EQ(h.Out(), "F0");
  h.Reply(4);
  EXPECT_EQ(h.Out(), "");
  for (std::uint64_t n = 1; n <= 5; ++n) h.Live(n);
  EXPECT_EQ(h.AskWithin(1'000), Asked(0));
  h.Reply(4, 5, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F1 F2 F3 F4 F5");
  EXPECT_EQ(h.State(), StreamState::kLive);
  EXPECT_EQ(h.tracker.counters().lost_numbers, 0u);
}

// What came before the first frame of a life counts for nothing in it.
TEST(TrackerReplayTest, NumbersSeenBeforeALifeBeganAreNotMissingInIt) {
  H h(H::Seed(true));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Live(17);  // Of the process before.
  h.Live(0, 'b');
  h.Live(1, 'b');
  EXPECT_EQ(h.Out(), "F0b F1b");
  h.Live(3, 'b');
  EXPECT_EQ(h.AskWithin(1'000), Asked(1));
  h.Reply(1, 3, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "F2b F3b");
  EXPECT_EQ(h.State(), StreamState::kLive);
  EXPECT_EQ(h.tracker.counters().lost_numbers, 0u);
}

TEST(TrackerReplayTest, AskWaitsForItsTurnWithoutATimeout) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Live(12);
  h.Pass(60'000);  // Every slot is taken: OnReplaySent has not come.
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Reply(10, 12, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12");
}

// A process that is restarted with the same work says the same words under the same numbers. What
// waits from before the break must not be taken for its own.
TEST(TrackerReplayTest, WhatWaitedWhenTheConnectionBrokeIsDeliveredOnlyAsFarAsTheNewOneHasIt) {
  H h(H::SeedAt(true, 0, 6));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(6));
  h.Live(8);
  h.Live(9);
  h.Disconnect();
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(6));
  h.Reply(6);
  h.Reply(7);  // 8 and 9 follow, but they are of the connection before
  EXPECT_EQ(h.Out(), "F7");
  h.End();
  EXPECT_EQ(h.AskWithin(1'000), Asked(7));  // it would have them, if it were the same process
  h.Reply(7);
  h.Reply(8, 9, 'a');
  EXPECT_EQ(h.Out(), "F8 F9");
  h.End();
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(TrackerReplayTest, AnAnswerThatNeverReachesWhatWaitedIsOfANewLife) {
  H h(H::SeedAt(true, 0, 6));
  h.Connect();
  h.Ask();
  h.Live(8);
  h.Live(20);
  h.Disconnect();
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(6));
  h.Reply(6, 9, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F7 F8 F9");
  while (h.tracker.counters().epoch_changes == 0) {
    ASSERT_EQ(h.AskWithin(1'000), Asked(9));
    h.Reply(9);
    h.End();
  }
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.AskWithin(1'000), Asked(0));
  h.Reply(0, 9, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F0 F1 F2 F3 F4 F5 F6 F7 F8 F9");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

// Numbers that fell were read when the connection had broken: of which process is not known, and a
// new life is fetched from its start anyway.
TEST(TrackerReplayTest, DoubtfulFramesFromBeforeTheConnectionAreOfNoNewLife) {
  StreamSeed seed = H::SeedAt(true, 110, 111);
  H h(seed);
  h.Connect();
  h.Ask();
  h.Reply(111);
  h.End();
  h.Disconnect();
  h.Live(102);
  h.Live(104);
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(111));
  h.End();
  EXPECT_EQ(h.Out(), "E");
  h.Live(0, 'b');
  EXPECT_EQ(h.Out(), "F0b");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

// Nobody answered, so what waited was applied; then somebody does who never published it.
TEST(TrackerReplayTest, AProbeThatEndsBelowWhatWasAppliedFindsANewLife) {
  H h(H::SeedAt(true, 0, 5));
  h.Connect();
  h.Ask();
  h.Live(7);
  h.Live(26);
  h.Disconnect();
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(5));
  for (int i = 0; i < 300 && h.tracker.cursor() != 26u; ++i) h.Pass(10);
  EXPECT_EQ(h.Out(), "L6-6 F7 L8-25 F26");
  EXPECT_EQ(h.AskWithin(5'000), Asked(5));
  h.Reply(5, 8, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.AskWithin(1'000), Asked(0));
  h.Reply(0, 8, 'a');
  h.End();
  EXPECT_EQ(h.State(), StreamState::kLive);
}

}  // namespace
}  // namespace conductor
