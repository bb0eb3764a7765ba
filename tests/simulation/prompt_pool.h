// The prompts of one simulated world: a few token sequences that share beginnings, asked with and
// without adapter, salt and multimodal items. Engines cache their blocks, the checks ask for them.
// Made once from a seed, then read only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/hash/chain.h"
#include "src/types.h"
#include "tests/model/random_source.h"

namespace conductor::simulation {

using Random = model::RandomSource;

inline constexpr std::uint32_t kBlockSize = 4;

struct Prompt {
  std::vector<std::int32_t> tokens;  // whole blocks
  std::string lora_name;             // as the engine hashes it; empty: the base model
  std::string salt;
  std::vector<ExtraKeys> items;  // per block; empty: none

  std::size_t blocks() const { return tokens.size() / kBlockSize; }
  bool needs_extra_keys() const { return !salt.empty() || !items.empty(); }
};

// Adapters are known by name and, in old releases, by number.
inline constexpr const char* kAdapter = "adapter";
inline constexpr std::int64_t kAdapterId = 7;

class PromptPool {
 public:
  explicit PromptPool(Random& random);
  const std::vector<Prompt>& prompts() const { return prompts_; }
  // The digests an engine of this profile names the prompt's blocks by.
  static std::vector<Digest> Chain(const BlockHasher& hasher, const Prompt& prompt);
  // The adapter's name in queries and hashes of an engine that says only its number.
  static std::string NumberedAdapter();

 private:
  std::vector<Prompt> prompts_;
};

}  // namespace conductor::simulation
