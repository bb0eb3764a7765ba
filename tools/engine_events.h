// The events of an engine as values, before an era decides how they look on the wire. Every field
// of every release of vLLM and SGLang is here; vllm_encoder.h and sglang_encoder.h write those that
// their era has. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/types.h"

namespace conductor::enginesim {

// A block's hash as the wire spells it: an unsigned integer (the default of vLLM), a signed one
// (releases that published Python's hash()), or the raw digest as bytes.
using WireHash = std::variant<std::uint64_t, std::int64_t, std::string>;

struct BlockStoredEvent {
  std::vector<WireHash> block_hashes;
  std::optional<WireHash> parent_block_hash;  // none: nil, the start of a prompt
  std::vector<std::int32_t> token_ids;
  std::int64_t block_size = 0;
  std::optional<std::int64_t> lora_id;
  std::optional<std::string> medium = "GPU";
  std::optional<std::string> lora_name;
  // One entry per hash when present; an empty entry is nil.
  std::optional<std::vector<ExtraKeys>> extra_keys;
  std::optional<std::int64_t> group_idx;
  std::optional<std::string> spec_kind;
  std::optional<std::int64_t> sliding_window;
  std::optional<std::string> locality, ownership, session_id;
  // SGLang only. A bigram page of L positions has L + 1 tokens here and L pairs on the wire.
  std::optional<std::string> cache_salt;
  bool bigram = false;
};

struct BlockRemovedEvent {
  std::vector<WireHash> block_hashes;
  std::optional<std::string> medium = "GPU";
  std::optional<std::int64_t> group_idx;
  std::optional<std::string> locality, ownership;
};

struct AllBlocksClearedEvent {};

using EngineEvent = std::variant<BlockStoredEvent, BlockRemovedEvent, AllBlocksClearedEvent>;

struct EventBatch {
  double ts = 0;  // seconds since 1970
  std::vector<EngineEvent> events{};
  std::optional<std::int64_t> dp_rank{};
};

}  // namespace conductor::enginesim
