// Writes batches of store events exactly as the master of Mooncake Store does, for a chosen era.
//
//   era  where                  what is special
//   m1   main, PR 2214          no model, no block size; hashes only of number keys; no `cleared`
//   m2   dev/conductor          the key's model, ranks and hash, each when the key tells it
//   m3   newest                 model and block size as configured; hashes never: the key tells
//
// A payload is [milliseconds, [event maps], rank]. Pure functions; any thread.
//
//   std::string payload = EncodeStoreBatch(StoreEra::kM3, config, {.timestamp_ms = ..});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"
#include "tools/store_events.h"

namespace conductor::enginesim {

inline constexpr std::size_t kStoreBatchEventsMax = 64;

enum class StoreEra : std::uint8_t { kM1, kM2, kM3 };

Result<StoreEra> ParseStoreEra(std::string_view text);
std::string_view ToString(StoreEra era);

struct StoreBatch {
  std::uint64_t timestamp_ms = 0;  // of the batch and of each event
  std::uint64_t first_event_id = 1;
  std::vector<StoreEvent> events{};
};

// The payload frame of one live message.
std::string EncodeStoreBatch(StoreEra era, const StoreConfig& config, const StoreBatch& batch);

}  // namespace conductor::enginesim
