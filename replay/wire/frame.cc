#include "replay/wire/frame.h"

#include "replay/wire/wire_limits.h"
#include "replay/wire/wire_reason.h"

namespace conductor {
namespace {

constexpr std::size_t kSeqBytes = 8;
constexpr std::string_view kEpochPrefix = "sgl-kv-epoch=";
constexpr std::string_view kSnapshotPrefix = "sgl-kv-snapshot=";

tl::unexpected<Error> Refuse(const char* reason, std::string message) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message), reason, "", -1});
}

Result<std::uint64_t> ParseSeq(ByteView part) {
  if (part.size() != kSeqBytes) {
    return Refuse(wire_reason::kSeqLength,
                  "frame: sequence number: expected 8 bytes, got " + std::to_string(part.size()));
  }
  std::uint64_t seq = 0;
  for (std::uint8_t byte : part) seq = seq << 8 | byte;
  return seq;
}

Status CheckSeqAndTopic(const WireFrame& frame) {
  if (frame.seq > kFrameSeqMax) {
    return Refuse(wire_reason::kSeqRange, "frame: sequence number: expected less than 2^63, got " +
                                              std::to_string(frame.seq));
  }
  if (frame.topic.size() > kTopicBytesMax) {
    return Refuse(wire_reason::kTopicLength, "frame: topic: expected at most " +
                                                 std::to_string(kTopicBytesMax) + " bytes, got " +
                                                 std::to_string(frame.topic.size()));
  }
  return {};
}

}  // namespace

Result<WireFrame> ParseLiveFrame(std::span<const ByteView> parts) {
  if (parts.size() != 3) {
    return Refuse(wire_reason::kFrameCount,
                  "live message: expected 3 frames, got " + std::to_string(parts.size()));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t seq, ParseSeq(parts[1]));
  const WireFrame frame{parts[0], seq, parts[2]};
  CONDUCTOR_RETURN_IF_ERROR(CheckSeqAndTopic(frame));
  return frame;
}

Result<ReplayReply> ParseReplayReply(std::span<const ByteView> parts) {
  if (parts.size() != 3 && parts.size() != 4) {
    return Refuse(wire_reason::kFrameCount,
                  "replay reply: expected 3 or 4 frames, got " + std::to_string(parts.size()));
  }
  if (!parts[0].empty()) {
    return Refuse(wire_reason::kDelimiter,
                  "replay reply: delimiter: expected an empty frame, got " +
                      std::to_string(parts[0].size()) + " bytes");
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t seq, ParseSeq(parts[parts.size() - 2]));
  ReplayReply reply;
  reply.frame = {parts.size() == 4 ? parts[1] : ByteView{}, seq, parts.back()};
  reply.end = seq == kReplayEndSeq && parts.back().empty();
  if (!reply.end) CONDUCTOR_RETURN_IF_ERROR(CheckSeqAndTopic(reply.frame));
  return reply;
}

std::array<std::string, 2> BuildReplayRequest(std::uint64_t start_seq) {
  std::string start(kSeqBytes, '\0');
  for (std::size_t i = 0; i < kSeqBytes; ++i) {
    start[i] = static_cast<char>(start_seq >> (8 * (kSeqBytes - 1 - i)) & 0xff);
  }
  return {std::string(), std::move(start)};
}

Topic SplitTopic(ByteView topic) {
  std::string_view rest(reinterpret_cast<const char*>(topic.data()), topic.size());
  Topic result;
  bool first = true;
  for (;;) {
    const std::size_t end = rest.find('\0');
    const std::string_view piece = rest.substr(0, end);
    if (first) {
      result.name = piece;
    } else if (piece.starts_with(kEpochPrefix) && !result.epoch) {
      result.epoch = piece.substr(kEpochPrefix.size());
    } else if (piece.starts_with(kSnapshotPrefix) && !result.snapshot_id) {
      result.snapshot_id = piece.substr(kSnapshotPrefix.size());
    }
    if (end == std::string_view::npos) return result;
    rest.remove_prefix(end + 1);
    first = false;
  }
}

}  // namespace conductor
