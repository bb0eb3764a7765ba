#include "replay/wire/frame.h"

#include <gtest/gtest.h>

#include "replay/wire/wire_limits.h"
#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::FromHex;
using wire_test::ReasonOf;

constexpr char kSeven[] = "0000000000000007";
constexpr char kEnd[] = "ffffffffffffffff";

Result<WireFrame> Live(std::vector<std::string> hex_parts) {
  std::vector<wire_test::Bytes> parts;
  for (const auto& part : hex_parts) parts.push_back(FromHex(part));
  const std::vector<ByteView> views(parts.begin(), parts.end());
  return ParseLiveFrame(views);
}

Result<ReplayReply> Reply(std::vector<std::string> hex_parts) {
  std::vector<wire_test::Bytes> parts;
  for (const auto& part : hex_parts) parts.push_back(FromHex(part));
  const std::vector<ByteView> views(parts.begin(), parts.end());
  return ParseReplayReply(views);
}

std::string TextOf(std::optional<std::string_view> text) {
  return text ? std::string(*text) : "(none)";
}

TEST(LiveFrameTest, ThreePartsAreTopicNumberPayload) {
  const auto topic = FromHex("6b76");
  const auto seq = FromHex(kSeven);
  const auto payload = FromHex("9000");
  const std::vector<ByteView> parts = {topic, seq, payload};
  const auto frame = ParseLiveFrame(parts);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->seq, 7u);
  EXPECT_EQ(frame->topic.data(), topic.data());
  EXPECT_EQ(frame->payload.data(), payload.data());
}

TEST(LiveFrameTest, LargestNumberIsAccepted) {
  const auto frame = Live({"", "7fffffffffffffff", ""});
  EXPECT_EQ(ReasonOf(frame), "accepted");
}

TEST(LiveFrameTest, NumbersFromTwoToThe63AreRefused) {
  EXPECT_EQ(ReasonOf(Live({"", "8000000000000000", "90"})), "seq_range");
  EXPECT_EQ(ReasonOf(Live({"", kEnd, ""})), "seq_range");
}

TEST(LiveFrameTest, NumberMustHaveEightBytes) {
  EXPECT_EQ(ReasonOf(Live({"", "", "90"})), "seq_length");
  EXPECT_EQ(ReasonOf(Live({"", "00000000000007", "90"})), "seq_length");
  EXPECT_EQ(ReasonOf(Live({"", "000000000000000007", "90"})), "seq_length");
}

TEST(LiveFrameTest, OtherPartCountsAreRefused) {
  EXPECT_EQ(ReasonOf(Live({})), "frame_count");
  EXPECT_EQ(ReasonOf(Live({"90"})), "frame_count");
  EXPECT_EQ(ReasonOf(Live({kSeven, "90"})), "frame_count");
  EXPECT_EQ(ReasonOf(Live({"", "", kSeven, "90"})), "frame_count");
}

TEST(LiveFrameTest, TopicHasALimit) {
  EXPECT_EQ(ReasonOf(Live({std::string(2 * kTopicBytesMax, '6'), kSeven, "90"})), "accepted");
  EXPECT_EQ(ReasonOf(Live({std::string(2 * kTopicBytesMax + 2, '6'), kSeven, "90"})),
            "topic_length");
}

TEST(ReplayReplyTest, OldShapeHasNoTopic) {
  const auto reply = Reply({"", kSeven, "90"});
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->end);
  EXPECT_EQ(reply->frame.seq, 7u);
  EXPECT_TRUE(reply->frame.topic.empty());
}

TEST(ReplayReplyTest, NewShapeHasATopic) {
  const auto reply = Reply({"", "6b76", kSeven, "90"});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->frame.seq, 7u);
  EXPECT_EQ(reply->frame.topic.size(), 2u);
}

TEST(ReplayReplyTest, EndMarkerOfEveryShape) {
  EXPECT_TRUE(Reply({"", kEnd, ""})->end);
  EXPECT_TRUE(Reply({"", "", kEnd, ""})->end);
  EXPECT_TRUE(Reply({"", "6b76", kEnd, ""})->end);
}

TEST(ReplayReplyTest, EndNumberWithAPayloadIsNoEnd) {
  EXPECT_EQ(ReasonOf(Reply({"", kEnd, "90"})), "seq_range");
}

TEST(ReplayReplyTest, EmptyPayloadAloneIsNoEnd) {
  const auto reply = Reply({"", kSeven, ""});
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->end);
}

TEST(ReplayReplyTest, WrongShapesAreRefused) {
  EXPECT_EQ(ReasonOf(Reply({})), "frame_count");
  EXPECT_EQ(ReasonOf(Reply({kSeven, "90"})), "frame_count");
  EXPECT_EQ(ReasonOf(Reply({"", "", "", kSeven, "90"})), "frame_count");
  EXPECT_EQ(ReasonOf(Reply({"6b76", kSeven, "90"})), "delimiter");
  EXPECT_EQ(ReasonOf(Reply({"", "07", "90"})), "seq_length");
  EXPECT_EQ(ReasonOf(Reply({"", "8000000000000000", "90"})), "seq_range");
}

TEST(ReplayRequestTest, NumberIsBigEndian) {
  const auto request = BuildReplayRequest(0x0102030405060708u);
  EXPECT_EQ(request[0], "");
  EXPECT_EQ(request[1], "\x01\x02\x03\x04\x05\x06\x07\x08");
}

TEST(TopicTest, PlainTopicIsItsName) {
  const auto topic = SplitTopic(wire_test::AsBytes("kv@10.0.0.1@model"));
  EXPECT_EQ(topic.name, "kv@10.0.0.1@model");
  EXPECT_EQ(TextOf(topic.epoch), "(none)");
  EXPECT_EQ(TextOf(topic.snapshot_id), "(none)");
  EXPECT_EQ(SplitTopic({}).name, "");
}

TEST(TopicTest, EpochAndSnapshotFollowTheFirstNul) {
  const std::string text("kv\0sgl-kv-epoch=0f0f\0sgl-kv-snapshot=abcd", 42);
  const auto topic = SplitTopic(wire_test::AsBytes(text));
  EXPECT_EQ(topic.name, "kv");
  EXPECT_EQ(TextOf(topic.epoch), "0f0f");
  EXPECT_EQ(TextOf(topic.snapshot_id), "abcd");
}

TEST(TopicTest, ForeignSuffixIsNoEpoch) {
  const std::string text("kv\0other=1\0", 11);
  const auto topic = SplitTopic(wire_test::AsBytes(text));
  EXPECT_EQ(topic.name, "kv");
  EXPECT_EQ(TextOf(topic.epoch), "(none)");
}

}  // namespace
}  // namespace conductor
