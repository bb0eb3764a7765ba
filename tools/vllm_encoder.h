// Writes a batch of engine events exactly as vLLM's msgspec encoder does, for a chosen era.
//
//   era    releases            envelope            events
//   a      v0.8.5 - v0.9       [ts, events]        arrays: stored 5 fields, removed 1
//   b0.11  about v0.11         [ts, events, rank]  + medium
//   b0.15  about v0.15         [ts, events, rank]  + lora_name
//   b      later arrays        [ts, events, rank]  + extra_keys, group_idx
//   b-all  last arrays         [ts, events, rank]  + kv_cache_spec_kind, ..._sliding_window
//   c      v0.26 and later     [ts, events, rank]  maps; the newer fields are left out when nil
//   map    never released      {ts, events, ...}   maps
//
// Arrays always write every slot of their era; fields an era does not have are dropped silently,
// as those engines do not know them. Pure functions; any thread.
//
//   std::string payload = EncodeBatch(*ParseEra("c"), batch);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/result.h"
#include "tools/engine_events.h"

namespace conductor::enginesim {

enum class Era : std::uint8_t { kA, kB011, kB015, kB, kBAll, kC, kMap };

Result<Era> ParseEra(std::string_view text);
std::string_view ToString(Era era);

// Whether events of this era carry extra_keys, and whether the LoRA name.
bool HasExtraKeys(Era era);
bool HasLoraName(Era era);

// The payload frame of one live message.
std::string EncodeBatch(Era era, const EventBatch& batch);

}  // namespace conductor::enginesim
