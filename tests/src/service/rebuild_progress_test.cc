// What a rebuild says of itself, by a clock in the test's hand.
#include "src/service/rebuild_progress.h"

#include <gtest/gtest.h>

#include <string>

namespace conductor {
namespace {

constexpr std::int64_t kStartMs = 1'000'000;

RecoverProgress Loading(std::uint64_t blocks, std::uint64_t blocks_total) {
  RecoverProgress progress;
  progress.loading_snapshot = true;
  progress.first = progress.seq = 100;
  progress.last = 300;
  progress.blocks = blocks;
  progress.blocks_total = blocks_total;
  return progress;
}

RecoverProgress Reading(Seq seq, std::uint64_t blocks) {
  RecoverProgress progress;
  progress.first = 100;
  progress.seq = seq;
  progress.last = 300;
  progress.blocks = blocks;
  return progress;
}

class RebuildProgressTest : public ::testing::Test {
 protected:
  RebuildProgressTest() { progress_.Start(kStartMs); }
  std::string ReportAt(std::int64_t ms, const RecoverProgress& progress) {
    return progress_.Report(progress, kStartMs + ms);
  }
  Readiness Shown() const {
    Readiness readiness;
    progress_.Fill(&readiness);
    return readiness;
  }

  RebuildProgress progress_;
};

TEST_F(RebuildProgressTest, KnowsNothingAtTheStart) {
  const Readiness shown = Shown();
  EXPECT_EQ(shown.phase, "rebuilding");
  EXPECT_EQ(shown.blocks_done, 0u);
  EXPECT_EQ(shown.percent, 0);
  EXPECT_EQ(shown.blocks_per_s, 0);
  EXPECT_EQ(shown.seconds_left, -1);
  EXPECT_EQ(progress_.ElapsedMs(kStartMs + 1'234), 1'234);
}

TEST_F(RebuildProgressTest, OfASnapshotBlocksCount) {
  ReportAt(2'000, Loading(500'000, 2'000'000));
  const Readiness shown = Shown();
  EXPECT_EQ(shown.phase, "loading_snapshot");
  EXPECT_EQ(shown.blocks_done, 500'000u);
  EXPECT_DOUBLE_EQ(shown.percent, 25);
}

TEST_F(RebuildProgressTest, TheRateIsThatOfThePhase) {
  ReportAt(1'000, Loading(0, 2'000'000));
  ReportAt(3'000, Loading(500'000, 2'000'000));
  EXPECT_DOUBLE_EQ(Shown().blocks_per_s, 250'000);
  EXPECT_DOUBLE_EQ(Shown().seconds_left, 6);  // a quarter took 2 s

  // The log's records count for percent and time, its block operations for the rate.
  ReportAt(4'000, Reading(100, 0));
  EXPECT_EQ(Shown().phase, "rebuilding");
  ReportAt(8'000, Reading(250, 1'000));
  EXPECT_DOUBLE_EQ(Shown().percent, 75);
  EXPECT_DOUBLE_EQ(Shown().blocks_per_s, 250);
  EXPECT_NEAR(Shown().seconds_left, 4.0 / 3, 1e-9);
  EXPECT_EQ(Shown().blocks_done, 1'000u);
  EXPECT_EQ(progress_.ElapsedMs(kStartMs + 8'000), 8'000) << "of both phases";
}

TEST_F(RebuildProgressTest, APhaseThatHasJustBegunHasNoRateYet) {
  ReportAt(0, Loading(0, 1'000));
  ReportAt(1'000, Loading(900, 1'000));
  ASSERT_GT(Shown().blocks_per_s, 0);
  ReportAt(1'100, Reading(110, 70));
  EXPECT_EQ(Shown().blocks_per_s, 0) << "that of the snapshot says nothing about the log";
  EXPECT_EQ(Shown().seconds_left, -1);
  ReportAt(1'299, Reading(120, 140));
  EXPECT_EQ(Shown().blocks_per_s, 0);
  ReportAt(1'300, Reading(120, 140));
  EXPECT_DOUBLE_EQ(Shown().blocks_per_s, 700);
  EXPECT_DOUBLE_EQ(Shown().seconds_left, 1.8);
}

TEST_F(RebuildProgressTest, WithoutAnythingDoneThereIsNoTimeLeft) {
  ReportAt(5'000, Reading(100, 0));
  EXPECT_EQ(Shown().percent, 0);
  EXPECT_EQ(Shown().seconds_left, -1);
}

TEST_F(RebuildProgressTest, MoreThanWasPromisedIsNoMoreThanAllOfIt) {
  ReportAt(0, Loading(0, 1'000));
  ReportAt(1'000, Loading(1'200, 1'000));
  EXPECT_EQ(Shown().percent, 100);
  EXPECT_EQ(Shown().seconds_left, 0);
  // A snapshot that does not say how much it has.
  ReportAt(2'000, Loading(1'300, 0));
  EXPECT_EQ(Shown().percent, 0);
  EXPECT_EQ(Shown().seconds_left, -1);
}

TEST_F(RebuildProgressTest, ALineForTheLogEveryFiveSeconds) {
  EXPECT_EQ(ReportAt(1'000, Loading(0, 4'000)), "");
  EXPECT_EQ(ReportAt(4'999, Loading(999, 4'000)), "");
  EXPECT_EQ(ReportAt(5'000, Loading(1'000, 4'000)),
            "event=rebuilding phase=loading_snapshot percent=25.0 seq=100 of=300 blocks=1000 "
            "blocks_per_s=250 seconds_left=12");
  EXPECT_EQ(ReportAt(9'900, Reading(101, 3)), "");
  EXPECT_EQ(ReportAt(10'000, Reading(200, 500)),
            "event=rebuilding phase=rebuilding percent=50.0 seq=200 of=300 blocks=500 "
            "blocks_per_s=0 seconds_left=-1");
  EXPECT_EQ(ReportAt(12'999, Reading(250, 900)), "");
  EXPECT_EQ(ReportAt(15'000, Reading(250, 1'020)),
            "event=rebuilding phase=rebuilding percent=75.0 seq=250 of=300 blocks=1020 "
            "blocks_per_s=200 seconds_left=2");
}

TEST_F(RebuildProgressTest, StartForgetsTheRebuildBefore) {
  ReportAt(1'000, Loading(900, 1'000));
  progress_.Start(kStartMs + 60'000);
  EXPECT_EQ(Shown().phase, "rebuilding");
  EXPECT_EQ(Shown().percent, 0);
  EXPECT_EQ(Shown().seconds_left, -1);
  EXPECT_EQ(progress_.ElapsedMs(kStartMs + 60'500), 500);
  EXPECT_EQ(ReportAt(64'999, Reading(150, 1)), "") << "since the new start";
}

}  // namespace
}  // namespace conductor
