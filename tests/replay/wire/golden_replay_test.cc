// Every replay transcript of tests/golden/frames_visible.json: requests and replies, to the byte.
#include <gtest/gtest.h>

#include "replay/wire/frame.h"
#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using nlohmann::json;
using wire_test::FromHex;

constexpr std::size_t kTranscripts = 9;

std::vector<wire_test::Bytes> Frames(const json& hex_frames) {
  std::vector<wire_test::Bytes> frames;
  for (const json& frame : hex_frames) frames.push_back(FromHex(frame.get<std::string>()));
  return frames;
}

std::uint64_t BigEndian(const wire_test::Bytes& bytes) {
  std::uint64_t value = 0;
  for (auto byte : bytes) value = value << 8 | byte;
  return value;
}

TEST(GoldenReplayTest, RequestsAreBuiltAsThePublisherWantsThem) {
  const json golden = wire_test::LoadGolden("frames_visible.json");
  ASSERT_EQ(golden["replay_count"].get<std::size_t>(), kTranscripts);
  ASSERT_EQ(golden["replay"].size(), kTranscripts);
  std::size_t equal = 0;
  std::size_t unanswered = 0;
  std::size_t short_number = 0;
  for (const json& transcript : golden["replay"]) {
    SCOPED_TRACE(transcript["name"].get<std::string>());
    // What reached the ROUTER: there a REQ socket's delimiter has been added.
    const auto routed = Frames(transcript["router_saw_after_identity"]);
    const auto ours = BuildReplayRequest(BigEndian(routed.back()));
    ASSERT_EQ(ours[0].size(), 0u);
    ASSERT_EQ(ours[1].size(), 8u);
    if (routed.size() == 1) {
      // The shape we never send: nobody answers it.
      EXPECT_TRUE(transcript["response_messages"].empty());
      ++unanswered;
      continue;
    }
    EXPECT_TRUE(routed[0].empty());
    if (routed[1].size() != 8) {
      ++short_number;  // accepted by publishers, never sent by us
      continue;
    }
    EXPECT_EQ(wire_test::Bytes(ours[1].begin(), ours[1].end()), routed[1]);
    ++equal;
  }
  EXPECT_EQ(equal, 7u);
  EXPECT_EQ(unanswered, 1u);
  EXPECT_EQ(short_number, 1u);
}

TEST(GoldenReplayTest, RepliesAreReadAsPublished) {
  const json golden = wire_test::LoadGolden("frames_visible.json");
  std::size_t transcripts = 0;
  for (const json& transcript : golden["replay"]) {
    SCOPED_TRACE(transcript["name"].get<std::string>());
    ++transcripts;
    const auto publisher = ParsePublisherType(transcript["publisher_type"].get<std::string>());
    ASSERT_TRUE(publisher);
    json seqs = json::array();
    bool ended = false;
    for (const json& message : transcript["response_messages"]) {
      EXPECT_FALSE(ended) << "a reply after the end marker";
      auto frames = Frames(message);
      // A REQ socket has taken the delimiter that a DEALER delivers.
      if (transcript["client_socket"] == "REQ") frames.insert(frames.begin(), wire_test::Bytes{});
      const std::vector<ByteView> parts(frames.begin(), frames.end());
      const auto reply = ParseReplayReply(parts);
      ASSERT_TRUE(reply) << reply.error().message;
      EXPECT_EQ(reply->frame.topic.empty(), parts.size() == 3 || parts[1].empty());
      if (reply->end) {
        ended = true;
        continue;
      }
      seqs.push_back(std::to_string(reply->frame.seq));
      const auto batch = DecodeEnginePayload(*publisher, reply->frame.payload);
      ASSERT_TRUE(batch) << batch.error().message;
      EXPECT_EQ(batch->events.size(), 1u);
    }
    EXPECT_EQ(seqs, transcript["replayed_seqs"]);
    EXPECT_EQ(ended, transcript["ended_by"] == "end_marker");
  }
  EXPECT_EQ(transcripts, kTranscripts);
}

}  // namespace
}  // namespace conductor
