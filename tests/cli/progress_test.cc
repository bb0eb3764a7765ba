// What a long recovery shows, on a terminal and elsewhere, against a clock that a test moves.
#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace conductor::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class MovedClock final : public Clock {
 public:
  std::int64_t MonotonicMs() const override { return now_ms; }
  std::int64_t UnixMs() const override { return now_ms; }
  std::int64_t now_ms = 1'000'000;
};

class ProgressTest : public testing::Test {
 protected:
  // What is drawn for a position, `after_ms` later.
  std::string Update(Progress& progress, std::int64_t after_ms, const RecoverProgress& position) {
    clock_.now_ms += after_ms;
    out_.str("");
    EXPECT_TRUE(progress.Update(position));
    return out_.str();
  }
  MovedClock clock_;
  std::ostringstream out_;
};

RecoverProgress OfSnapshot(std::uint64_t blocks, std::uint64_t blocks_total) {
  return {.loading_snapshot = true, .blocks = blocks, .blocks_total = blocks_total};
}
// The log's part of a recovery has so many records.
constexpr Seq kRecords = 100;
RecoverProgress OfLog(Seq seq, Seq last, std::uint64_t blocks) {
  return {.first = last - kRecords, .seq = seq, .last = last, .blocks = blocks};
}

TEST_F(ProgressTest, BarShowsPercentRateAndTimeLeft) {
  Progress bar(ProgressStyle::kBar, out_, clock_);
  EXPECT_THAT(Update(bar, 0, OfSnapshot(0, 8'000'000)),
              HasSubstr("snapshot [........................] 0.0 %"));
  const std::string drawn = Update(bar, 500, OfSnapshot(2'000'000, 8'000'000));
  EXPECT_THAT(drawn, HasSubstr("[######..................] 25.0 %"));
  EXPECT_THAT(drawn, HasSubstr("4.00 M blocks/s, 1.5 s left"));
  EXPECT_THAT(drawn, Not(HasSubstr("\n"))) << "it is drawn over";
}

TEST_F(ProgressTest, LogHasARateAndAnEndOfItsOwn) {
  Progress bar(ProgressStyle::kBar, out_, clock_);
  Update(bar, 0, OfSnapshot(0, 10));
  Update(bar, 60'000, OfSnapshot(10, 10));
  Update(bar, 100, OfLog(1'900, 2'000, 0));
  const std::string drawn = Update(bar, 1'000, OfLog(1'925, 2'000, 500));
  EXPECT_THAT(drawn, HasSubstr("25.0 %, record 1925 of 2000, 500 blocks/s, 3.0 s left"));
}

TEST_F(ProgressTest, IsNotDrawnMoreOftenThanSomeoneCanRead) {
  Progress bar(ProgressStyle::kBar, out_, clock_);
  EXPECT_NE(Update(bar, 0, OfLog(1, 100, 0)), "");
  EXPECT_EQ(Update(bar, 99, OfLog(2, 100, 0)), "");
  EXPECT_NE(Update(bar, 1, OfLog(3, 100, 0)), "");
}

TEST_F(ProgressTest, LinesComeOnceASecondAndStand) {
  Progress lines(ProgressStyle::kLines, out_, clock_);
  Update(lines, 0, OfLog(0, 100, 0));
  EXPECT_EQ(Update(lines, 999, OfLog(49, 100, 0)), "");
  EXPECT_EQ(Update(lines, 1, OfLog(50, 100, 0)), "log 50.0 %, record 50 of 100, 1.0 s left\n");
}

TEST_F(ProgressTest, NoneShowsNothing) {
  Progress none(ProgressStyle::kNone, out_, clock_);
  EXPECT_EQ(Update(none, 0, OfLog(0, 100, 0)), "");
}

TEST_F(ProgressTest, BarIsWipedWhenItEnds) {
  {
    Progress bar(ProgressStyle::kBar, out_, clock_);
    Update(bar, 0, OfLog(1, 100, 0));
  }
  EXPECT_THAT(out_.str(), EndsWith("\r\x1b[K"));
}

TEST_F(ProgressTest, AnEmptyLogIsNoDivisionByZero) {
  Progress lines(ProgressStyle::kLines, out_, clock_);
  EXPECT_EQ(Update(lines, 0, {.first = 5, .seq = 5, .last = 5}), "log 0.0 %, record 5 of 5\n");
}

}  // namespace
}  // namespace conductor::cli
