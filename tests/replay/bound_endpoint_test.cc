// Endpoints of every kind over real sockets: publishers that connect to us (a wildcard host), IPv6,
// ipc, and hosts that are not there yet.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/replay/subscriptions_fixture.h"

namespace conductor::replay_test {
namespace {

class BoundEndpointTest : public SubscriptionsFixture {
 protected:
  // Options of a publisher that connects to a port nobody has at the moment.
  static FakePublisher::Options Connecting(const std::string& host = "127.0.0.1") {
    FakePublisher::Options options;
    options.style = ReplayStyle::kNone;
    options.live_endpoint = "tcp://" + host + ":*";
    FakePublisher probe(options);
    options.live_endpoint = probe.live();
    options.connects = true;
    return options;
  }
  static std::string Port(const FakePublisher::Options& options) {
    return options.live_endpoint.substr(options.live_endpoint.rfind(':'));
  }
  bool HasIpv6() {
    void* context = zmq_ctx_new();
    void* socket = zmq_socket(context, ZMQ_PUB);
    const int on = 1;
    zmq_setsockopt(socket, ZMQ_IPV6, &on, sizeof(on));
    const bool bound = zmq_bind(socket, "tcp://[::1]:*") == 0;
    zmq_close(socket);
    zmq_ctx_term(context);
    return bound;
  }
};

TEST_F(BoundEndpointTest, ServesOnePublisherUntilItIsGone) {
  const auto options = Connecting();
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://*" + Port(options))));
  EXPECT_EQ(StatusOf(1).state, StreamState::kConnecting);
  auto first = std::make_unique<FakePublisher>(options);
  ASSERT_TRUE(Subscribed(*first));
  first->Send(Batch(0));
  ASSERT_TRUE(Says(1, "F0"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
  FakePublisher second(options);
  ASSERT_TRUE(Subscribed(second));
  second.Send(Batch(7));
  ASSERT_TRUE(CounterIs(1, "ignored_second_publisher_total", 1u));
  EXPECT_NE(StatusOf(1).last_error.find("a second publisher, 127.0.0.1, is connected to tcp://*"),
            std::string::npos)
      << StatusOf(1).last_error;
  first->Send(Batch(1));
  ASSERT_TRUE(Says(1, "F0 F1"));
  first.reset();
  ASSERT_TRUE(CounterIs(1, "disconnects_total", 1u));
  second.SkipTo(0);
  second.Send(Batch(8));
  EXPECT_TRUE(Says(1, "F0 F1 E F0"));
  EXPECT_TRUE(CounterIs(1, "ignored_second_publisher_total", 1u));
}

TEST_F(BoundEndpointTest, StateFollowsTheConnection) {
  const auto options = Connecting();
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://0.0.0.0" + Port(options))));
  const std::string waiting = "no publisher is connected to tcp://0.0.0.0" + Port(options);
  std::string expected;
  for (int life = 0; life < 3; ++life) {
    EXPECT_TRUE(Eventually([&] { return StatusOf(1).last_error == waiting; }));
    auto publisher = std::make_unique<FakePublisher>(options);
    ASSERT_TRUE(Subscribed(*publisher));
    publisher->Send(Batch(static_cast<std::uint64_t>(life)));
    expected += life == 0 ? "F0" : " E F0";
    ASSERT_TRUE(Says(1, expected));
    ASSERT_TRUE(IsIn(1, StreamState::kLive));
    EXPECT_TRUE(Eventually([&] { return StatusOf(1).disconnected_for_ms == -1; }));
    publisher.reset();
    ASSERT_TRUE(IsIn(1, StreamState::kConnecting));
  }
  EXPECT_TRUE(CounterIs(1, "ignored_second_publisher_total", 0u));
}

// What a publisher left in the queue must not make its dead connection the one that is served.
TEST_F(BoundEndpointTest, FramesThatOutliveTheirConnectionLockNobodyOut) {
  const auto options = Connecting();
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://*" + Port(options))));
  auto first = std::make_unique<FakePublisher>(options);
  ASSERT_TRUE(Subscribed(*first));
  first->Send(Batch(0));
  ASSERT_TRUE(Says(1, "F0"));
  FakePublisher second(options);
  ASSERT_TRUE(Subscribed(second));
  sink_.SetFull(true);
  for (int i = 1; i <= 600; ++i) first->Send(Batch(static_cast<std::uint64_t>(i)));
  ASSERT_TRUE(Eventually([&] { return Counter(1, "queue_full_total") > 3; }));
  const std::uint64_t before = Counter(1, "frames_received_total");
  EXPECT_LT(before, 601u);  // The others are in the socket's queue.
  first.reset();
  ASSERT_TRUE(CounterIs(1, "disconnects_total", 1u));
  sink_.SetFull(false);
  ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(1) > 1; }));
  second.Send(Batch(7));
  ASSERT_TRUE(Eventually([&] {
    const std::string said = sink_.Spelled(1);
    return said.size() > 5 && said.substr(said.size() - 5) == " E F0";
  })) << sink_.Spelled(1);
  second.Send(Batch(8));
  EXPECT_TRUE(Eventually([&] { return sink_.Frames(1).back().number == 1; }));
  EXPECT_TRUE(CounterIs(1, "epoch_changes_total", 1u));
}

TEST_F(BoundEndpointTest, APortInUseIsTakenWhenItIsFree) {
  const auto options = Connecting();
  auto squatter_options = options;
  squatter_options.connects = false;
  auto squatter = std::make_unique<FakePublisher>(squatter_options);
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://*" + Port(options))));
  ASSERT_TRUE(Eventually(
      [&] { return StatusOf(1).last_error.find("Address already in use") != std::string::npos; }));
  EXPECT_EQ(StatusOf(1).state, StreamState::kConnecting);
  squatter.reset();
  FakePublisher publisher(options);
  ASSERT_TRUE(Subscribed(publisher));
  publisher.Send(Batch(0));
  EXPECT_TRUE(Says(1, "F0"));
  EXPECT_TRUE(Eventually([&] { return StatusOf(1).last_error.empty(); }));
}

TEST_F(BoundEndpointTest, RegisteredAgainUnderTheSamePort) {
  const auto options = Connecting();
  Open();
  FakePublisher publisher(options);
  for (StreamId stream = 1; stream <= 3; ++stream) {
    ASSERT_TRUE(subscriptions_->Start(MakeSeed(stream, "tcp://*" + Port(options))));
    ASSERT_TRUE(Subscribed(publisher));
    publisher.Send(Batch(stream));
    ASSERT_TRUE(Eventually([&] { return sink_.FrameCount(stream) == 1; }));
    subscriptions_->Stop(stream);
  }
}

TEST_F(BoundEndpointTest, Ipv6BothWays) {
  Open();
  if (!HasIpv6()) {  // then it waits for it, as for any publisher that is not there
    ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://[::1]:5557")));
    EXPECT_TRUE(IsIn(1, StreamState::kConnecting));
    return;
  }
  FakePublisher::Options options;
  options.live_endpoint = options.replay_endpoint = "tcp://[::1]:*";
  FakePublisher bound(options);
  bound.Send(Batch(0));
  ASSERT_TRUE(subscriptions_->Start(SeedOf(1, bound)));
  EXPECT_TRUE(Says(1, "F0"));
  const auto connecting = Connecting("[::1]");
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(2, "tcp://[::]" + Port(connecting))));
  FakePublisher publisher(connecting);
  ASSERT_TRUE(Subscribed(publisher));
  publisher.Send(Batch(0));
  EXPECT_TRUE(Says(2, "F0"));
}

TEST_F(BoundEndpointTest, IpcPathsAreThePublishers) {
  Open();
  const std::string name = "@conductor-endpoint-test-" + std::to_string(getpid());
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "ipc://" + name, "ipc://" + name + "-replay")));
  FakePublisher::Options options;
  options.live_endpoint = "ipc://" + name;
  options.replay_endpoint = "ipc://" + name + "-replay";
  FakePublisher publisher(options);
  publisher.Send(Batch(0));
  EXPECT_TRUE(Says(1, "F0"));
  EXPECT_TRUE(IsIn(1, StreamState::kLive));
}

TEST_F(BoundEndpointTest, AHostThatIsNotKnownYetHoldsNobodyUp) {
  Open();
  ASSERT_TRUE(subscriptions_->Start(MakeSeed(1, "tcp://engine-0.invalid:5557")));
  auto other = MakePublisher(ReplayStyle::kNone);
  ASSERT_TRUE(subscriptions_->Start(SeedOf(2, *other)));
  ASSERT_TRUE(Subscribed(*other));
  other->Send(Batch(0));
  EXPECT_TRUE(Says(2, "F0"));
  EXPECT_TRUE(Eventually([&] { return Counter(1, "connect_retries_total") > 1; }));
  EXPECT_EQ(StatusOf(1).state, StreamState::kConnecting);
  EXPECT_NE(StatusOf(1).last_error.find("tcp://engine-0.invalid:5557"), std::string::npos);
}

}  // namespace
}  // namespace conductor::replay_test
