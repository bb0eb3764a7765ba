// The ZMQ messages around a payload: live frames, replay requests and replay replies. Bytes in,
// views out; no socket. Views point into the caller's parts. Any thread.
//
// Every failure is INVALID_ARGUMENT with one of the words of wire_reason.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/result.h"

namespace conductor {

using ByteView = std::span<const std::uint8_t>;

// Live numbers are below 2^63; all ones marks the end of a replay.
inline constexpr std::uint64_t kFrameSeqMax = (std::uint64_t{1} << 63) - 1;
inline constexpr std::uint64_t kReplayEndSeq = ~std::uint64_t{0};

struct WireFrame {
  ByteView topic;
  std::uint64_t seq = 0;
  ByteView payload;
};

// A message as a SUB socket delivers it: topic, 8 bytes of seq (big-endian), payload.
Result<WireFrame> ParseLiveFrame(std::span<const ByteView> parts);

struct ReplayReply {
  bool end = false;  // the end marker: `frame` has no payload
  WireFrame frame;
};

// A message as a DEALER socket delivers it: delimiter, [topic,] seq, payload. Read from its end:
// the topic frame came with newer vLLM releases.
Result<ReplayReply> ParseReplayReply(std::span<const ByteView> parts);

// The parts a DEALER sends to be answered with every kept batch from `start_seq` on: the empty
// delimiter (without it the publisher stays silent) and the number.
std::array<std::string, 2> BuildReplayRequest(std::uint64_t start_seq);

// A topic frame and what SGLang hides behind its first NUL.
struct Topic {
  std::string_view name;
  std::optional<std::string_view> epoch;        // "sgl-kv-epoch="
  std::optional<std::string_view> snapshot_id;  // "sgl-kv-snapshot="
};

Topic SplitTopic(ByteView topic);

}  // namespace conductor
