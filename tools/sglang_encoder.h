// Writes a batch of engine events exactly as SGLang's encoder does, for a chosen era.
//
//   era  releases          envelope            events
//   s1   v0.4              [ts, events]        arrays: stored 5 fields, removed 1
//   s2   before PR 30827   [ts, events, rank]  + medium
//   s3   PR 30827          [ts, events, rank]  a salted stored event ends with {"cache_salt": text}
//   s4   PR 37482          [ts, events, rank]  maps; medium, salt and session are left out when nil
//
// Hashes are signed 64-bit integers. A bigram event's tokens are pairs of neighbours. Fields an era
// does not have are dropped silently, as those engines do not know them. Pure; any thread.
//
//   std::string payload = EncodeSglangBatch(*ParseSglangEra("s4"), batch);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/result.h"
#include "tools/engine_events.h"

namespace conductor::enginesim {

enum class SglangEra : std::uint8_t { kS1, kS2, kS3, kS4 };

Result<SglangEra> ParseSglangEra(std::string_view text);
std::string_view ToString(SglangEra era);

// The payload frame of one live message. Hashes of bytes are not SGLang's: they are written as
// they are, for a decoder to refuse.
std::string EncodeSglangBatch(SglangEra era, const EventBatch& batch);

}  // namespace conductor::enginesim
