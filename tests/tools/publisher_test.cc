#include "tools/publisher.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/sim_test_util.h"

namespace conductor::enginesim {
namespace {

constexpr std::uint64_t kEnd = kEndMarkerSeq;
using Numbers = std::vector<std::uint64_t>;

class PublisherTest : public ::testing::Test {
 protected:
  void Start(PublisherOptions options = {}) {
    if (options.replay_endpoint.empty()) options.replay_endpoint = "tcp://127.0.0.1:*";
    auto started = Publisher::Start(context_, std::move(options));
    ASSERT_TRUE(started) << started.error().message;
    publisher_ = std::move(*started);
  }

  ZmqSocket Listen(std::uint64_t subscriptions = 1) {
    ZmqSocket sub = OpenClient(context_, ZMQ_SUB, publisher_->endpoint());
    EXPECT_TRUE(WaitForSubscriptions(subscriptions));
    return sub;
  }

  bool WaitForSubscriptions(std::uint64_t count) {
    return publisher_->WaitUntil(
        [count](const PublisherStats& stats) { return stats.subscriptions >= count; }, kDeadline);
  }

  // libzmq subscribes on a new connection only when the socket's owner uses the socket.
  bool WaitForResubscription(ZmqSocket& sub) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (std::chrono::steady_clock::now() < deadline) {
      EXPECT_FALSE(sub.Receive(std::chrono::milliseconds(10)));
      if (publisher_->stats().subscriptions > 0) return true;
    }
    return false;
  }

  ZmqSocket Dealer() { return OpenClient(context_, ZMQ_DEALER, publisher_->replay_endpoint()); }

  void PublishMany(int count) {
    for (int i = 0; i < count; ++i) publisher_->Publish("p");
  }

  Numbers Replay(ZmqSocket& dealer, std::uint64_t start) {
    publisher_->Flush();  // what is published is in the ring
    RequestReplay(dealer, start);
    return ReceiveReplay(dealer);
  }

  void SetMode(const std::string& mode) {
    publisher_->SetReplayMode(ParseReplayMode(mode).value());
  }

  ZmqContext context_;
  std::unique_ptr<Publisher> publisher_;
};

TEST_F(PublisherTest, LiveMessagesAreTopicSeqPayloadFromZero) {
  Start({.topic = "kv-events"});
  ZmqSocket sub = Listen();
  EXPECT_EQ(publisher_->Publish("one"), 0u);
  EXPECT_EQ(publisher_->Publish("two"), 1u);
  EXPECT_EQ(MustReceive(sub), (Message{"kv-events", EncodeSeq(0), "one"}));
  EXPECT_EQ(MustReceive(sub), (Message{"kv-events", EncodeSeq(1), "two"}));
}

TEST_F(PublisherTest, PortsAreChosenAndReported) {
  Start();
  EXPECT_TRUE(publisher_->endpoint().starts_with("tcp://127.0.0.1:"));
  EXPECT_EQ(publisher_->endpoint().find('*'), std::string::npos);
  EXPECT_NE(publisher_->endpoint(), publisher_->replay_endpoint());
}

TEST_F(PublisherTest, ATakenPortIsAnErrorThatNamesIt) {
  Start();
  const auto second =
      Publisher::Start(context_, {.endpoint = publisher_->endpoint(), .attach = Attach::kBind});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
  EXPECT_NE(second.error().message.find(publisher_->endpoint()), std::string::npos);
}

TEST_F(PublisherTest, AConnectingPublisherReachesASubscriberThatBinds) {
  ZmqSocket sub = std::move(ZmqSocket::Open(context_, ZMQ_SUB).value());
  ASSERT_TRUE(sub.SetText(ZMQ_SUBSCRIBE, ""));
  const std::string endpoint = sub.Bind("tcp://127.0.0.1:*").value();
  Start({.endpoint = endpoint});  // no `*`: connects by rule
  ASSERT_TRUE(WaitForResubscription(sub));
  publisher_->Publish("x");
  EXPECT_EQ(MustReceive(sub).back(), "x");
}

// Every golden transcript of a replay, over real sockets.
TEST_F(PublisherTest, ReplaysAsTheGoldenTranscriptsDo) {
  const nlohmann::json golden = ReadGolden("frames_visible.json");
  ASSERT_EQ(golden["replay"].size(), 9u);
  // Batches 0..5 as the transcript from 0 shows them.
  const Message payloads = [&] {
    Message all;
    for (const auto& entry : golden["replay"]) {
      if (entry["name"] != "dealer_sglang") continue;
      for (const auto& reply : entry["response_messages"])
        all.push_back(FramesFromHex(reply).back());
    }
    all.pop_back();  // the end marker
    return all;
  }();
  ASSERT_EQ(payloads.size(), 6u);

  for (const auto& entry : golden["replay"]) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    const bool topics = entry["response_layout"] == "delim,topic,seq,payload";
    Start({.topic = "kv-events",
           .layout = topics ? ReplayLayout::kTopicSeqPayload : ReplayLayout::kSeqPayload,
           .buffer_steps = entry["buffer_steps"].get<std::size_t>()});
    if (!entry["published_seqs"].empty()) {
      for (const std::string& payload : payloads) publisher_->Publish(payload);
    }
    const bool is_req = entry["client_socket"] == "REQ";
    ZmqSocket client =
        OpenClient(context_, is_req ? ZMQ_REQ : ZMQ_DEALER, publisher_->replay_endpoint());
    ASSERT_TRUE(client.Send(FramesFromHex(entry["request_frames"])));
    for (const auto& expected : entry["response_messages"]) {
      EXPECT_EQ(MustReceive(client), FramesFromHex(expected));
    }
    if (entry["ended_by"] == "timeout") {
      // No reply at all: the next thing that comes belongs to the next request.
      RequestReplay(client, 100);
      EXPECT_EQ(ReceiveReplay(client), Numbers{kEnd});
      EXPECT_EQ(publisher_->stats().replay_refused, 1u);
    }
  }
}

TEST_F(PublisherTest, DroppedBatchesAreOnlyInTheRing) {
  Start();
  ZmqSocket sub = Listen();
  publisher_->DropNext(2);
  PublishMany(3);
  EXPECT_EQ(MustReceive(sub)[1], EncodeSeq(2));
  ZmqSocket dealer = Dealer();
  EXPECT_EQ(Replay(dealer, 0), (Numbers{0, 1, 2, kEnd}));
  EXPECT_EQ(publisher_->stats().dropped, 2u);
}

TEST_F(PublisherTest, LostBatchesAreNowhere) {
  Start();
  ZmqSocket sub = Listen();
  PublishMany(1);
  publisher_->LoseNext(2);
  PublishMany(3);
  EXPECT_EQ(MustReceive(sub)[1], EncodeSeq(0));
  EXPECT_EQ(MustReceive(sub)[1], EncodeSeq(3));
  ZmqSocket dealer = Dealer();
  EXPECT_EQ(Replay(dealer, 0), (Numbers{0, 3, kEnd}));
  EXPECT_EQ(publisher_->stats().lost, 2u);
}

TEST_F(PublisherTest, SkippedNumbersLeaveAGap) {
  Start();
  PublishMany(1);
  publisher_->SkipNumbers(4);
  EXPECT_EQ(publisher_->Publish("x"), 5u);
}

TEST_F(PublisherTest, ANewLifeCountsFromZeroWithAnEmptyRing) {
  Start();
  ZmqSocket sub = Listen();
  publisher_->DropNext(10);
  PublishMany(3);
  publisher_->Restart();
  EXPECT_EQ(publisher_->stats().life, 2u);
  ZmqSocket dealer = Dealer();
  EXPECT_EQ(Replay(dealer, 3), Numbers{kEnd});
  PublishMany(1);
  EXPECT_EQ(MustReceive(sub)[1], EncodeSeq(0));
  EXPECT_EQ(Replay(dealer, 0), (Numbers{0, kEnd}));
}

TEST_F(PublisherTest, NeverMeansNoReply) {
  Start();
  PublishMany(6);
  SetMode("never");
  ZmqSocket dealer = Dealer();
  RequestReplay(dealer, 0);
  ASSERT_TRUE(publisher_->WaitUntil(
      [](const PublisherStats& stats) { return stats.replay_requests == 1; }, kDeadline));
  publisher_->Flush();  // the publisher has left the turn of that request
  SetMode("ok");
  EXPECT_EQ(Replay(dealer, 5), (Numbers{5, kEnd}));
}

TEST_F(PublisherTest, ALateAnswerDoesNotHoldUpTheLiveStream) {
  Start();
  ZmqSocket sub = Listen();
  PublishMany(1);
  MustReceive(sub);
  SetMode("late 300");
  ZmqSocket dealer = Dealer();
  const auto asked = std::chrono::steady_clock::now();
  RequestReplay(dealer, 0);
  ASSERT_TRUE(publisher_->WaitUntil(
      [](const PublisherStats& stats) { return stats.replay_requests == 1; }, kDeadline));
  PublishMany(1);
  EXPECT_EQ(MustReceive(sub)[1], EncodeSeq(1));
  EXPECT_EQ(ReceiveReplay(dealer), (Numbers{0, 1, kEnd}));
  EXPECT_GE(std::chrono::steady_clock::now() - asked, std::chrono::milliseconds(300));
}

TEST_F(PublisherTest, CutAnswersEndEarlyWithAndWithoutTheMarker) {
  Start();
  PublishMany(5);
  ZmqSocket dealer = Dealer();
  SetMode("cut_end 2");
  EXPECT_EQ(Replay(dealer, 1), (Numbers{1, 2, kEnd}));
  SetMode("cut 2");
  RequestReplay(dealer, 1);
  EXPECT_EQ(ReceiveReplay(dealer, 2), (Numbers{1, 2}));
  SetMode("no_end_marker");
  RequestReplay(dealer, 3);
  EXPECT_EQ(ReceiveReplay(dealer, 2), (Numbers{3, 4}));
  SetMode("hole 1");
  EXPECT_EQ(Replay(dealer, 0), (Numbers{0, 2, 3, 4, kEnd}));
}

TEST_F(PublisherTest, StatisticsShowTheRequestsThatCame) {
  Start();
  PublishMany(2);
  ZmqSocket dealer = Dealer();
  Replay(dealer, 1);
  Replay(dealer, 0);
  const PublisherStats stats = publisher_->stats();
  EXPECT_EQ(stats.replay_starts, (Numbers{1, 0}));
  EXPECT_EQ(stats.ring_batches, 2u);
  EXPECT_EQ(stats.ring_first, 0u);
  EXPECT_EQ(stats.ring_last, 1u);
  EXPECT_EQ(stats.next_seq, 2u);
}

TEST_F(PublisherTest, AWholeRingIsReplayedWithoutLoss) {
  constexpr std::uint64_t kBatches = 12'000;  // an engine with libzmq's queue length loses some
  Start({.buffer_steps = kBatches});
  for (std::uint64_t i = 0; i < kBatches; ++i) publisher_->Publish(std::string(400, 'x'));
  ZmqSocket dealer = Dealer();
  const Numbers numbers = Replay(dealer, 0);
  ASSERT_EQ(numbers.size(), kBatches + 1);
  for (std::uint64_t i = 0; i < kBatches; ++i) ASSERT_EQ(numbers[i], i);
}

TEST_F(PublisherTest, AfterDownAndUpTheSameEndpointsServeTheSameLife) {
  Start();
  const std::string endpoint = publisher_->endpoint();
  ZmqSocket sub = Listen();
  PublishMany(1);
  EXPECT_EQ(MustReceive(sub)[1], EncodeSeq(0));
  publisher_->Down();
  EXPECT_FALSE(publisher_->stats().up);
  PublishMany(1);
  ASSERT_TRUE(publisher_->Up());
  EXPECT_TRUE(publisher_->stats().up);
  EXPECT_EQ(publisher_->endpoint(), endpoint);
  ASSERT_TRUE(WaitForResubscription(sub));
  PublishMany(1);
  EXPECT_EQ(MustReceive(sub)[1], EncodeSeq(2));
  ZmqSocket dealer = Dealer();
  EXPECT_EQ(Replay(dealer, 0), (Numbers{0, 1, 2, kEnd}));
}

TEST_F(PublisherTest, FramesAreSentVerbatim) {
  Start();
  ZmqSocket sub = Listen();
  publisher_->PublishFrames({std::string("t\0x", 3), "", "seq"});
  EXPECT_EQ(MustReceive(sub), (Message{std::string("t\0x", 3), "", "seq"}));
  EXPECT_EQ(publisher_->stats().next_seq, 0u);
}

TEST_F(PublisherTest, SubscriptionsAreCountedUpAndDown) {
  Start();
  ZmqSocket first = Listen();
  { ZmqSocket second = Listen(2); }
  EXPECT_TRUE(publisher_->WaitUntil(
      [](const PublisherStats& stats) { return stats.subscriptions == 1; }, kDeadline));
}

TEST(EndpointRuleTest, BindsWhatVllmBinds) {
  for (const char* endpoint : {"tcp://*:5557", "tcp://[::]:1", "ipc:///x", "inproc://x"}) {
    EXPECT_TRUE(BindsByRule(endpoint)) << endpoint;
  }
  for (const char* endpoint : {"tcp://127.0.0.1:5557", "tcp://host:1", "tcp://0.0.0.0:1"}) {
    EXPECT_FALSE(BindsByRule(endpoint)) << endpoint;
  }
}

TEST(EndpointRuleTest, RanksAddToThePort) {
  EXPECT_EQ(RankEndpoint("tcp://*:5557", 3).value(), "tcp://*:5560");
  EXPECT_EQ(RankEndpoint("tcp://h:5557", 0).value(), "tcp://h:5557");
  EXPECT_EQ(RankEndpoint("tcp://h:*", 2).value(), "tcp://h:*");
  EXPECT_EQ(RankEndpoint("tcp://h:0", 2).value(), "tcp://h:0");
  EXPECT_EQ(RankEndpoint("inproc://x", 2).value(), "inproc://x_dp2");
  EXPECT_EQ(RankEndpoint("ipc:///x", 0).value(), "ipc:///x");
  EXPECT_EQ(RankEndpoint("", 2).value(), "");
}

TEST(EndpointRuleTest, EndpointsThatCannotHaveRanksAreRefused) {
  for (const char* endpoint : {"ipc:///x", "tcp://h:x", "tcp://h", "tcp://h:65535", "tcp://h:"}) {
    const auto offset = RankEndpoint(endpoint, 1);
    ASSERT_FALSE(offset) << endpoint;
    EXPECT_EQ(offset.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace conductor::enginesim
