#include "tools/replay_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/tools/sim_test_util.h"

namespace conductor::enginesim {
namespace {

ReplayRing RingOf(std::uint64_t batches, std::size_t batches_max = 100) {
  ReplayRing ring(batches_max);
  for (std::uint64_t seq = 0; seq < batches; ++seq) {
    ring.Append({seq, std::make_shared<const std::string>("p" + std::to_string(seq))});
  }
  return ring;
}

std::string Numbers(const std::vector<Message>& answer) {
  std::string text;
  for (const Message& message : answer) {
    const std::uint64_t seq = DecodeSeq(message[message.size() - 2]);
    text += (text.empty() ? "" : " ") + (seq == kEndMarkerSeq ? "end" : std::to_string(seq));
  }
  return text;
}

std::string Answer(const ReplayRing& ring, std::uint64_t start, const std::string& mode) {
  return Numbers(ring.Answer(start, ParseReplayMode(mode).value(), ReplayLayout::kSeqPayload, ""));
}

TEST(ReplayRingTest, OldLayoutIsDelimiterSeqPayload) {
  const auto answer = RingOf(1).Answer(0, {}, ReplayLayout::kSeqPayload, "topic");
  EXPECT_EQ(answer,
            (std::vector<Message>{{"", EncodeSeq(0), "p0"}, {"", std::string(8, '\xff'), ""}}));
}

TEST(ReplayRingTest, NewLayoutHasTheTopicButNotAtTheEnd) {
  const auto answer = RingOf(1).Answer(0, {}, ReplayLayout::kTopicSeqPayload, "topic");
  EXPECT_EQ(answer, (std::vector<Message>{{"", "topic", EncodeSeq(0), "p0"},
                                          {"", "", std::string(8, '\xff'), ""}}));
}

TEST(ReplayRingTest, TheOldestBatchesFallOut) {
  const ReplayRing ring = RingOf(6, 3);
  EXPECT_EQ(Answer(ring, 1, "ok"), "3 4 5 end");
  EXPECT_EQ(ring.first(), 3u);
  EXPECT_EQ(ring.last(), 5u);
}

TEST(ReplayRingTest, ARingOfNothingKeepsNothing) {
  EXPECT_EQ(Answer(RingOf(3, 0), 0, "ok"), "end");
  EXPECT_EQ(RingOf(0).first(), std::nullopt);
}

TEST(ReplayRingTest, NumbersMayHaveHoles) {
  ReplayRing ring(10);
  ring.Append({2, std::make_shared<const std::string>("x")});
  ring.Append({9, std::make_shared<const std::string>("y")});
  EXPECT_EQ(Answer(ring, 3, "ok"), "9 end");
  ring.Clear();
  EXPECT_EQ(Answer(ring, 0, "ok"), "end");
}

TEST(ReplayRingTest, FaultyModesAnswerAsToldTo) {
  const ReplayRing ring = RingOf(5);
  EXPECT_EQ(Answer(ring, 1, "late 100"), "1 2 3 4 end");
  EXPECT_EQ(Answer(ring, 1, "cut 2"), "1 2");
  EXPECT_EQ(Answer(ring, 1, "cut 9"), "1 2 3 4");
  EXPECT_EQ(Answer(ring, 1, "cut_end 2"), "1 2 end");
  EXPECT_EQ(Answer(ring, 1, "cut_end 0"), "end");
  EXPECT_EQ(Answer(ring, 1, "never"), "");
  EXPECT_EQ(Answer(ring, 1, "no_end_marker"), "1 2 3 4");
  EXPECT_EQ(Answer(ring, 1, "hole"), "1 2 4 end");
  EXPECT_EQ(Answer(ring, 1, "hole 0"), "2 3 4 end");
  EXPECT_EQ(Answer(ring, 1, "hole 7"), "1 2 3 4 end");
}

TEST(ReplayRingTest, ModeWordsRoundTrip) {
  for (const char* text :
       {"ok", "late 500", "cut 2", "cut_end 0", "never", "no_end_marker", "hole", "hole 1"}) {
    EXPECT_EQ(ToString(ParseReplayMode(text).value()), text);
  }
}

TEST(ReplayRingTest, OtherModesAreRefused) {
  for (const char* text : {"", "slow", "late", "late x", "late -1", "cut", "cut 1 2", "ok 1",
                           "never 2", "hole ", "late 99999999"}) {
    const auto mode = ParseReplayMode(text);
    ASSERT_FALSE(mode) << text;
    EXPECT_EQ(mode.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ReplayRingTest, ARequestIsExactlyThreeFrames) {
  EXPECT_EQ(ReplayRing::ParseRequest({"id", "", EncodeSeq(7)}), 7u);
  EXPECT_EQ(ReplayRing::ParseRequest({"id", "anything", EncodeSeq(7)}), 7u);
  EXPECT_EQ(ReplayRing::ParseRequest({"id", EncodeSeq(7)}), std::nullopt);
  EXPECT_EQ(ReplayRing::ParseRequest({"id", "", EncodeSeq(7), ""}), std::nullopt);
}

TEST(ReplayRingTest, TheStartIsANumberOfAnyLength) {
  EXPECT_EQ(ReplayRing::ParseRequest({"id", "", ""}), 0u);
  EXPECT_EQ(ReplayRing::ParseRequest({"id", "", "\x05"}), 5u);
  EXPECT_EQ(ReplayRing::ParseRequest({"id", "", std::string(4, '\0') + EncodeSeq(9)}), 9u);
  // Above 64 bits: beyond every number there is.
  EXPECT_EQ(ReplayRing::ParseRequest({"id", "", "\x01" + EncodeSeq(9)}), kEndMarkerSeq);
}

}  // namespace
}  // namespace conductor::enginesim
