#include "replay/wire/store_decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "replay/wire/payload_reader.h"
#include "replay/wire/store_event_decoder.h"

namespace conductor {
namespace {

// Saturates, as the clock of an engine does.
std::int64_t ToMicroseconds(std::uint64_t milliseconds) {
  constexpr std::uint64_t kLimit = 9'000'000'000'000'000;
  return static_cast<std::int64_t>(std::min(milliseconds, kLimit)) * 1000;
}

// `batch_` grows; the first refusal ends it.
class StoreBatchDecoder {
 public:
  StoreBatchDecoder(HashStrategy strategy, std::span<const std::uint8_t> payload,
                    const WireLimits& limits)
      : payload_(payload, limits), events_(strategy, &payload_.reader()) {}

  Result<StoreBatch> Run() {
    CONDUCTOR_RETURN_IF_ERROR(payload_.CheckSize());
    if (payload_.reader().PeekType() != MsgpackType::kArray) {
      return payload_.Refuse(wire_reason::kEnvelopeType, "envelope", "an array");
    }
    CONDUCTOR_ASSIGN_OR_RETURN(const std::uint32_t slots, payload_.ReadEnvelopeSlots());
    CONDUCTOR_RETURN_IF_ERROR(ReadTimestamp());
    CONDUCTOR_RETURN_IF_ERROR(
        payload_.ReadEvents(events_, payload_.limits().store_events_max, batch_.events, batch_));
    if (slots > 2) {
      CONDUCTOR_ASSIGN_OR_RETURN(batch_.dp_rank, payload_.ReadRank());
    }
    for (std::uint32_t slot = 3; slot < slots; ++slot) {
      CONDUCTOR_RETURN_IF_ERROR(payload_.Skip());
    }
    CONDUCTOR_RETURN_IF_ERROR(payload_.CheckEnd());
    return std::move(batch_);
  }

 private:
  // Whole milliseconds since 1970: no release sends anything else.
  Status ReadTimestamp() {
    MsgpackReader& reader = payload_.reader();
    const MsgpackType type = reader.PeekType();
    MsgpackInteger milliseconds;
    if (reader.TryInteger(&milliseconds) == MsgpackFault::kNone && !milliseconds.negative) {
      events_.set_batch_timestamp(milliseconds.bits);
      batch_.publisher_time_us = ToMicroseconds(milliseconds.bits);
      return {};
    }
    double number = 0;
    const char* reason = wire_reason::kTsType;
    if (type == MsgpackType::kExt) reason = wire_reason::kExtType;
    if (type == MsgpackType::kFloat && reader.TryDouble(&number) == MsgpackFault::kNone &&
        !std::isfinite(number)) {
      reason = wire_reason::kTsNotFinite;
    }
    return payload_.Refuse(reason, "timestamp", "a non-negative integer");
  }

  PayloadReader payload_;
  StoreEventDecoder events_;
  StoreBatch batch_;
};

}  // namespace

Result<StoreBatch> DecodeStorePayload(HashStrategy strategy, std::span<const std::uint8_t> payload,
                                      const WireLimits& limits) {
  return StoreBatchDecoder(strategy, payload, limits).Run();
}

}  // namespace conductor
