// Threads count for themselves, and nothing is lost.
#include "src/service/query_counters.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace conductor {
namespace {

TEST(QueryCountersTest, TheSumIsWhatAllThreadsCounted) {
  constexpr std::size_t kThreads = QueryCounters::kLines + 8;  // some share a line
  constexpr std::uint64_t kQueries = 1'000;
  QueryCounters counters;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kQueries; ++n) counters.Add({1, 10, 3});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const QueryCounters::Counts sum = counters.Sum();
  EXPECT_EQ(sum.queries, kThreads * kQueries);
  EXPECT_EQ(sum.asked_tokens, kThreads * kQueries * 10);
  EXPECT_EQ(sum.matched_tokens, kThreads * kQueries * 3);
}

TEST(QueryCountersTest, ThreadsThatFollowEachOtherHaveLinesOfTheirOwn) {
  std::vector<std::size_t> lines(QueryCounters::kLines);
  for (std::size_t& line : lines) {
    std::thread([&] { line = QueryCounters::LineOfThread(); }).join();
  }
  EXPECT_EQ(std::set<std::size_t>(lines.begin(), lines.end()).size(), lines.size());
  EXPECT_EQ(QueryCounters::LineOfThread(), QueryCounters::LineOfThread());
}

// A line is not shared with what is beside it.
TEST(QueryCountersTest, LinesAreApart) {
  EXPECT_EQ(alignof(QueryCounters), 64u);
  EXPECT_EQ(sizeof(QueryCounters), QueryCounters::kLines * 64);
}

}  // namespace
}  // namespace conductor
