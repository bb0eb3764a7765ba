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
// extra key is a text, an integer, [identifier, offset] or "hex:" and bytes. Unknown fields are
// errors, so that a typing mistake cannot pass for a test. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"
#include "tools/engine_sim.h"
#include "tools/vllm_events.h"

namespace conductor::enginesim {

Result<PromptRequest> ParsePrompt(std::string_view json_text);
Result<std::vector<EngineEvent>> ParseEvents(std::string_view json_text);

// "00ff" to two bytes. Errors: odd length, another character.
Result<std::string> ParseHex(std::string_view hex);

}  // namespace conductor::enginesim
