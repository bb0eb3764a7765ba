// One payload, front to back: what the batches of engines and of stores have in common. It knows
// how a message is refused whole, how one bad event is dropped alone, and that malformed bytes
// anywhere outweigh every other reason. The inside of the decoders, which alone include it.
//
// The payload outlives the reader. One reader per payload, one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "replay/wire/event.h"
#include "replay/wire/event_reading.h"
#include "replay/wire/msgpack_reader.h"
#include "replay/wire/wire_limits.h"
#include "replay/wire/wire_reason.h"
#include "src/result.h"

namespace conductor {

class PayloadReader {
 public:
  PayloadReader(std::span<const std::uint8_t> payload, const WireLimits& limits)
      : payload_(payload), limits_(limits), reader_(payload) {}

  MsgpackReader& reader() { return reader_; }
  const WireLimits& limits() const { return limits_; }

  // Before anything is read.
  Status CheckSize() const;
  // Slots of an array envelope, at least 2.
  Result<std::uint32_t> ReadEnvelopeSlots();
  Result<std::optional<std::int64_t>> ReadRank();
  Status Skip();
  Status CheckEnd() const;

  // The list of events. `decoder` has Decode(Event*) and LimitExceeded(), as EventDecoder.
  template <typename Decoder, typename Event>
  Status ReadEvents(Decoder& decoder, std::uint64_t events_max, std::vector<Event>& events,
                    BatchEnvelope& batch) {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::uint32_t count, ReadEventCount(events_max));
    events.reserve(std::min(count, kReserveMax));
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::size_t start = reader_.Offset();
      const DecodeFault fault = decoder.Decode(&events.emplace_back());
      if (!fault) {
        events.back().index = i;
        continue;
      }
      events.pop_back();
      CONDUCTOR_RETURN_IF_ERROR(SkipDropped(start, decoder.LimitExceeded()));
      Count(fault, i, batch);
    }
    return {};
  }

  // What the bytes mean is wrong; but when they are malformed as well, that is the reason.
  tl::unexpected<Error> Refuse(const char* reason, std::string_view what,
                               std::string_view expected) const;
  tl::unexpected<Error> Malformed(MsgpackFault fault) const;

 private:
  // Events reserved on the word of a header; longer batches grow as they are read.
  static constexpr std::uint32_t kReserveMax = 1u << 12;

  Result<std::uint32_t> ReadEventCount(std::uint64_t events_max);
  Status SkipDropped(std::size_t start, bool limit_exceeded);
  static void Count(const DecodeFault& fault, std::uint32_t index, BatchEnvelope& batch);

  const std::span<const std::uint8_t> payload_;
  const WireLimits limits_;
  MsgpackReader reader_;
};

}  // namespace conductor
