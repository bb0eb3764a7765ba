// Decodes the payload of one frame of a Mooncake Store's master: [milliseconds, [event maps],
// rank]. Every publisher era: hashes from the publisher (M1, M2), or only the object's key (M3).
//
// Refuses and drops as engine_decoder.h: a malformed message or a wrong envelope is refused whole,
// a single wrong event is dropped and reported in BatchEnvelope::rejected. An event that
// contradicts itself or its batch (time, the two spellings of its type, hashes against the key) is
// wrong; a key that names no block is not.
//
// The hash strategy comes from the registration: it says whose object keys these are. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "replay/wire/store_event.h"
#include "replay/wire/wire_limits.h"
#include "src/result.h"
#include "src/types.h"

namespace conductor {

Result<StoreBatch> DecodeStorePayload(HashStrategy strategy, std::span<const std::uint8_t> payload,
                                      const WireLimits& limits = {});

}  // namespace conductor
