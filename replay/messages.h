// ZMQ messages as this room uses them: the parts a socket gave to a frame that owns its payload and
// knows its fingerprint, or the reason why not. No socket here. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "replay/received_frame.h"
#include "src/result.h"

namespace conductor {

using MessagePart = std::span<const std::uint8_t>;

// XXH3-64, part of the log format (Frame::fingerprint).
std::uint64_t FingerprintPayload(MessagePart payload);

struct LiveMessage {
  std::string topic;  // the part before the first NUL
  std::string epoch;  // what SGLang says behind it; empty: nothing
  ReceivedFrame frame;
};
Result<LiveMessage> ReadLiveMessage(std::span<const MessagePart> parts);

struct ReplayMessage {
  bool end = false;  // the end marker: no frame
  ReceivedFrame frame;
};
Result<ReplayMessage> ReadReplayMessage(std::span<const MessagePart> parts);

// What a DEALER sends to get every kept batch from `start` on.
std::array<std::string, 2> ReplayRequest(std::uint64_t start);

}  // namespace conductor
