// Decodes the payload of one vLLM or SGLang frame: every released shape of both, array and map
// events, array and map envelopes. Strict where guessing would invent hits, tolerant where a
// later release may add (unknown map keys, extra slots).
//
// A message that is malformed, or whose envelope is wrong, is refused whole: Error.reason is a
// word of wire_reason.h or of ToString(MsgpackFault). A single event that is wrong is dropped
// and reported in WireBatch::rejected; its neighbours and their order stand. Malformed bytes
// anywhere in the payload refuse the message, whatever was found before them.
//
// The publisher type comes from the registration, never from the payload, which outlives the batch.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "replay/wire/event.h"
#include "replay/wire/wire_limits.h"
#include "src/result.h"
#include "src/types.h"

namespace conductor {

Result<WireBatch> DecodeEnginePayload(PublisherType publisher,
                                      std::span<const std::uint8_t> payload,
                                      const WireLimits& limits = {});

}  // namespace conductor
