// What was lost for good is said for as long as it is true: over restarts from the log and from a
// snapshot, until something really ends it. And after a downtime the life of the publisher is
// checked, not assumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/durability/durability_fixture.h"

namespace conductor::durability {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
using End = ConductorNode::End;

constexpr std::size_t kRing = 5;
constexpr int kSeen = 3;     // numbers 0 to 2
constexpr int kMissed = 10;  // numbers 3 to 12; the ring has the last five
const Ranges kLost = {{3, 7}};

class LostRangesTest : public DurabilityTest {
 protected:
  void StartNode() {
    node_.Start();
    ASSERT_TRUE(IsReady(*node_));
  }
  void Restart() {
    node_.EndAtOnce(End::kKill);
    StartNode();
  }
  // The node is down for longer than the ring reaches back.
  void LoseSome() {
    StartEngines(1, kRing);
    StartNode();
    MustRegister(*node_, 0);
    ServeAll(kSeen);
    ASSERT_TRUE(IsUpToDate(*node_));
    node_.EndAtOnce(End::kKill);
    ServeAll(kMissed);
    StartNode();
    ASSERT_TRUE(IsUpToDate(*node_));
    ASSERT_TRUE(Says(kLost));
  }
  Ranges Lost() { return node_->View("e0")->lost_ranges; }
  std::uint64_t Epoch() { return node_->View("e0")->epoch; }
  StreamState State() { return node_->View("e0")->status.state; }
  ::testing::AssertionResult Says(const Ranges& lost) {
    const StreamState state = lost.empty() ? StreamState::kLive : StreamState::kDegraded;
    if (awaiter_.Await([&] { return Lost() == lost && State() == state; })) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << node_->Describe();
  }
};

TEST_F(LostRangesTest, Bl09DownForLongerThanTheRingIsSaid) {
  LoseSome();
  EXPECT_EQ(Epoch(), 1u);
  EXPECT_THAT(fleet_->publisher(0).stats().replay_starts, Contains(kSeen - 1))
      << "the last applied number is asked for again: is it the same life?";
  EXPECT_THAT(node_->View("e0")->counters, Contains(std::pair(std::string("lost_total"), 5ul)));
  EXPECT_EQ(node_->Metric("stream_lost_ranges"), 1);
  // Kept and caught up, and marked; what was lost is not invented.
  EXPECT_EQ(node_->Ask(Tokens(2)), "e0=12 degraded: e0");
  EXPECT_EQ(node_->Ask(Tokens(5)), "e0=0 degraded: e0");
  EXPECT_EQ(node_->Ask(Tokens(12)), "e0=12 degraded: e0");
}

TEST_F(LostRangesTest, SurvivesRestartsFromTheLogAndFromASnapshot) {
  LoseSome();
  Restart();
  EXPECT_TRUE(Says(kLost));
  for (int i = 0; i < 2; ++i) {
    ServeAll(1);
    ASSERT_TRUE(IsUpToDate(*node_));
    ASSERT_TRUE(node_->service().CreateSnapshot());
  }
  Restart();
  ASSERT_GT(node_->Status().log_first, 4u) << "the record that says it is gone";
  EXPECT_TRUE(Says(kLost));
  EXPECT_THAT(node_->Ask(Tokens(12)), HasSubstr("degraded: e0"));
}

TEST_F(LostRangesTest, IsNotEndedByWhatDoesNotEndIt) {
  LoseSome();
  // More frames, with evictions of everything from before; a publisher that was away.
  ServeAll(30);
  ASSERT_TRUE(IsUpToDate(*node_));
  EXPECT_EQ(node_->Ask(Tokens(12)), "e0=0 degraded: e0");
  fleet_->publisher(0).Down();
  ASSERT_TRUE(awaiter_.Await([&] { return State() == StreamState::kConnecting; }));
  ASSERT_TRUE(fleet_->publisher(0).Up());
  ServeAll(1);
  ASSERT_TRUE(IsUpToDate(*node_));
  EXPECT_TRUE(Says(kLost));
  // Registered again as it is.
  MustRegister(*node_, 0);
  EXPECT_TRUE(Says(kLost));
}

TEST_F(LostRangesTest, IsEndedByAClearOfAll) {
  LoseSome();
  fleet_->engine(0).Clear();
  EXPECT_TRUE(Says({}));
  EXPECT_EQ(node_->Ask(Tokens(12)), "e0=0 ");
  Restart();
  EXPECT_TRUE(Says({}));
}

TEST_F(LostRangesTest, IsEndedByANewLife) {
  LoseSome();
  fleet_->engine(0).Restart();
  ServeAll(2);
  EXPECT_TRUE(Says({}));
  EXPECT_EQ(Epoch(), 2u);
  EXPECT_EQ(node_->Ask(Tokens(12)), "e0=0 ");
  Restart();
  EXPECT_TRUE(Says({}));
}

TEST_F(LostRangesTest, IsEndedByRegisteringAnew) {
  LoseSome();
  ASSERT_TRUE(node_->service().Unregister({"e0", "default", 0}));
  MustRegister(*node_, 0);
  EXPECT_TRUE(Says({}));
  EXPECT_EQ(node_->View("e0")->history_from, 8u) << "what the ring does not reach is said";
  Restart();
  EXPECT_TRUE(Says({}));
  EXPECT_EQ(node_->View("e0")->history_from, 8u);
}

TEST_F(LostRangesTest, IsEndedByADropOfAPublisherThatIsGone) {
  constexpr std::int64_t kHourMs = 3'600'000;
  node_.disconnected_drop_ms = kHourMs;
  LoseSome();
  ASSERT_EQ(node_->Ask(Tokens(12)), "e0=12 degraded: e0");
  fleet_->publisher(0).Down();
  ASSERT_TRUE(awaiter_.Await([&] { return State() == StreamState::kConnecting; }));
  ASSERT_EQ(Lost(), kLost);
  node_->AdvanceStreams(kHourMs);
  EXPECT_TRUE(awaiter_.Await([&] { return Lost().empty(); })) << node_->Describe();
  EXPECT_EQ(State(), StreamState::kConnecting);
  EXPECT_EQ(Epoch(), 1u);
  EXPECT_EQ(node_->Status().blocks, 0u);
  // It comes back as it was: fetched anew, and what its ring does not reach is said otherwise.
  ASSERT_TRUE(fleet_->publisher(0).Up());
  EXPECT_TRUE(Says({}));
  EXPECT_TRUE(awaiter_.Await([&] { return node_->Ask(Tokens(12)) == "e0=12 "; }))
      << node_->Describe();
  EXPECT_EQ(node_->View("e0")->history_from, 8u);
  EXPECT_EQ(node_->Ask(Tokens(2)), "e0=0 ");
  Restart();
  EXPECT_TRUE(Says({}));
}

TEST_F(LostRangesTest, APublisherThatRestartedMeanwhileIsANewLife) {
  StartEngines(1);
  StartBoth();
  RegisterAtBoth(1);
  ServeAll(4);
  ASSERT_TRUE(Same());
  node_.EndAtOnce(End::kKill);
  fleet_->engine(0).Restart();
  ServeAll(9);  // the numbers have overtaken the cursor
  StartNode();
  EXPECT_TRUE(Same());
  EXPECT_EQ(Epoch(), 2u);
  EXPECT_EQ(node_->Ask(Tokens(3)), "e0=0 ");
  EXPECT_EQ(node_->Ask(Tokens(4)), "e0=12 ");
  EXPECT_EQ(Lost(), Ranges{});
}

TEST_F(LostRangesTest, APublisherThatRestartedAndIsIdleIsANewLife) {
  StartEngines(1);
  StartNode();
  MustRegister(*node_, 0);
  ServeAll(4);
  ASSERT_TRUE(IsUpToDate(*node_));
  node_.EndAtOnce(End::kKill);
  fleet_->engine(0).Restart();
  StartNode();
  EXPECT_TRUE(awaiter_.Await([&] { return Epoch() == 2; })) << node_->Describe();
  EXPECT_EQ(node_->Status().blocks, 0u);
  EXPECT_EQ(node_->Ask(Tokens(3)), "e0=0 ");
}

}  // namespace
}  // namespace conductor::durability
