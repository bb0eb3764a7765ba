// The extra keys of one block in the order in which vLLM hashes them: the LoRA adapter on every
// block, multimodal items, the cache salt in the block at token 0 only, prompt embeds last.
// SGLang hashes none of them. Pure; any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/types.h"

namespace conductor {

// Joins what a request says about block `block_index`. `block_keys` are that block's own keys
// (multimodal items or old image identifiers, and embeds); as the engine lists them, adapter and
// salt may be among them. Empty texts add nothing. An adapter named "lora_id:N" is hashed as the
// number N.
ExtraKeys EngineExtraKeys(std::string_view lora_name, std::uint64_t block_index,
                          std::span<const ExtraKey> block_keys, std::string_view cache_salt);

// The number of an adapter that old releases know by number only, and that the contract therefore
// names "lora_id:N" (decimal, no leading zeros). Nothing for any other name.
std::optional<std::int64_t> LoraIdOfName(std::string_view lora_name);

// The contract's name of such an adapter.
std::string LoraNameOfId(std::int64_t lora_id);

}  // namespace conductor
