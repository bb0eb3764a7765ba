// What the subscriptions refuse, how they stop, and how many of them fit.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "replay/descriptor_limit.h"
#include "tests/replay/subscriptions_fixture.h"

namespace conductor::replay_test {
namespace {

class SubscriptionsLimitsTest : public SubscriptionsFixture {};

TEST_F(SubscriptionsLimitsTest, EndpointThatZmqRefusesIsAnErrorWithItsReason) {
  Open();
  const Status status = subscriptions_->Start(MakeSeed(1, "tcp://127.0.0.1"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.error().field, "endpoint");
  EXPECT_EQ(status.error().message, "connect tcp://127.0.0.1: Invalid argument");
  EXPECT_FALSE(subscriptions_->GetStatus(1));
  EXPECT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://127.0.0.1:1")));
}

TEST_F(SubscriptionsLimitsTest, ReplayEndpointThatZmqRefusesIsNamedInTheStatus) {
  auto p1 = MakePublisher(ReplayStyle::kNone);
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, p1->live(), "tcp://nowhere")));
  ASSERT_TRUE(Subscribed(*p1));
  EXPECT_TRUE(Eventually([&] {
    return StatusOf(1).last_error.find("tcp://nowhere: Invalid argument") != std::string::npos;
  }));
  EXPECT_TRUE(IsIn(1, StreamState::kDegraded));
}

TEST_F(SubscriptionsLimitsTest, StreamIsStartedOnce) {
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://127.0.0.1:1")));
  const Status again = subscriptions_->Start(MakeSeed(1, "tcp://127.0.0.1:1"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kAlreadyExists);
}

TEST_F(SubscriptionsLimitsTest, RegistrationsAreLimited) {
  SubscriptionOptions options = DefaultOptions();
  options.limits.registrations_max = 1;
  Open(options);
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://127.0.0.1:1")));
  const Status second = subscriptions_->Start(MakeSeed(2, "tcp://127.0.0.1:2"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kResourceExhausted);
  subscriptions_->Stop(1);
  EXPECT_TRUE(subscriptions_->Start(MakeSeed(2, "tcp://127.0.0.1:2")));
}

TEST_F(SubscriptionsLimitsTest, DescriptorLimitIsAClearError) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(CheckDescriptorLimit(1, 1));
  const Status status = CheckDescriptorLimit(limit.rlim_cur, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(status.error().message.find("RLIMIT_NOFILE"), std::string::npos);
}

TEST_F(SubscriptionsLimitsTest, NothingIsOfferedAfterStop) {
  auto p1 = MakePublisher(ReplayStyle::kNone);
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  for (std::uint64_t i = 0; i < 5'000; ++i) p1->Send(Batch(i));
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(1) > 100; }));
  subscriptions_->Stop(1);
  const std::size_t frames = sink_.FrameCount(1);
  // Another stream of the same thread goes on, so time passes there too.
  auto p2 = MakePublisher(ReplayStyle::kNone);
  for (StreamId stream : {2u, 3u}) ASSERT_TRUE(subscriptions_->Start(SeedOf(stream, *p2)));
  ASSERT_TRUE(Subscribed(*p2));
  p2->Send(Batch(0));
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(2) + sink_.FrameCount(3) > 0; }));
  EXPECT_EQ(sink_.FrameCount(1), frames);
}

TEST_F(SubscriptionsLimitsTest, FullSinkStopsOneStreamsReadingAndLosesNothing) {
  auto p1 = MakePublisher(ReplayStyle::kNone);
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  sink_.SetFull(true);
  for (std::uint64_t i = 0; i < 5'000; ++i) p1->Send(Batch(i));
  ASSERT_TRUE(Eventually([&] { return Counter(1, "queue_full_total") > 2; }));
  EXPECT_LE(Counter(1, "frames_received_total"), kFramesPerTurnMax);
  sink_.SetFull(false);
  EXPECT_TRUE(Eventually([&] { return sink_.FrameCount(1) == 5'000; }));
}

TEST_F(SubscriptionsLimitsTest, StopWhileBlockedReturns) {
  auto p1 = MakePublisher(ReplayStyle::kNone);
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  sink_.SetFull(true);
  p1->Send(Batch(0));
  ASSERT_TRUE(Eventually([&] { return Counter(1, "queue_full_total") > 0; }));
  subscriptions_->Stop(1);
  EXPECT_FALSE(subscriptions_->GetStatus(1));
}

TEST_F(SubscriptionsLimitsTest, ManyIdleStreamsAreStoppedTogether) {
  Open();
  constexpr StreamId kStreams = 600;  // More than one context holds.
  StreamId started = 0;
  for (StreamId stream = 1; stream <= kStreams; ++stream) {
    // Nobody listens on these.
    const auto status = subscriptions_->Start(
        MakeSeed(stream, "tcp://127.0.0.1:" + std::to_string(1 + stream % 9), "tcp://127.0.0.1:1"));
    if (!status) {
      EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
      break;
    }
    ++started;
  }
  EXPECT_GT(started, 50u);
  EXPECT_TRUE(IsIn(started, StreamState::kConnecting));
  const auto begin = std::chrono::steady_clock::now();
  subscriptions_->StopAll();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
  const Status late = subscriptions_->Start(MakeSeed(9'999, "tcp://127.0.0.1:1"));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kUnavailable);
}

TEST_F(SubscriptionsLimitsTest, ReplaysShareASmallNumberOfSlots) {
  SubscriptionOptions options = DefaultOptions();
  options.limits.replays_concurrent_max = 1;
  Open(options);
  std::vector<std::unique_ptr<FakePublisher>> publishers;
  for (StreamId stream = 1; stream <= 8; ++stream) {
    publishers.push_back(
        MakePublisher(stream == 1 ? ReplayStyle::kSilent : ReplayStyle::kThreeFrames));
    for (int i = 0; i < 3; ++i) publishers.back()->Send(Batch(i));
    ASSERT_TRUE(subscriptions_->Start(SeedOf(stream, *publishers.back())));
  }
  for (StreamId stream = 2; stream <= 8; ++stream) EXPECT_TRUE(Says(stream, "F0 F1 F2"));
}

}  // namespace
}  // namespace conductor::replay_test
