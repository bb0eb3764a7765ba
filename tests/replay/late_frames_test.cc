// A connection that breaks and is back before anything is read: what the old one had queued.
#include <gtest/gtest.h>

#include <utility>

#include "tests/replay/driven_reader.h"

namespace conductor::replay_test {
namespace {

class LateFramesTest : public DrivenReaderTest {
 protected:
  void SetUp() override {
    DrivenReaderTest::SetUp();
    OpenReader(*publisher_);
    ASSERT_TRUE(Subscribed(*publisher_));
    ASSERT_TRUE(SaysInTurns(""));
    for (std::uint64_t number = 0; number < 3; ++number) publisher_->Send(Batch(number));
    ASSERT_TRUE(SaysInTurns("F0 F1 F2"));
    ASSERT_TRUE(Eventually([&] {
      TurnAt(kNowMs);
      return reader_->report()->Read(kNowMs).state == StreamState::kLive;
    }));
    // The process says one thing more, which nobody reads before another one is there.
    publisher_->Send(Batch(3));
    ASSERT_TRUE(LiveHasNews());
    publisher_ = FakePublisher::Restart(std::move(publisher_));
  }
  ::testing::AssertionResult Connected() {
    return Eventually([&] { return publisher_->ConnectionSeen(); });
  }

  std::unique_ptr<FakePublisher> publisher_ = MakePublisher();
};

TEST_F(LateFramesTest, AProcessThatDoesTheSameWorkIsFoundNew) {
  for (std::uint64_t number = 0; number < 2; ++number) {
    publisher_->Send(Batch(number), /*drop=*/true);
  }
  ASSERT_TRUE(Connected());
  EXPECT_TRUE(SaysInTurns("F0 F1 F2 E F0 F1"));
}

TEST_F(LateFramesTest, AnIdleProcessIsFoundNew) {
  ASSERT_TRUE(Connected());
  EXPECT_TRUE(SaysInTurns("F0 F1 F2 E"));
}

TEST_F(LateFramesTest, WhatTheNewConnectionSaysFollows) {
  publisher_->Send(Batch(10), /*drop=*/true);
  ASSERT_TRUE(Connected());
  ASSERT_TRUE(SaysInTurns("F0 F1 F2 E F0"));
  ASSERT_TRUE(Eventually([&] {
    TurnAt(kNowMs);
    return publisher_->SubscriberSeen();
  }));
  publisher_->Send(Batch(11));
  EXPECT_TRUE(SaysInTurns("F0 F1 F2 E F0 F1"));
}

}  // namespace
}  // namespace conductor::replay_test
