// Prompts and events as JSON, the way control commands spell them.
//
//   prompt: [1,2,3,4]
//           {"tokens":[1,2,3,4],"lora_name":"ad-1","salt":"t","extra_keys":[[["img-1",0]],null]}
//   events: [{"type":"BlockStored","block_hashes":[11],"parent_block_hash":null,
//             "token_ids":[1,2,3,4],"block_size":4,"medium":"GPU"},
//            {"type":"BlockRemoved","block_hashes":["hex:00ff..."]}, {"type":"AllBlocksCleared"}]
//
// An event's fields are those of the wire's map form. A hash is an integer (negative ones stay
// negative on the wire) or "hex:" and bytes. `medium` is GPU when absent and nil when null. An
// extra key is a text, an integer, [identifier, offset] or "hex:" and bytes. SGLang's stored events
// may have `cache_salt`, and `bigram`: true, whose token_ids go out as pairs of neighbours. A
// store:
//
//   events: [{"event_type":"stored","medium":"cpu","object_key":"m@..."}, {"event_type":"cleared"}]
//   blocks: ["00ff..", ..] | {"hashes":["00ff.."],"medium":"disk"}     whole digests, cpu if unsaid
//
// Unknown fields are errors, so that a typing mistake cannot pass for a test. Pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"
#include "tools/engine_events.h"
#include "tools/engine_sim.h"
#include "tools/store_events.h"

namespace conductor::enginesim {

Result<PromptRequest> ParsePrompt(std::string_view json_text);
Result<std::vector<EngineEvent>> ParseEvents(std::string_view json_text);

Result<std::vector<StoreEvent>> ParseStoreEvents(std::string_view json_text);

struct BlockList {
  std::vector<Digest> digests;
  std::string medium = "cpu";
};
Result<BlockList> ParseBlocks(std::string_view json_text);

// "00ff" to two bytes. Errors: odd length, another character.
Result<std::string> ParseHex(std::string_view hex);
std::string ToHex(const Digest& digest);

}  // namespace conductor::enginesim
