// SGLang's snapshots and epoch texts over real sockets: gaps beyond the ring, answers that are
// broken in every way, and publishers that say they are new ones.
#include <gtest/gtest.h>

#include "tests/replay/fake_snapshot_server.h"
#include "tests/replay/subscriptions_fixture.h"

namespace conductor::replay_test {
namespace {

class SubscriptionsSnapshotTest : public SubscriptionsFixture {
 protected:
  static SubscriptionOptions FastOptions() {
    SubscriptionOptions options = DefaultOptions();
    options.limits.replay_probe_ms_max = 50;  // Also of snapshots that failed.
    return options;
  }
  static StreamSeed Sglang(StreamSeed seed, const FakeSnapshotServer* server = nullptr) {
    seed.registration.type = PublisherType::kSglang;
    seed.registration.hash_profile = *MakeHashProfile("sglang", "sha256_raw", "0", "first64_be");
    if (server != nullptr) seed.registration.snapshot_endpoint = server->endpoint();
    return seed;
  }
  static std::string Topic(const std::string& name, const std::string& epoch) {
    return name + std::string("\0sgl-kv-epoch=", 14) + epoch;
  }
  // An SGLang engine with a ring of five batches.
  static std::unique_ptr<FakePublisher> SmallRing(const std::string& epoch = "a1") {
    FakePublisher::Options options;
    options.ring_max = 5;
    options.topic = Topic("kv", epoch);
    return std::make_unique<FakePublisher>(options);
  }
  // Applies 0..2, then loses 3..9 of the live stream, of which the ring keeps 6..10.
  void LoseBeyondTheRing(FakePublisher& publisher, const FakeSnapshotServer& server) {
    Open(FastOptions());
    ASSERT_TRUE(subscriptions_->Start(Sglang(SeedOf(1, publisher), &server)));
    ASSERT_TRUE(Subscribed(publisher));
    for (int i = 0; i < 3; ++i) publisher.Send(Batch(i));
    ASSERT_TRUE(Says(1, "F0 F1 F2"));
    for (int i = 3; i < 10; ++i) publisher.Send(Batch(i), /*drop=*/true);
    publisher.Send(Batch(10));
  }
  static constexpr char kLoss[] = "F0 F1 F2 L3-5 F6 F7 F8 F9 F10";
  std::string AfterLoss(const std::string& rest) { return kLoss + (" " + rest); }
};

TEST_F(SubscriptionsSnapshotTest, AGapBeyondTheRingIsMadeGood) {
  FakeSnapshotServer server({WholeSnapshot({.resume = 12}, {-5, 6, 7})});
  auto publisher = SmallRing();
  LoseBeyondTheRing(*publisher, server);
  ASSERT_TRUE(Says(1, AfterLoss("S12:3")));
  publisher->Send(Batch(11));  // The barrier, still on its way.
  publisher->Send(Batch(12));
  EXPECT_TRUE(Says(1, AfterLoss("S12:3 F12")));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  const PublisherSnapshot snapshot = sink_.Snapshots(1).at(0);
  EXPECT_EQ(snapshot.stream, 1u);
  EXPECT_EQ(snapshot.epoch, "a1");
  ASSERT_EQ(snapshot.links.size(), 3u);
  EXPECT_FALSE(snapshot.links[0].first);
  EXPECT_EQ(snapshot.links[0].second.projected, static_cast<std::uint64_t>(-5));
  EXPECT_EQ(snapshot.links[2].first->projected, 6u);
  EXPECT_EQ(snapshot.links[2].second.projected, 7u);
  EXPECT_EQ(server.requests(), 1);
  EXPECT_EQ(server.bad_requests(), 0);
  EXPECT_TRUE(CounterIs(1, "snapshot_requests_total", 1u));
  EXPECT_TRUE(CounterIs(1, "snapshot_failures_total", 0u));
  EXPECT_TRUE(CounterIs(1, "epoch_changes_total", 0u));
  EXPECT_EQ(StatusOf(1).last_error, "");
}

TEST_F(SubscriptionsSnapshotTest, NothingIsAskedWhileNothingIsLost) {
  FakeSnapshotServer server({WholeSnapshot({.resume = 9}, {1})});
  auto publisher = SmallRing();
  Open(FastOptions());
  ASSERT_TRUE(subscriptions_->Start(Sglang(SeedOf(1, *publisher), &server)));
  ASSERT_TRUE(Subscribed(*publisher));
  for (int i = 0; i < 3; ++i) publisher->Send(Batch(i));
  publisher->Send(Batch(3), /*drop=*/true);
  publisher->Send(Batch(4));
  EXPECT_TRUE(Says(1, "F0 F1 F2 F3 F4"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  EXPECT_EQ(server.requests(), 0);
}

TEST_F(SubscriptionsSnapshotTest, BrokenAnswersAreNeverHalfApplied) {
  const SnapshotScript whole = WholeSnapshot({.resume = 11}, {1, 2, 3});
  SnapshotScript holed = whole, twice = whole, surplus = whole, wrong_word = whole;
  holed.erase(holed.begin() + 1);
  twice.insert(twice.begin() + 1, whole[0]);
  surplus.insert(surplus.begin() + 1, whole[1]);
  wrong_word[1].word = "hunk";
  SnapshotScript cut_chunk = whole, headless(whole.begin() + 1, whole.end());
  cut_chunk[2].body.pop_back();
  const std::pair<SnapshotScript, const char*> broken[] = {
      {holed, "expected 3 records, got 1"},
      {twice, "expected one header, got two"},
      {surplus, "expected 3 records, got 4"},
      {wrong_word, "expected header, chunk, end or error"},
      {cut_chunk, "snapshot: payload of 4 bytes, value at byte 3"},
      {headless, "expected a header first"},
      {{{"error", "busy"}}, "the publisher refused: busy"},
      {{whole[0], whole[1], {"error", "gone"}}, "the publisher refused: gone"},
      {WholeSnapshot({.resume = 11, .rank = 3}, {1}), "rank: expected 0 (registered), got 3"},
      {WholeSnapshot({.resume = 11, .epoch = "b2"}, {1}), "expected epoch a1"},
      {WholeSnapshot({.resume = 5}, {1}), "expected to resume above 10, got 5"},
  };
  FakeSnapshotServer server({broken[0].first});
  auto publisher = SmallRing();
  LoseBeyondTheRing(*publisher, server);
  for (const auto& [script, text] : broken) {
    server.Answer({script});
    EXPECT_TRUE(Eventually([&, words = std::string(text)] {
      return StatusOf(1).last_error.find(words) != std::string::npos;
    })) << text
        << ": got " << StatusOf(1).last_error;
    EXPECT_EQ(sink_.Spelled(1), kLoss) << text;
  }
  EXPECT_GE(Counter(1, "snapshot_failures_total"), std::size(broken));
  server.Answer({whole});
  EXPECT_TRUE(Says(1, AfterLoss("S11:3")));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
}

TEST_F(SubscriptionsSnapshotTest, AnAnswerThatStopsHoldsTheStreamForAMoment) {
  const SnapshotScript whole = WholeSnapshot({.resume = 12}, {1, 2, 3});
  FakeSnapshotServer server({{whole[0], whole[1]}, whole});
  auto publisher = SmallRing();
  LoseBeyondTheRing(*publisher, server);
  ASSERT_TRUE(Eventually([&] { return server.requests() == 1; }));
  publisher->Send(Batch(11));
  EXPECT_TRUE(Says(1, AfterLoss("F11 S12:3")));
  EXPECT_EQ(server.requests(), 2);
  EXPECT_TRUE(CounterIs(1, "snapshot_failures_total", 1u));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
}

TEST_F(SubscriptionsSnapshotTest, AnEndpointThatNobodyServesHoldsNothingUp) {
  std::string dead;
  {
    FakeSnapshotServer gone({SnapshotScript{}});
    dead = gone.endpoint();
  }
  auto publisher = SmallRing();
  Open(FastOptions());
  StreamSeed seed = Sglang(SeedOf(1, *publisher));
  seed.registration.snapshot_endpoint = dead;
  ASSERT_TRUE(subscriptions_->Start(seed));
  ASSERT_TRUE(Subscribed(*publisher));
  publisher->SkipTo(7);
  publisher->Send(Batch(7));
  ASSERT_TRUE(Says(1, "H7 F7"));
  ASSERT_TRUE(Eventually([&] { return Counter(1, "snapshot_failures_total") >= 2; }));
  EXPECT_NE(StatusOf(1).last_error.find("snapshot: no answer"), std::string::npos);
  publisher->Send(Batch(8));
  EXPECT_TRUE(Says(1, "H7 F7 F8"));
  EXPECT_TRUE(Eventually([&] { return StatusOf(1).first_catch_up_done; }));
}

TEST_F(SubscriptionsSnapshotTest, ALateJoinIsComplete) {
  FakeSnapshotServer server({WholeSnapshot({.resume = 10}, {1, 2})});
  auto publisher = SmallRing();
  for (int i = 0; i < 10; ++i) publisher->Send(Batch(i));
  Open(FastOptions());
  ASSERT_TRUE(subscriptions_->Start(Sglang(SeedOf(1, *publisher), &server)));
  EXPECT_TRUE(Says(1, "H5 F5 F6 F7 F8 F9 S10:2"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
}

TEST_F(SubscriptionsSnapshotTest, WithoutAReplayEndpointToo) {
  FakeSnapshotServer server({WholeSnapshot({.resume = 8}, {1, 2})});
  auto publisher = MakePublisher(ReplayStyle::kNone);
  Open(FastOptions());
  ASSERT_TRUE(subscriptions_->Start(Sglang(SeedOf(1, *publisher), &server)));
  ASSERT_TRUE(Subscribed(*publisher));
  publisher->SkipTo(7);
  publisher->Send(Batch(7));
  ASSERT_TRUE(Says(1, "H7 F7 S8:2"));
  publisher->Send(Batch(8));
  EXPECT_TRUE(Says(1, "H7 F7 S8:2 F8"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
}

TEST_F(SubscriptionsSnapshotTest, AChangedEpochTextIsANewLife) {
  auto publisher = SmallRing("a1");
  Open(FastOptions());
  ASSERT_TRUE(subscriptions_->Start(Sglang(SeedOf(1, *publisher))));
  ASSERT_TRUE(Subscribed(*publisher));
  for (int i = 0; i < 3; ++i) publisher->Send(Batch(i));
  ASSERT_TRUE(Says(1, "F0 F1 F2"));
  FakePublisher::Options options = publisher->options();
  options.topic = Topic("kv", "b2");
  publisher.reset();
  ASSERT_TRUE(IsIn(1, StreamState::kConnecting));
  // The ring of the new process has the same batches under the same numbers.
  FakePublisher again(options);
  for (int i = 0; i < 3; ++i) again.Send(Batch(i), /*drop=*/true);
  ASSERT_TRUE(Subscribed(again));
  ASSERT_TRUE(IsIn(1, StreamState::kLive));
  again.Send(Batch(3));
  EXPECT_TRUE(Says(1, "F0 F1 F2 E F0 F1 F2 F3"));
  EXPECT_TRUE(CounterIs(1, "epoch_changes_total", 1u));
}

TEST_F(SubscriptionsSnapshotTest, OfOtherPublishersTheTopicIsNoEpoch) {
  FakePublisher::Options options;
  options.style = ReplayStyle::kNone;
  options.topic = Topic("kv", "a1");
  auto publisher = std::make_unique<FakePublisher>(options);
  Open(FastOptions());
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, *publisher)));
  ASSERT_TRUE(Subscribed(*publisher));
  publisher->Send(Batch(0));
  ASSERT_TRUE(Says(1, "F0"));
  options = publisher->options();
  options.topic = Topic("kv", "b2");
  publisher.reset();
  FakePublisher again(options);
  ASSERT_TRUE(Subscribed(again));
  again.SkipTo(1);
  again.Send(Batch(1));
  EXPECT_TRUE(Says(1, "F0 F1"));
}

TEST_F(SubscriptionsSnapshotTest, TheTopicFilterLooksAtWhatIsBeforeTheNul) {
  Open(FastOptions());
  StreamId stream = 0;
  const std::pair<std::string, bool> topics[] = {
      {"kv", true}, {Topic("kv", "a1"), true}, {Topic("kv2", "a1"), false}, {"kv2", false}};
  for (const auto& [topic, taken] : topics) {
    FakePublisher::Options options;
    options.style = ReplayStyle::kNone;
    options.topic = topic;
    FakePublisher publisher(options);
    StreamSeed seed = Sglang(SeedOf(++stream, publisher));
    seed.registration.topic = "kv";
    seed.registration.has_topic = true;
    ASSERT_TRUE(subscriptions_->Start(seed));
    ASSERT_TRUE(Subscribed(publisher));
    publisher.Send(Batch(0));
    ASSERT_TRUE(CounterIs(stream, "frames_received_total", 1u)) << topic;
    EXPECT_TRUE(CounterIs(stream, "ignored_topic_mismatch_total", taken ? 0u : 1u)) << topic;
    EXPECT_TRUE(CounterIs(stream, "frames_delivered_total", taken ? 1u : 0u)) << topic;
  }
}

}  // namespace
}  // namespace conductor::replay_test
