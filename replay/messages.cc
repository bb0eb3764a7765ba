#include "replay/messages.h"

#include "replay/wire/frame.h"
#include "src/hash/xxh3.h"

namespace conductor {
namespace {

// `parsed` is wire/frame.h's view of the message.
template <typename Parsed>
ReceivedFrame Own(const Parsed& parsed) {
  ReceivedFrame frame;
  frame.number = parsed.seq;
  frame.fingerprint = FingerprintPayload(parsed.payload);
  frame.payload.assign(reinterpret_cast<const char*>(parsed.payload.data()), parsed.payload.size());
  return frame;
}

}  // namespace

std::uint64_t FingerprintPayload(MessagePart payload) {
  return Xxh3(payload);
}

Result<LiveMessage> ReadLiveMessage(std::span<const MessagePart> parts) {
  const auto parsed = ParseLiveFrame(parts);
  if (!parsed) return tl::unexpected(parsed.error());
  const Topic topic = SplitTopic(parsed->topic);
  return LiveMessage{std::string(topic.name), std::string(topic.epoch.value_or("")), Own(*parsed)};
}

Result<ReplayMessage> ReadReplayMessage(std::span<const MessagePart> parts) {
  const auto parsed = ParseReplayReply(parts);
  if (!parsed) return tl::unexpected(parsed.error());
  if (parsed->end) return ReplayMessage{true, {}};
  return ReplayMessage{false, Own(parsed->frame)};
}

std::array<std::string, 2> ReplayRequest(std::uint64_t start) {
  return BuildReplayRequest(start);
}

}  // namespace conductor
