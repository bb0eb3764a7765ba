// A thousand streams after our own restart do not ask in the same moment, and none before its own.
#include "replay/replay_jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/replay/driven_reader.h"

namespace conductor::replay_test {
namespace {

constexpr StreamId kStreams = 1'000;

TEST(ReplayJitterTest, SpreadsAThousandStreamsOverTheInterval) {
  constexpr std::uint32_t kMax = 199;
  constexpr std::size_t kTenths = 10;
  std::array<int, kTenths> tenths{};
  std::array<int, kMax + 1> moments{};
  for (StreamId stream = 1; stream <= kStreams; ++stream) {
    const std::int64_t ms = ReplayJitterMs(stream, kMax);
    ASSERT_GE(ms, 0);
    ASSERT_LE(ms, kMax);
    ++tenths.at(static_cast<std::size_t>(ms) * kTenths / (kMax + 1));
    ++moments.at(static_cast<std::size_t>(ms));
  }
  // A hundred each if it were perfect; five in each millisecond.
  for (const int streams : tenths) {
    EXPECT_GE(streams, 75);
    EXPECT_LE(streams, 125);
  }
  EXPECT_LE(*std::max_element(moments.begin(), moments.end()), 20);
}

TEST(ReplayJitterTest, IsTheSameAtEachStart) {
  EXPECT_EQ(ReplayJitterMs(1, 200), 47);
  EXPECT_EQ(ReplayJitterMs(2, 200), 121);
  EXPECT_EQ(ReplayJitterMs(1'000, 200), 178);
}

TEST(ReplayJitterTest, ReachesBothEnds) {
  bool first = false, last = false;
  for (StreamId stream = 1; stream <= kStreams; ++stream) {
    first = first || ReplayJitterMs(stream, 9) == 0;
    last = last || ReplayJitterMs(stream, 9) == 9;
  }
  EXPECT_TRUE(first && last);
}

TEST(ReplayJitterTest, OfZeroIsNone) {
  for (StreamId stream = 1; stream <= kStreams; ++stream) {
    ASSERT_EQ(ReplayJitterMs(stream, 0), 0);
  }
}

class JitteredReaderTest : public DrivenReaderTest {
 protected:
  JitteredReaderTest() { options_.limits.replay_jitter_ms_max = 1'000'000; }
  // Requests that were sent by then.
  std::uint64_t AskedAt(std::int64_t now_ms) {
    TurnAt(now_ms);
    return ReaderCounter("replay_requests_total");
  }

  const std::unique_ptr<FakePublisher> publisher_ = MakePublisher(ReplayStyle::kSilent);
};

TEST_F(JitteredReaderTest, AsksInItsOwnMomentAndNotBefore) {
  const std::int64_t jitter_ms = ReplayJitterMs(kStream, options_.limits.replay_jitter_ms_max);
  ASSERT_GT(jitter_ms, 0);
  OpenReader(*publisher_, /*cursor=*/3);
  EXPECT_EQ(AskedAt(kNowMs), 0u);
  EXPECT_EQ(AskedAt(kNowMs + jitter_ms - 1), 0u);
  EXPECT_EQ(AskedAt(kNowMs + jitter_ms), 1u);
  EXPECT_TRUE(Eventually([&] { return publisher_->requests().size() == 1; }));
}

TEST_F(JitteredReaderTest, AStreamThatIsNewAsksAtOnce) {
  OpenReader(*publisher_);
  EXPECT_EQ(AskedAt(kNowMs), 1u);
}

}  // namespace
}  // namespace conductor::replay_test
