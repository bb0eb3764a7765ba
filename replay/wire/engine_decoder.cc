#include "replay/wire/engine_decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "replay/wire/event_decoder.h"
#include "replay/wire/msgpack_reader.h"
#include "replay/wire/wire_reason.h"

namespace conductor {
namespace {

// Events reserved on the word of a header; longer batches grow as they are read.
constexpr std::uint32_t kReserveMax = 1u << 12;

// Saturates: every finite number is accepted, and only its microseconds are kept.
std::int64_t ToMicroseconds(double seconds) {
  constexpr double kLimit = 9.0e18;
  return std::llround(std::clamp(seconds * 1e6, -kLimit, kLimit));
}

// One payload, front to back. `batch_` grows; the first refusal ends it.
class BatchDecoder {
 public:
  BatchDecoder(PublisherType publisher, std::span<const std::uint8_t> payload,
               const WireLimits& limits)
      : payload_(payload),
        limits_(limits),
        reader_(payload),
        events_(publisher, &reader_, limits.items_max) {}

  Result<WireBatch> Run() {
    switch (reader_.PeekType()) {
      case MsgpackType::kArray:
        CONDUCTOR_RETURN_IF_ERROR(ReadArrayEnvelope());
        break;
      case MsgpackType::kMap:
        CONDUCTOR_RETURN_IF_ERROR(ReadMapEnvelope());
        break;
      default:
        return Refuse(wire_reason::kEnvelopeType, "envelope", "an array or a map");
    }
    if (!reader_.AtEnd()) return Malformed(MsgpackFault::kTrailing);
    return std::move(batch_);
  }

 private:
  Status ReadArrayEnvelope() {
    std::uint32_t slots = 0;
    const MsgpackFault fault = reader_.TryArrayHeader(&slots);
    if (fault != MsgpackFault::kNone) return Malformed(fault);
    if (slots < 2) return Refuse(wire_reason::kEnvelopeArity, "envelope", "at least 2 slots");
    CONDUCTOR_RETURN_IF_ERROR(ReadTimestamp());
    CONDUCTOR_RETURN_IF_ERROR(ReadEvents());
    if (slots > 2) CONDUCTOR_RETURN_IF_ERROR(ReadRank());
    for (std::uint32_t slot = 3; slot < slots; ++slot) CONDUCTOR_RETURN_IF_ERROR(Skip());
    return {};
  }

  // Of a commit that was never released; its keys come in any order.
  Status ReadMapEnvelope() {
    std::uint32_t pairs = 0;
    const MsgpackFault fault = reader_.TryMapHeader(&pairs);
    if (fault != MsgpackFault::kNone) return Malformed(fault);
    constexpr const char* kKey = wire_reason::kEnvelopeKey;
    if (pairs > kMapKeysMax) return Refuse(kKey, "envelope", "no more than kMapKeysMax keys");
    std::array<std::string_view, kMapKeysMax> keys;
    bool ts_seen = false;
    bool events_seen = false;
    bool rank_seen = false;
    for (std::uint32_t i = 0; i < pairs; ++i) {
      if (reader_.TryText(&keys[i]) != MsgpackFault::kNone) {
        return Refuse(kKey, "envelope key", "UTF-8 text");
      }
      if (std::find(keys.begin(), keys.begin() + i, keys[i]) != keys.begin() + i) {
        return Refuse(kKey, "envelope key", "each key once");
      }
      if (keys[i] == "ts") {
        ts_seen = true;
        CONDUCTOR_RETURN_IF_ERROR(ReadTimestamp());
      } else if (keys[i] == "events") {
        events_seen = true;
        CONDUCTOR_RETURN_IF_ERROR(ReadEvents());
      } else if (keys[i] == "data_parallel_rank" || keys[i] == "attn_dp_rank") {
        if (std::exchange(rank_seen, true)) return Refuse(kKey, "envelope key", "one rank");
        CONDUCTOR_RETURN_IF_ERROR(ReadRank());
      } else {
        CONDUCTOR_RETURN_IF_ERROR(Skip());
      }
    }
    if (!ts_seen || !events_seen) return Refuse(kKey, "envelope", "the keys ts and events");
    return {};
  }

  Status ReadTimestamp() {
    double seconds = 0;
    if (reader_.TryDouble(&seconds) != MsgpackFault::kNone) {
      const bool ext = reader_.PeekType() == MsgpackType::kExt;
      return Refuse(ext ? wire_reason::kExtType : wire_reason::kTsType, "ts", "a number");
    }
    if (!std::isfinite(seconds)) {
      return Refuse(wire_reason::kTsNotFinite, "ts", "a finite number");
    }
    batch_.publisher_time_us = ToMicroseconds(seconds);
    return {};
  }

  Status ReadRank() {
    if (reader_.TryNil() == MsgpackFault::kNone) return {};
    MsgpackInteger rank;
    if (reader_.TryInteger(&rank) != MsgpackFault::kNone || rank.negative || !rank.FitsInt64()) {
      return Refuse(wire_reason::kDpRankType, "dp rank", "nil or a non-negative int64");
    }
    batch_.dp_rank = rank.AsInt64();
    return {};
  }

  Status ReadEvents() {
    std::uint32_t count = 0;
    if (reader_.TryArrayHeader(&count) != MsgpackFault::kNone) {
      return Refuse(wire_reason::kEventsNotArray, "events", "an array");
    }
    if (count > limits_.events_max) {
      return Refuse(wire_reason::kBatchLimit, "events",
                    "at most " + std::to_string(limits_.events_max) + " events");
    }
    batch_.events.reserve(std::min(count, kReserveMax));
    for (std::uint32_t i = 0; i < count; ++i) CONDUCTOR_RETURN_IF_ERROR(ReadEvent(i));
    return {};
  }

  Status ReadEvent(std::uint32_t index) {
    const std::size_t start = reader_.Offset();
    const DecodeFault fault = events_.Decode(&batch_.events.emplace_back());
    if (!fault) {
      batch_.events.back().index = index;
      return {};
    }
    batch_.events.pop_back();
    reader_.Seek(start);
    const MsgpackFault malformed = reader_.TrySkip();
    if (malformed != MsgpackFault::kNone) return Malformed(malformed);
    if (events_.LimitExceeded()) {
      return Refuse(wire_reason::kBatchLimit, "block_hashes and extra_keys",
                    "at most " + std::to_string(limits_.items_max) + " in a batch");
    }
    ++batch_.rejected_counts[static_cast<std::size_t>(fault.fault)];
    if (batch_.rejected.size() < kRejectedDetailsMax) {
      batch_.rejected.push_back({index, fault.fault, Describe(fault, index)});
    }
    return {};
  }

  Status Skip() {
    const MsgpackFault fault = reader_.TrySkip();
    if (fault != MsgpackFault::kNone) return Malformed(fault);
    return {};
  }

  // What the bytes mean is wrong; but when they are malformed as well, that is the reason.
  tl::unexpected<Error> Refuse(const char* reason, std::string_view what,
                               std::string_view expected) const {
    MsgpackReader whole(payload_);
    const MsgpackFault malformed = whole.TrySkip();
    if (malformed != MsgpackFault::kNone) return Malformed(malformed);
    std::string message = "payload, byte " + std::to_string(reader_.Offset()) + ": ";
    message.append(what).append(": expected ").append(expected);
    message.append(", found ").append(ToString(reader_.PeekType()));
    return tl::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message), reason, "", -1});
  }

  tl::unexpected<Error> Malformed(MsgpackFault fault) const {
    std::string message = "payload of " + std::to_string(payload_.size()) +
                          " bytes, value at byte " + std::to_string(reader_.Offset()) +
                          ": expected well-formed MessagePack, got ";
    message.append(ToString(fault));
    return tl::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message),
                                std::string(ToString(fault)), "", -1});
  }

  const std::span<const std::uint8_t> payload_;
  const WireLimits limits_;
  MsgpackReader reader_;
  EventDecoder events_;
  WireBatch batch_;
};

}  // namespace

Result<WireBatch> DecodeEnginePayload(PublisherType publisher,
                                      std::span<const std::uint8_t> payload,
                                      const WireLimits& limits) {
  if (publisher != PublisherType::kVllm && publisher != PublisherType::kSglang) {
    return tl::unexpected(Error{ErrorCode::kInvalidArgument,
                                "engine payload: expected vLLM or SGLang, got a store's stream",
                                wire_reason::kPublisherType, "", -1});
  }
  if (payload.size() > limits.payload_bytes_max) {
    return tl::unexpected(Error{ErrorCode::kInvalidArgument,
                                "payload: expected at most " +
                                    std::to_string(limits.payload_bytes_max) + " bytes, got " +
                                    std::to_string(payload.size()),
                                wire_reason::kPayloadSize, "", -1});
  }
  return BatchDecoder(publisher, payload, limits).Run();
}

}  // namespace conductor
