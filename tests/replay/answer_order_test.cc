// An answer and live frames that came before it wait in two sockets: which one is read first.
#include <gtest/gtest.h>

#include "tests/replay/driven_reader.h"

namespace conductor::replay_test {
namespace {

class AnswerOrderTest : public DrivenReaderTest {};

TEST_F(AnswerOrderTest, LiveFramesThatAreThereAreNotLostToAShortRing) {
  FakePublisher::Options options;
  options.ring_max = 10;
  FakePublisher publisher(options);
  OpenReader(publisher);
  ASSERT_TRUE(Subscribed(publisher));
  publisher.Send(Batch(0));
  ASSERT_TRUE(SaysInTurns("F0"));

  // More than two turns read, behind a number that is missing.
  constexpr std::uint64_t kLast = 2 * kWaitingFramesPerTurnMax + 1'000;
  publisher.Send(Batch(1), /*drop=*/true);
  for (std::uint64_t number = 2; number <= kLast; ++number) publisher.Send(Batch(number));
  ASSERT_TRUE(LiveHasNews());
  const std::size_t asked = publisher.requests().size();
  reader_->Turn(kNowMs);
  ASSERT_TRUE(Eventually([&] { return publisher.requests().size() > asked; }));
  ASSERT_TRUE(ReplayHasNews());
  ASSERT_TRUE(Eventually([&] {
    TurnAt(kNowMs);
    return sink_.FrameCount(kStream) == kLast;
  }));
  EXPECT_EQ(ReaderCounter("lost_numbers_total"), 1u);
}

}  // namespace
}  // namespace conductor::replay_test
