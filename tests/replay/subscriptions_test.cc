// The field cases of the event stream (BL-...), over real sockets.
#include "replay/subscriptions.h"

#include <gtest/gtest.h>

#include "tests/replay/subscriptions_fixture.h"

namespace conductor::replay_test {
namespace {

using Requests = std::vector<std::uint64_t>;

class SubscriptionsTest : public SubscriptionsFixture {};

TEST_F(SubscriptionsTest, Bl01HistoryIsFetchedBeforeTheFirstLiveBatch) {
  auto p1 = MakePublisher();
  for (int i = 0; i < 3; ++i) p1->Send(Batch(i));
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  p1->Send(Batch(3));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  EXPECT_EQ(p1->requests(), Requests{0});
}

TEST_F(SubscriptionsTest, Bl01IdlePublisherIsCaughtUpOnConnect) {
  auto p1 = MakePublisher();
  for (int i = 0; i < 3; ++i) p1->Send(Batch(i));
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  EXPECT_TRUE(Says(1, "F0 F1 F2"));
  EXPECT_TRUE(Eventually([&] { return StatusOf(1).first_catch_up_done; }));
  EXPECT_EQ(p1->requests(), Requests{0});
  EXPECT_EQ(p1->bad_requests(), 0);
  EXPECT_TRUE(Eventually([&] { return Counter(1, "replay_requests_total") == 1u; }));
  // The connection may be there before the first state is told.
  std::vector<StreamState> states = sink_.States(1);
  if (states.front() == StreamState::kConnecting) states.erase(states.begin());
  EXPECT_EQ(states, (std::vector<StreamState>{StreamState::kCatchingUp, StreamState::kLive}));
}

TEST_F(SubscriptionsTest, Bl02BothReplyLayoutsAndAPublisherThatNeverAnswers) {
  Open();
  std::vector<std::unique_ptr<FakePublisher>> publishers;
  for (ReplayStyle style :
       {ReplayStyle::kThreeFrames, ReplayStyle::kFourFrames, ReplayStyle::kSilent}) {
    FakePublisher::Options options;
    options.style = style;
    options.topic = "kv@10.0.0.1@model";
    publishers.push_back(std::make_unique<FakePublisher>(options));
    const StreamId stream = publishers.size();
    ASSERT_TRUE(subscriptions_->Start(SeedOf(stream, *publishers.back())));
    ASSERT_TRUE(Subscribed(*publishers.back()));
    publishers.back()->Send(Batch(0));
    ASSERT_TRUE(Says(stream, "F0"));
    ASSERT_TRUE(Eventually([&] { return publishers[stream - 1]->requests().size() == 1; }));
  }
  for (auto& publisher : publishers) {
    for (int i = 1; i <= 3; ++i) publisher->Send(Batch(i), /*drop=*/true);
    publisher->Send(Batch(4));
  }
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 F4"));
  EXPECT_TRUE(Says(2, "F0 F1 F2 F3 F4"));
  EXPECT_TRUE(Says(3, "F0 L1-3 F4"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  EXPECT_TRUE(IsIn(3, StreamState::kDegraded)) << "nobody could say whose life it is";
  publishers[2]->Send(Batch(5));
  EXPECT_TRUE(Says(3, "F0 L1-3 F4 F5"));
  for (auto& publisher : publishers) EXPECT_EQ(publisher->bad_requests(), 0);
}

TEST_F(SubscriptionsTest, Bl04NoFurtherReplayAfterARecovery) {
  auto p1 = MakePublisher();
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  for (int i = 0; i <= 10; ++i) p1->Send(Batch(i));
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(1) == 11; }));
  ASSERT_TRUE(IsIn(1, StreamState::kLive));
  const auto before = Counter(1, "replay_requests_total");
  for (int i = 11; i <= 13; ++i) p1->Send(Batch(i), /*drop=*/true);
  for (int i = 14; i <= 17; ++i) p1->Send(Batch(i));
  ASSERT_TRUE(Says(1, "F0 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14 F15 F16 F17"));
  EXPECT_TRUE(Eventually([&] { return Counter(1, "replay_requests_total") == before + 1; }));
  EXPECT_TRUE(Eventually([&] { return Counter(1, "gaps_total") == 1u; }));
}

TEST_F(SubscriptionsTest, Bl05WhatComesTwiceIsAppliedOnce) {
  auto p1 = MakePublisher();
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  for (int i = 0; i <= 3; ++i) p1->Send(Batch(i));
  p1->Send(Batch(4), /*drop=*/true);
  p1->Send(Batch(5));  // By replay and live.
  p1->Send(Batch(6));
  ASSERT_TRUE(Says(1, "F0 F1 F2 F3 F4 F5 F6"));
  p1->SendLive(5, Batch(5));
  p1->SendLive(6, Batch(6));
  ASSERT_TRUE(Eventually([&] { return Counter(1, "duplicates_dropped_total") >= 2; }));
  p1->Send(Batch(7));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 F4 F5 F6 F7"));
  EXPECT_TRUE(CounterIs(1, "epoch_changes_total", 0u));
}

TEST_F(SubscriptionsTest, Bl06RestartInPlaceWithoutReplay) {
  auto p1 = MakePublisher(ReplayStyle::kNone);
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  for (int i = 0; i <= 7; ++i) p1->Send(Batch(i));
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(1) == 8; }));
  p1 = FakePublisher::Restart(std::move(p1));
  ASSERT_TRUE(Subscribed(*p1));
  p1->Send(Payload({S({91u}, {}, A())}));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 F4 F5 F6 F7 E F0"));
  EXPECT_TRUE(Eventually([&] { return Counter(1, "epoch_changes_total") == 1; }));
}

TEST_F(SubscriptionsTest, Bl06RestartInPlaceWithReplay) {
  auto p1 = MakePublisher();
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  for (int i = 0; i <= 7; ++i) p1->Send(Batch(i));
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(1) == 8; }));
  p1 = FakePublisher::Restart(std::move(p1));
  ASSERT_TRUE(Subscribed(*p1));
  p1->Send(Payload({S({91u}, {}, A())}));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 F4 F5 F6 F7 E F0"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  EXPECT_TRUE(Eventually([&] { return Counter(1, "epoch_changes_total") == 1u; }));
}

TEST_F(SubscriptionsTest, RestartWhileWeAreDownIsSeenByTheInclusiveQuestion) {
  auto p1 = MakePublisher();
  for (int i = 0; i <= 3; ++i) p1->Send(Batch(i));
  Open();
  const StreamSeed seed = SeedOf(1, *p1);
  ASSERT_TRUE(subscriptions_->Start(seed));
  ASSERT_TRUE(Says(1, "F0 F1 F2 F3"));
  subscriptions_->Stop(1);
  p1 = FakePublisher::Restart(std::move(p1));
  // Already beyond where the old life ended.
  for (int i = 0; i <= 5; ++i) p1->Send(Batch(100 + i));
  ASSERT_TRUE(subscriptions_->Start(sink_.Seed(seed)));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 E F0 F1 F2 F3 F4 F5"));
  EXPECT_EQ(p1->requests(), (Requests{3, 0}));
}

TEST_F(SubscriptionsTest, Bl08RegisteredAgainStartsFresh) {
  auto p1 = MakePublisher();
  for (int i = 0; i <= 9; ++i) p1->Send(Batch(i));
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(1) == 10; }));
  subscriptions_->Stop(1);
  EXPECT_FALSE(subscriptions_->GetStatus(1));
  ASSERT_TRUE(subscriptions_->Start(SeedOf(2, *p1)));
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(2) == 10; }));
  p1->Send(Batch(10));
  EXPECT_TRUE(Says(2, "F0 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10"));
  EXPECT_EQ(sink_.FrameCount(1), 10u);
}

TEST_F(SubscriptionsTest, Bl09GapOlderThanTheRing) {
  FakePublisher::Options options;
  options.ring_max = 5;
  FakePublisher p1(options);
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, p1)));
  ASSERT_TRUE(Subscribed(p1));
  for (int i = 0; i <= 10; ++i) p1.Send(Batch(i));
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(1) == 11; }));
  for (int i = 11; i <= 39; ++i) p1.Send(Batch(i), /*drop=*/true);
  p1.Send(Batch(40));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 L11-35 F36 F37 F38 F39 F40"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  EXPECT_TRUE(Eventually([&] { return Counter(1, "lost_numbers_total") == 25u; }));
  p1.Send(Payload({Clear()}));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
}

TEST_F(SubscriptionsTest, Bl10StoreStreamsHaveNoReplayAndCountTheirGaps) {
  auto m1 = MakePublisher(ReplayStyle::kNone);
  Open();
  StreamSeed seed = SeedOf(1, *m1);
  seed.registration.type = PublisherType::kMooncake;
  ASSERT_TRUE(subscriptions_->Start(seed));
  ASSERT_TRUE(Subscribed(*m1));
  m1->Send(Batch(0));
  m1->Send(Batch(1));
  m1->SkipTo(5);
  m1->Send(Batch(5));
  EXPECT_TRUE(Says(1, "F0 F1 L2-4 F5"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  EXPECT_TRUE(CounterIs(1, "replay_requests_total", 0u));
}

TEST_F(SubscriptionsTest, Bl11PublisherThatComesAndGoes) {
  FakePublisher::Options options;
  {
    // Two free ports.
    FakePublisher probe(options);
    options.live_endpoint = probe.live();
    options.replay_endpoint = probe.replay();
  }
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, options.live_endpoint, options.replay_endpoint)));
  ASSERT_TRUE(Eventually([&] { return Counter(1, "connect_retries_total") > 2; }));
  EXPECT_EQ(StatusOf(1).state, StreamState::kConnecting);
  EXPECT_GE(StatusOf(1).disconnected_for_ms, 0);
  EXPECT_EQ(StatusOf(1).last_frame_age_ms, -1);
  EXPECT_NE(StatusOf(1).last_error.find(options.live_endpoint), std::string::npos);

  std::string expected;
  for (int life = 0; life < 3; ++life) {
    auto p1 = std::make_unique<FakePublisher>(options);
    ASSERT_TRUE(Subscribed(*p1));
    p1->Send(Batch(static_cast<std::uint64_t>(life)));
    expected += life == 0 ? "F0" : " E F0";
    ASSERT_TRUE(Says(1, expected));
    ASSERT_TRUE(IsIn(1, StreamState::kLive));
    EXPECT_TRUE(Eventually([&] { return StatusOf(1).disconnected_for_ms == -1; }));
    EXPECT_TRUE(Eventually([&] { return StatusOf(1).last_frame_age_ms >= 0; }));
    p1.reset();
    ASSERT_TRUE(IsIn(1, StreamState::kConnecting));
  }
}

TEST_F(SubscriptionsTest, Bl17PoisonDoesNotStopTheStream) {
  auto p1 = MakePublisher(ReplayStyle::kNone);
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  p1->Send(Batch(0));
  p1->Send("\xff\xff\xff");
  p1->Send(Batch(2));
  EXPECT_TRUE(Says(1, "F0 F1 F2"));
  EXPECT_EQ(sink_.Frames(1)[1].ignored.at(IgnoreReason::kUndecodableFrame), 1u);
}

TEST_F(SubscriptionsTest, Bl46BurstWhileTheConsumerStandsStill) {
  auto p1 = MakePublisher();
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  sink_.SetFull(true);
  constexpr std::uint64_t kBurst = 9'000;
  for (std::uint64_t i = 0; i < kBurst; ++i) {
    p1->Send(Batch(i), /*drop=*/i % 100 == 50);  // What a full queue on the way would do.
  }
  ASSERT_TRUE(Eventually([&] { return Counter(1, "queue_full_total") > 3; }));
  sink_.SetFull(false);
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(1) == kBurst; }));
  const auto frames = sink_.Frames(1);
  for (std::uint64_t i = 0; i < kBurst; ++i) ASSERT_EQ(frames[i].number, i);
  EXPECT_TRUE(CounterIs(1, "lost_numbers_total", 0u));
  EXPECT_GT(Counter(1, "gaps_total"), 0u);
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
}

TEST_F(SubscriptionsTest, ReplayCutShortIsContinuedWhereItStopped) {
  auto p1 = MakePublisher();
  for (int i = 0; i < 10; ++i) p1->Send(Batch(i));
  p1->CutAnswers(2, 4);
  Open();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 F4 F5 F6 F7 F8 F9"));
  EXPECT_EQ(p1->requests(), (Requests{0, 3, 6}));
}

// SGLang: replies of three frames. The end marker comes, and proves nothing.
TEST_F(SubscriptionsTest, ReplayWithAHoleBeforeItsEndMarkerIsAskedAgain) {
  auto s1 = MakePublisher();
  for (int i = 0; i < 10; ++i) s1->Send(Batch(i));
  s1->SkipInAnswers(1, 4, 6);
  Open();
  StreamSeed seed = SeedOf(1, *s1);
  seed.registration.type = PublisherType::kSglang;
  seed.registration.hash_profile = *MakeHashProfile("sglang", "sha256_raw", "0", "first64_be");
  ASSERT_TRUE(subscriptions_->Start(seed));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 F4 F5 F6 F7 F8 F9"));
  EXPECT_EQ(s1->requests(), (Requests{0, 3}));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  EXPECT_TRUE(CounterIs(1, "replay_failures_total", 1u));
  EXPECT_TRUE(CounterIs(1, "lost_numbers_total", 0u));
}

TEST_F(SubscriptionsTest, UnreachableReplayEndpointHoldsNothingUp) {
  auto p1 = MakePublisher(ReplayStyle::kNone);
  std::string dead;
  {
    FakePublisher gone(FakePublisher::Options{});
    dead = gone.replay();
  }
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, p1->live(), dead)));
  ASSERT_TRUE(Subscribed(*p1));
  p1->SkipTo(7);
  p1->Send(Batch(7));
  EXPECT_TRUE(Says(1, "H7 F7"));
  EXPECT_TRUE(IsIn(1, StreamState::kDegraded));
  EXPECT_TRUE(Eventually([&] { return StatusOf(1).first_catch_up_done; }));
  p1->Send(Batch(8));
  EXPECT_TRUE(Says(1, "H7 F7 F8"));
}

TEST_F(SubscriptionsTest, LongGonePublisherIsDropped) {
  SubscriptionOptions options = DefaultOptions();
  options.disconnected_drop_ms = 300;
  Open(options);
  auto p1 = MakePublisher();
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *p1)));
  ASSERT_TRUE(Subscribed(*p1));
  p1->Send(Batch(0));
  ASSERT_TRUE(Says(1, "F0"));
  const FakePublisher::Options same = p1->options();
  p1.reset();
  EXPECT_TRUE(Says(1, "F0 Dd"));
  FakePublisher again(same);
  again.Send(Batch(9));
  EXPECT_TRUE(Says(1, "F0 Dd F0"));
}

TEST_F(SubscriptionsTest, TopicIsComparedExactlyUpToItsFirstNul) {
  Open();
  FakePublisher::Options options;
  options.style = ReplayStyle::kNone;
  options.topic = std::string("kv@a\0sgl-kv-epoch=1", 19);
  FakePublisher right(options);
  options.topic = "kv@ab";
  FakePublisher wrong(options);
  StreamId stream = 0;
  for (FakePublisher* publisher : {&right, &wrong}) {
    StreamSeed seed = SeedOf(++stream, *publisher);
    seed.registration.topic = "kv@a";
    seed.registration.has_topic = true;
    ASSERT_TRUE(subscriptions_->Start(seed));
    ASSERT_TRUE(Subscribed(*publisher));
    publisher->Send(Batch(0));
  }
  EXPECT_TRUE(Says(1, "F0"));
  EXPECT_TRUE(Eventually([&] { return Counter(2, "ignored_topic_mismatch_total") == 1; }));
  EXPECT_EQ(sink_.Spelled(2), "");
}

}  // namespace
}  // namespace conductor::replay_test
