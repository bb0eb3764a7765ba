// Live messages and replay replies, as a socket delivers them.
// Property: a message is refused by name, or it is the end marker, or its number and payload are
// exactly the last two parts; a live message and the same message in a reply are read alike.
//
// Input: messages, separated; of each the parts, separated.
#include "fuzz/golden.h"
#include "fuzz/target.h"
#include "replay/messages.h"
#include "replay/wire/frame.h"
#include "replay/wire/wire_limits.h"

namespace conductor::fuzz {
namespace {

std::string Number(std::uint64_t number) {
  return BuildReplayRequest(number)[1];
}

void RequireTopic(ByteView topic) {
  const Topic split = SplitTopic(topic);
  Require(split.name.find('\0') == std::string_view::npos, "a topic's name ends before a NUL");
  Require(AsText(topic).starts_with(split.name), "a topic begins with its name");
  for (const auto& piece : {split.epoch, split.snapshot_id}) {
    if (!piece) continue;
    Require(piece->data() >= AsText(topic).data() &&
                piece->data() + piece->size() <= AsText(topic).data() + topic.size(),
            "what is hidden in a topic is a piece of it");
  }
}

void RequireFrame(const WireFrame& frame, std::span<const Bytes> parts) {
  const Bytes number = parts[parts.size() - 2];
  Require(frame.seq <= kFrameSeqMax, "a number is in range");
  Require(Number(frame.seq) == AsText(number), "the number is the last part but one");
  Require(
      frame.payload.data() == parts.back().data() && frame.payload.size() == parts.back().size(),
      "the payload is the last part");
  Require(frame.topic.size() <= kTopicBytesMax, "a topic is not long");
  RequireTopic(frame.topic);
}

void RequireNamed(const Error& error) {
  Require(
      error.code == ErrorCode::kInvalidArgument && !error.reason.empty() && !error.message.empty(),
      "a refusal is named");
}

void RunReply(std::span<const Bytes> parts) {
  const auto reply = ParseReplayReply(parts);
  const auto message = ReadReplayMessage(parts);
  Require(reply.has_value() == message.has_value(), "both readers of a reply agree");
  if (!reply) return RequireNamed(reply.error());
  Require(parts.front().empty(), "a reply begins with its delimiter");
  Require(reply->end == message->end, "both readers of a reply agree");
  if (reply->end) {
    const Bytes number = parts[parts.size() - 2];
    Require(parts.back().empty() && AsText(number) == Number(kReplayEndSeq),
            "the end marker is all ones and empty");
    return;
  }
  RequireFrame(reply->frame, parts);
  Require(message->frame.number == reply->frame.seq &&
              message->frame.payload == AsText(reply->frame.payload) &&
              message->frame.fingerprint == FingerprintPayload(reply->frame.payload),
          "a received frame owns what was read");
}

void RunLive(std::span<const Bytes> parts) {
  const auto frame = ParseLiveFrame(parts);
  const auto message = ReadLiveMessage(parts);
  Require(frame.has_value() == message.has_value(), "both readers of a live message agree");
  if (!frame) RequireNamed(frame.error());
  if (frame) {
    RequireFrame(*frame, parts);
    Require(message->topic == SplitTopic(frame->topic).name, "the topic is its name");
  }
  if (parts.size() != 3) return;
  const std::vector<Bytes> replayed = {Bytes(), parts[0], parts[1], parts[2]};
  const auto reply = ParseReplayReply(replayed);
  Require(frame.has_value() == (reply && !reply->end), "a frame is the same live and replayed");
}

}  // namespace

void RunInput(Bytes input) {
  for (const Bytes message : Split(input, kMessageSeparator)) {
    const std::vector<Bytes> parts = Split(message, kPartSeparator);
    RunReply(parts);
    RunLive(parts);
  }
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const auto& messages : LoadGoldenReplays()) {
    std::vector<std::string> joined;
    for (const Message& message : messages) joined.push_back(Join(message, kPartSeparator));
    seeds.push_back(Join(joined, kMessageSeparator));
    seeds.insert(seeds.end(), joined.begin(), joined.end());
  }
  for (const GoldenFrame& frame : LoadGoldenFrames()) {
    if (frame.parts.size() != 3 || frame.parts[2].size() > 200) continue;
    seeds.push_back(Join(frame.parts, kPartSeparator));
  }
  using std::string_literals::operator""s;
  const std::string topic = "kv-events\0sgl-kv-epoch=0f3a\0sgl-kv-snapshot=b-1"s;
  seeds.push_back(Join({topic, Number(7), "\x90"}, kPartSeparator));
  return seeds;
}

}  // namespace conductor::fuzz
