// The live rows (L, C, D) of the decision table in stream_tracker.h, one test or more per row.
#include "replay/stream_tracker.h"

#include <gtest/gtest.h>

#include "tests/replay/tracker_harness.h"

namespace conductor {
namespace {

using H = TrackerHarness;

TEST(StreamTrackerTest, L1FirstNumberIsDeliveredAtOnceWithoutReplayEndpoint) {
  H h(H::Seed(false));
  h.Connect();
  h.Live(0);
  EXPECT_EQ(h.Out(), "F0");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(StreamTrackerTest, L1FirstNumberIsDeliveredWhileTheReplayIsOpen) {
  H h(H::Seed(true));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Live(0);
  h.Live(1);
  EXPECT_EQ(h.Out(), "F0 F1");
  EXPECT_EQ(h.State(), StreamState::kLive);
  h.Reply(0);
  h.End();
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.Ask(), Asked());
}

TEST(StreamTrackerTest, L1FirstNumberSettlesTheStreamThoughTheReplayNeverAnswers) {
  H h(H::Seed(true));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Live(0);
  h.Pass(5'000);
  h.Live(1);
  EXPECT_EQ(h.Out(), "F0 F1");
  EXPECT_EQ(h.State(), StreamState::kLive);
  EXPECT_EQ(h.AskWithin(120'000), Asked());
}

TEST(StreamTrackerTest, L1StorePublishersStartAtOne) {
  H h(H::Seed(false, PublisherType::kMooncake));
  h.Connect();
  h.Live(1);
  h.Live(2);
  EXPECT_EQ(h.Out(), "F1 F2");
}

TEST(StreamTrackerTest, L1StorePublisherMayAlsoStartAtZero) {
  H h(H::Seed(false, PublisherType::kMooncake));
  h.Connect();
  h.Live(0);
  h.Live(1);
  h.Live(5);
  EXPECT_EQ(h.Out(), "F0 F1 L2-4 F5");
}

TEST(StreamTrackerTest, L2LateJoinWithoutReplayIsLiveWithHistoryStart) {
  H h(H::Seed(false));
  h.Connect();
  h.Live(50);
  h.Live(51);
  EXPECT_EQ(h.Out(), "H50 F50 F51");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(StreamTrackerTest, L2LateJoinWithReplayWaitsForTheHistory) {
  H h(H::Seed(true));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Live(3);
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.State(), StreamState::kCatchingUp);
  h.Reply(0, 3, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F0 F1 F2 F3");
  EXPECT_EQ(h.tracker.counters().replays, 1u);
}

TEST(StreamTrackerTest, L2FirstNumberAfterAnEmptyReplayAsksAgain) {
  H h(H::Seed(true));
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  h.End();
  EXPECT_EQ(h.State(), StreamState::kLive);
  h.Live(2);
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Reply(0, 2, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F0 F1 F2");
  EXPECT_EQ(h.tracker.counters().gaps, 0u);
}

TEST(StreamTrackerTest, L3NextNumberWaitsWhileTheLifeIsInQuestion) {
  H h(H::SeedAt(true, 0, 10));
  h.Live(11);  // Even before the connection is reported.
  EXPECT_EQ(h.Out(), "");
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Live(12);
  EXPECT_EQ(h.Out(), "");
  h.Reply(10);
  EXPECT_EQ(h.Out(), "F11 F12");
  h.Reply(11, 12, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(StreamTrackerTest, L4GapWithoutReplayIsLostAtOnce) {
  H h(H::SeedAt(false, 0, 10));
  h.Connect();
  h.Live(14);
  EXPECT_EQ(h.Out(), "L11-13 F14");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  EXPECT_EQ(h.tracker.counters().lost_numbers, 3u);
}

TEST(StreamTrackerTest, L4GapWithReplayIsFetchedOnceAndInOrder) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Ask();
  h.Reply(10);
  h.End();
  h.Live(14);
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Reply(10, 14, 'a');  // 14 is in the ring too.
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13 F14");
  for (std::uint64_t n = 15; n <= 17; ++n) h.Live(n);
  EXPECT_EQ(h.Out(), "F15 F16 F17");
  EXPECT_EQ(h.Ask(), Asked());
  EXPECT_EQ(h.tracker.counters().replays, 2u);
  EXPECT_EQ(h.tracker.counters().gaps, 1u);
}

TEST(StreamTrackerTest, L5DuplicatesAreDroppedAndCounted) {
  H h(H::SeedAt(false, 0, 10));
  h.Connect();
  h.Live(5);
  h.Live(10);
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.tracker.counters().duplicates, 2u);
}

TEST(StreamTrackerTest, L5DuplicateOfAWaitingFrameIsDropped) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Ask();
  h.Live(12);
  h.Live(12);
  EXPECT_EQ(h.tracker.counters().duplicates, 1u);
  EXPECT_EQ(h.tracker.waiting_frames(), 1u);
}

TEST(StreamTrackerTest, L6OtherContentUnderAnAppliedNumberIsANewLife) {
  H h(H::SeedAt(false, 0, 7));
  h.Connect();
  h.Live(0, 'b');
  h.Live(1, 'b');
  EXPECT_EQ(h.Out(), "E F0b F1b");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 1u);
}

TEST(StreamTrackerTest, L6NewLifeThatBeganWithTheSameContentIsWholeWithoutReplay) {
  H h(H::SeedAt(false, 0, 7));
  h.Connect();
  h.Live(0);
  h.Live(1);
  EXPECT_EQ(h.Out(), "");  // So far they are duplicates.
  h.Live(2, 'b');
  h.Live(3, 'b');
  EXPECT_EQ(h.Out(), "E F0 F1 F2b F3b");
}

TEST(StreamTrackerTest, L6DuplicatesFromTheMiddleDoNotBeginALife) {
  H h(H::SeedAt(false, 0, 7));
  h.Connect();
  h.Live(3);
  h.Live(4);
  h.Live(5, 'b');
  EXPECT_EQ(h.Out(), "E H5 F5b");
  h.Live(6, 'b');
  EXPECT_EQ(h.Out(), "F6b");
}

TEST(StreamTrackerTest, L6NewLifeInTheMiddleWithoutReplayHasHistoryStart) {
  H h(H::SeedAt(false, 0, 7));
  h.Connect();
  h.Live(3, 'b');
  EXPECT_EQ(h.Out(), "E H3 F3b");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(StreamTrackerTest, L6NewLifeInTheMiddleWithReplayIsFetchedFromItsStart) {
  H h(H::SeedAt(true, 0, 7));
  h.Connect();
  h.Ask();
  h.Live(9);  // Of the old life, still waiting.
  h.Live(2, 'b');
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Reply(0, 2, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "F0b F1b F2b");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(StreamTrackerTest, L6NewLifeClearsTheLossOfTheOldOne) {
  StreamSeed seed = H::SeedAt(false, 0, 7);
  seed.has_lost_ranges = true;
  H h(seed);
  h.Connect();
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  h.Live(0, 'b');
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(StreamTrackerTest, L7NumberNoLongerKeptIsANewLifeWithoutReplay) {
  H h(H::SeedAt(false, 3'000, 4'000));
  h.Connect();
  h.Live(0, 'b');
  EXPECT_EQ(h.Out(), "E F0b");
}

TEST(StreamTrackerTest, L7NumberNoLongerKeptIsProbedAndFoundToBeADuplicate) {
  H h(H::SeedAt(true, 3'000, 4'000));
  h.Connect();
  h.Ask();
  h.Reply(4'000);
  h.End();
  h.Live(17);
  EXPECT_EQ(h.Ask(), Asked(4'000));
  h.Live(4'001);
  EXPECT_EQ(h.Out(), "");
  h.Reply(4'000, 4'001, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F4001");
  EXPECT_EQ(h.tracker.counters().duplicates, 1u);
  EXPECT_EQ(h.tracker.counters().epoch_changes, 0u);
}

TEST(StreamTrackerTest, L7NumberNoLongerKeptIsProbedAndFoundToBeANewLife) {
  H h(H::SeedAt(true, 3'000, 4'000));
  h.Connect();
  h.Ask();
  h.Reply(4'000);
  h.End();
  h.Live(0, 'b');
  h.Live(1, 'b');
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.Ask(), Asked(4'000));
  h.End();  // The new process has no 4000.
  EXPECT_EQ(h.Out(), "E F0b F1b");
}

TEST(StreamTrackerTest, L7ProbeOfANewLifeThatHasOvertakenTheOldOne) {
  H h(H::SeedAt(true, 3'000, 4'000));
  h.Connect();
  h.Ask();
  h.Reply(4'000);
  h.End();
  h.Live(1, 'b');
  EXPECT_EQ(h.Ask(), Asked(4'000));
  h.Reply(4'000, 'b');
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Reply(0, 2, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "F0b F1b F2b");
}

TEST(StreamTrackerTest, L8LowerThanAWaitingFrameIsDoubtfulAndMayBeAReordering) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Ask();
  h.Reply(10);
  h.End();
  h.Live(14);
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Live(12);
  EXPECT_EQ(h.Ask(), Asked(10));  // Anew: the first may be answered by the old process.
  h.Reply(10, 14, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13 F14");
  EXPECT_EQ(h.tracker.counters().epoch_changes, 0u);
}

TEST(StreamTrackerTest, L8LowerThanAWaitingFrameMayBeANewLife) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Ask();
  h.Reply(10);
  h.End();
  h.Live(14);
  h.Live(12, 'b');
  h.Live(13, 'b');
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Reply(10, 'b');
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Reply(0, 13, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "F0b F1b F2b F3b F4b F5b F6b F7b F8b F9b F10b F11b F12b F13b");
}

TEST(StreamTrackerTest, L8WithNothingAppliedOnlyTheYoungerFramesWait) {
  H h(H::Seed(true));
  h.Connect();
  h.Ask();
  h.Live(9);
  h.Live(2, 'b');
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Reply(0, 2, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "F0b F1b F2b");
}

TEST(StreamTrackerTest, L9OtherContentUnderAWaitingNumberIsANewLife) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Ask();
  h.Live(12);
  h.Live(12, 'b');
  EXPECT_EQ(h.Out(), "E");
  EXPECT_EQ(h.Ask(), Asked(0));
}

TEST(StreamTrackerTest, L10WhatFindsNoRoomIsFetchedAfterwards) {
  TrackerOptions options;
  options.limits.buffered_frames_per_stream_max = 2;
  H h(H::SeedAt(true, 0, 10), options);
  h.Connect();
  h.Ask();
  for (std::uint64_t n = 11; n <= 15; ++n) h.Live(n);
  EXPECT_EQ(h.tracker.counters().buffer_overflows, 3u);
  h.Reply(10, 12, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12");
  EXPECT_EQ(h.AskWithin(1'000), Asked(12));
  h.Reply(12, 15, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F13 F14 F15");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(StreamTrackerTest, L10WhatFindsNoRoomAndCannotBeHadIsLost) {
  TrackerOptions options;
  options.limits.buffered_bytes_per_stream_max = 2;
  H h(H::SeedAt(true, 0, 10), options);
  h.Connect();
  h.Ask();
  for (std::uint64_t n = 11; n <= 15; ++n) h.Live(n);
  h.Pass(2'000);
  EXPECT_EQ(h.Out(), "F11 F12 L13-15");
  EXPECT_EQ(h.State(), StreamState::kDegraded);
  h.Live(16);
  EXPECT_EQ(h.Out(), "F16");
}

TEST(StreamTrackerTest, C1IdlePublisherIsCaughtUpOnConnect) {
  H h(H::Seed(true));
  EXPECT_EQ(h.State(), StreamState::kConnecting);
  EXPECT_EQ(h.Ask(), Asked());
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  EXPECT_FALSE(h.tracker.first_catch_up_done());
  h.Reply(0, 2, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F0 F1 F2");
  EXPECT_TRUE(h.tracker.first_catch_up_done());
  EXPECT_EQ(h.Ask(), Asked());
  EXPECT_EQ(h.tracker.counters().replays, 1u);
}

TEST(StreamTrackerTest, C1ReconnectAsksFromTheLastAppliedNumber) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Ask();
  h.Reply(10);
  h.End();
  h.Disconnect();
  EXPECT_EQ(h.State(), StreamState::kConnecting);
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Reply(10, 13, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13");
}

TEST(StreamTrackerTest, C1AfterALossTheLastAppliedNumberIsAsked) {
  StreamSeed seed = H::SeedAt(true, 0, 10);
  seed.cursor = 20;  // 11..20 lost, nothing after it.
  H h(seed);
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Reply(10, 22, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F21 F22");  // What was lost is never applied late.
}

TEST(StreamTrackerTest, C1CursorWithoutKeptFramesAsksForTheNextNumber) {
  StreamSeed seed = H::Seed(true);
  seed.cursor = 20;
  H h(seed);
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(21));
  h.End();
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.State(), StreamState::kLive);
}

TEST(StreamTrackerTest, D1NothingIsConcludedWhileDisconnected) {
  H h(H::SeedAt(true, 0, 10));
  h.Connect();
  h.Ask();
  h.Live(13);
  h.Disconnect();
  h.Pass(60'000);
  EXPECT_EQ(h.Out(), "");
  EXPECT_EQ(h.Ask(), Asked());
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(10));
  h.Reply(10, 13, 'a');
  h.End();
  EXPECT_EQ(h.Out(), "F11 F12 F13");
}

TEST(StreamTrackerTest, D1WhatIsReadWhileDisconnectedWaitsForTheNextAnswer) {
  for (const char life : {'a', 'b'}) {
    SCOPED_TRACE(life);
    H h(H::SeedAt(true, 0, 10));
    h.Connect();
    h.Ask();
    h.Reply(10);
    h.End();
    EXPECT_EQ(h.State(), StreamState::kLive);
    h.Disconnect();
    h.Live(11, life);  // The next number: whose it is nobody knows.
    EXPECT_EQ(h.Out(), "");
    h.Connect();
    EXPECT_EQ(h.Ask(), Asked(10));
    h.Reply(10, 11, life);
    h.End();
    EXPECT_EQ(h.Out(), life == 'a' ? "F11" : "E");
  }
}

TEST(StreamTrackerTest, D2HolderOfALongGonePublisherIsDropped) {
  TrackerOptions options;
  options.disconnected_drop_ms = 5'000;
  H h(H::SeedAt(true, 0, 10), options);
  h.Connect();
  h.Ask();
  h.Reply(10);
  h.End();
  h.Disconnect();
  h.Pass(4'990);
  EXPECT_EQ(h.Out(), "");
  h.Pass(10);
  EXPECT_EQ(h.Out(), "Dd");
  h.Pass(60'000);
  EXPECT_EQ(h.Out(), "");
  h.Connect();
  EXPECT_EQ(h.Ask(), Asked(0));
  h.Reply(0, 2, 'b');
  h.End();
  EXPECT_EQ(h.Out(), "F0b F1b F2b");
}

TEST(StreamTrackerTest, D2PublisherThatNeverCameBackAfterOurRestartIsDropped) {
  TrackerOptions options;
  options.disconnected_drop_ms = 5'000;
  H h(H::SeedAt(false, 0, 10), options);
  h.Pass(5'000);
  EXPECT_EQ(h.Out(), "Dd");
  h.Connect();
  h.Live(11);
  EXPECT_EQ(h.Out(), "H11 F11");
}

TEST(StreamTrackerTest, LostEventsDropTheHolderWhenConfigured) {
  TrackerOptions options;
  options.drop_on_lost_events = true;
  H h(H::SeedAt(false, 0, 10), options);
  h.Connect();
  h.Live(14);
  h.Live(15);
  EXPECT_EQ(h.Out(), "L11-13 Dl F14 F15");
}

TEST(StreamTrackerTest, FirstCatchUpOfAnUnreachablePublisherIsGivenUp) {
  H h(H::Seed(true));
  h.Pass(1'990);
  EXPECT_FALSE(h.tracker.first_catch_up_done());
  h.Pass(10);
  EXPECT_TRUE(h.tracker.first_catch_up_done());
}

TEST(StreamTrackerTest, FirstCatchUpIsBoundedHoweverLongItTakes) {
  H h(H::Seed(true));
  h.Connect();
  h.Ask();
  for (int i = 0; i < 29; ++i) {
    h.Reply(static_cast<std::uint64_t>(i));
    h.Pass(1'000);
  }
  EXPECT_FALSE(h.tracker.first_catch_up_done());
  h.Pass(1'000);
  EXPECT_TRUE(h.tracker.first_catch_up_done());
  EXPECT_EQ(h.State(), StreamState::kCatchingUp);
}

}  // namespace
}  // namespace conductor
