// The simulator's command language: one line in, one JSON line out.
//
//   [ENGINE[.RANK]] COMMAND [ARGUMENTS]      engine and rank are 0 when left out
//
// Engines:
//   prompt TOKENS | {"tokens":..}   run a prompt (event_json.h) -> {"hit_tokens":32,
//                                   "stored_blocks":2,"removed_blocks":0,"seq":7}; seq is null
//                                   when nothing changed. A host cache adds "host_hit_tokens",
//                                   --show-removed adds "removed":["64 hex digits",..]
//   prompt_ids [IDS] LENGTH         the same for a trace request (trace.h)
//   replay MODE                     ok, late MS, cut N, cut_end N, never, no_end_marker, hole [I]
// Stores:
//   put BLOCKS | remove BLOCKS      blocks as event_json.h spells them ->
//                                   {"stored_blocks":2,"removed_blocks":0,"seq":7}
// Both:
//   events [{..},..]                publish these events; the cache does not learn of them
//   clear                           empty the cache, publish AllBlocksCleared or `cleared`
//   restart                         a new life: empty cache and ring, numbers from the first
//   down | up                       close the sockets | open them again at the same endpoints
//   drop N | lose N                 the next N batches are not sent | nor kept for replay
//   skip N                          leave out N numbers
//   raw HEX                         publish this payload under the next number
//   frames HEX ...                  send these frames verbatim, "-" is an empty one
//   wait_subscribers N MS           wait until N subscriptions are there
//   flush                           wait until all is handed to the sockets
//   stats | endpoints | quit
//
// An error is {"error":"what was expected"}. Thread-safe as the fleet is.
#pragma once

#include <string>
#include <string_view>

#include "tools/fleet.h"

namespace conductor::enginesim {

inline constexpr std::size_t kControlLineBytesMax = 64u << 20;
inline constexpr std::uint64_t kWaitMsMax = 600'000;

struct ControlReply {
  std::string json;  // one line, without its end
  bool quit = false;
};

ControlReply ExecuteControlLine(Fleet& fleet, const std::string& control_endpoint,
                                std::string_view line);

}  // namespace conductor::enginesim
