// The service at its caps: it goes on, stays below them, and its log tells the whole story.
#include <gmock/gmock.h>

#include "tests/src/service/service_fixture.h"

namespace conductor {
namespace {

constexpr std::uint64_t kMaxBlocks = 50;
constexpr std::uint64_t kLowWater = kMaxBlocks - 1;
constexpr std::uint64_t kFrames = 600;  // of one block each

class ServiceCapTest : public ServiceFixture {
 protected:
  ServiceCapTest() {
    options_.limits.max_blocks = kMaxBlocks;
    options_.limits.group_frames_max = 64;
  }

  void OfferFrames(StreamId stream, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from; n < to; ++n) ASSERT_TRUE(Offer(stream, n));
    ASSERT_TRUE(changes_.WaitFor([&] { return View("a").last_seq == to - 1; }));
  }
  bool WaitForLowWater() {
    return changes_.WaitFor([&] { return service_->GetStatus()->blocks <= kLowWater; });
  }
  // After a flood, maybe at the cap exactly: eviction begins above it.
  bool WaitForCap(std::uint64_t stored) {
    return changes_.WaitFor([&] {
      const std::uint64_t blocks = service_->GetStatus()->blocks;
      return blocks <= kMaxBlocks && LoggedEvictions() == stored - blocks;
    });
  }
  double Metric(const std::string& name) const {
    for (const MetricSample& sample : service_->CollectMetrics()) {
      if (sample.name == name) return sample.value;
    }
    ADD_FAILURE() << "no metric " << name;
    return 0;
  }
  std::uint64_t LoggedEvictions() const {
    std::uint64_t evictions = 0;
    ForFacts([&](const Fact& fact) { evictions += std::holds_alternative<Evicted>(fact); });
    return evictions;
  }
  void Restart(std::uint64_t max_blocks) {
    service_->Stop();
    service_.reset();
    options_.limits.max_blocks = max_blocks;
    StartReady();
  }
  // What an earlier service without a cap had.
  void FillWithoutCap(std::uint64_t frames) {
    options_.limits.max_blocks = 0;
    StartReady();
    OfferFrames(MustRegister("a"), 0, frames);
    EXPECT_EQ(service_->GetStatus()->blocks, frames);
    EXPECT_EQ(LoggedEvictions(), 0u);
  }
};

TEST_F(ServiceCapTest, AFloodStaysBelowTheCap) {
  StartReady();
  OfferFrames(MustRegister("a"), 0, kFrames);
  ASSERT_TRUE(WaitForCap(kFrames));
  EXPECT_TRUE(WaitForLine("event=evicting blocks="));
  ExpectStateIsTheLogs();
  // Every group of frames was applied to no more blocks than there may be.
  StateMachine state;
  ASSERT_TRUE(log_.inner.Read(1, log_.LastSeq(), [&](Seq, const Record& record) -> Status {
    if (std::holds_alternative<Frame>(record.facts.front())) {
      EXPECT_LE(state.index().blocks(), kMaxBlocks);
    }
    state.Apply(record);
    return {};
  }));
}

TEST_F(ServiceCapTest, ItIsToldInNumbers) {
  options_.limits.max_bytes = 64u << 20;
  StartReady();
  OfferFrames(MustRegister("a"), 0, 2 * kMaxBlocks);
  ASSERT_TRUE(WaitForCap(2 * kMaxBlocks));
  const std::uint64_t evicted = LoggedEvictions();
  const auto status = service_->GetStatus();
  EXPECT_EQ(status->max_blocks, kMaxBlocks);
  EXPECT_EQ(status->max_bytes, 64u << 20);
  EXPECT_EQ(status->evicted_blocks, evicted);
  EXPECT_EQ(Metric("max_blocks"), static_cast<double>(kMaxBlocks));
  EXPECT_EQ(Metric("max_bytes"), static_cast<double>(64u << 20));
  EXPECT_EQ(Metric("evicted_blocks_total"), static_cast<double>(evicted));
  EXPECT_THAT(View("a").counters,
              testing::Contains(std::pair<std::string, std::uint64_t>("evictions_total", evicted)));
}

TEST_F(ServiceCapTest, ARestartForgetsNoEviction) {
  StartReady();
  OfferFrames(MustRegister("a"), 0, kFrames);
  ASSERT_TRUE(WaitForCap(kFrames));
  const auto before = service_->GetStatus();
  const std::uint64_t evictions = LoggedEvictions();
  Restart(0);  // without a cap nothing comes back
  EXPECT_EQ(service_->GetStatus()->digest, before->digest);
  EXPECT_EQ(service_->GetStatus()->blocks, before->blocks);
  EXPECT_EQ(LoggedEvictions(), evictions);
}

TEST_F(ServiceCapTest, ALowerCapHoldsAfterTheRestart) {
  FillWithoutCap(500);
  Restart(kMaxBlocks);
  ASSERT_TRUE(WaitForLowWater());
  ExpectStateIsTheLogs();
}

class ServiceCapFailureTest : public ServiceCapTest, public ::testing::WithParamInterface<bool> {};

// Whether the failed record reached the log or not: each block is given up once.
TEST_P(ServiceCapFailureTest, AFailedAppendOfEvictionsIsNoLoss) {
  FillWithoutCap(500);
  service_->Stop();
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/GetParam());
  Restart(kMaxBlocks);
  ASSERT_TRUE(WaitForLowWater());
  EXPECT_TRUE(WaitForLine("event=log_recovered"));
  EXPECT_EQ(LoggedEvictions(), 500 - service_->GetStatus()->blocks);
  ExpectStateIsTheLogs();
}

INSTANTIATE_TEST_SUITE_P(Written, ServiceCapFailureTest, testing::Bool());

}  // namespace
}  // namespace conductor
