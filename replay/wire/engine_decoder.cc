#include "replay/wire/engine_decoder.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "replay/wire/event_decoder.h"
#include "replay/wire/payload_reader.h"

namespace conductor {
namespace {

// Saturates: every finite number is accepted, and only its microseconds are kept.
std::int64_t ToMicroseconds(double seconds) {
  constexpr double kLimit = 9.0e18;
  return std::llround(std::clamp(seconds * 1e6, -kLimit, kLimit));
}

// `batch_` grows; the first refusal ends it.
class EngineBatchDecoder {
 public:
  EngineBatchDecoder(PublisherType publisher, std::span<const std::uint8_t> payload,
                     const WireLimits& limits)
      : payload_(payload, limits),
        events_(publisher, &payload_.reader(), limits.items_max, &batch_.extra_keys) {}

  Result<WireBatch> Run() {
    CONDUCTOR_RETURN_IF_ERROR(payload_.CheckSize());
    switch (payload_.reader().PeekType()) {
      case MsgpackType::kArray:
        CONDUCTOR_RETURN_IF_ERROR(ReadArrayEnvelope());
        break;
      case MsgpackType::kMap:
        CONDUCTOR_RETURN_IF_ERROR(ReadMapEnvelope());
        break;
      default:
        return payload_.Refuse(wire_reason::kEnvelopeType, "envelope", "an array or a map");
    }
    CONDUCTOR_RETURN_IF_ERROR(payload_.CheckEnd());
    return std::move(batch_);
  }

 private:
  Status ReadArrayEnvelope() {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::uint32_t slots, payload_.ReadEnvelopeSlots());
    CONDUCTOR_RETURN_IF_ERROR(ReadTimestamp());
    CONDUCTOR_RETURN_IF_ERROR(ReadEvents());
    if (slots > 2) CONDUCTOR_RETURN_IF_ERROR(ReadRank());
    for (std::uint32_t slot = 3; slot < slots; ++slot) {
      CONDUCTOR_RETURN_IF_ERROR(payload_.Skip());
    }
    return {};
  }

  // Of a commit that was never released; its keys come in any order.
  Status ReadMapEnvelope() {
    MsgpackReader& reader = payload_.reader();
    std::uint32_t pairs = 0;
    const MsgpackFault fault = reader.TryMapHeader(&pairs);
    if (fault != MsgpackFault::kNone) return payload_.Malformed(fault);
    if (pairs > kMapKeysMax) return RefuseKey("envelope", "no more than kMapKeysMax keys");
    MapKeys seen;
    bool ts_seen = false;
    bool events_seen = false;
    bool rank_seen = false;
    for (std::uint32_t i = 0; i < pairs; ++i) {
      std::string_view key;
      if (reader.TryText(&key) != MsgpackFault::kNone) {
        return RefuseKey("envelope key", "UTF-8 text");
      }
      if (!seen.Add(key)) return RefuseKey("envelope key", "each key once");
      if (key == "ts") {
        ts_seen = true;
        CONDUCTOR_RETURN_IF_ERROR(ReadTimestamp());
      } else if (key == "events") {
        events_seen = true;
        CONDUCTOR_RETURN_IF_ERROR(ReadEvents());
      } else if (key == "data_parallel_rank" || key == "attn_dp_rank") {
        if (std::exchange(rank_seen, true)) return RefuseKey("envelope key", "one rank");
        CONDUCTOR_RETURN_IF_ERROR(ReadRank());
      } else {
        CONDUCTOR_RETURN_IF_ERROR(payload_.Skip());
      }
    }
    if (!ts_seen || !events_seen) return RefuseKey("envelope", "the keys ts and events");
    return {};
  }

  Status ReadTimestamp() {
    double seconds = 0;
    if (payload_.reader().TryDouble(&seconds) != MsgpackFault::kNone) {
      const bool ext = payload_.reader().PeekType() == MsgpackType::kExt;
      return payload_.Refuse(ext ? wire_reason::kExtType : wire_reason::kTsType, "ts", "a number");
    }
    if (!std::isfinite(seconds)) {
      return payload_.Refuse(wire_reason::kTsNotFinite, "ts", "a finite number");
    }
    batch_.publisher_time_us = ToMicroseconds(seconds);
    return {};
  }

  Status ReadRank() {
    CONDUCTOR_ASSIGN_OR_RETURN(batch_.dp_rank, payload_.ReadRank());
    return {};
  }

  Status ReadEvents() {
    return payload_.ReadEvents(events_, payload_.limits().events_max, batch_.events, batch_);
  }

  tl::unexpected<Error> RefuseKey(std::string_view what, std::string_view expected) const {
    return payload_.Refuse(wire_reason::kEnvelopeKey, what, expected);
  }

  PayloadReader payload_;
  WireBatch batch_;
  EventDecoder events_;
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
  return EngineBatchDecoder(publisher, payload, limits).Run();
}

}  // namespace conductor
