// Prompts prepared ahead: tokens, fingerprints and real chain names, and the events an engine
// publishes for them. For works in which names matter to a rival, or in which prompts share parts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/workload.h"

namespace conductor::bench {

// The content of one block: that of `block` in the source's prompt `prompt`.
struct Content {
  std::uint64_t prompt = 0;
  std::size_t block = 0;
};

struct Prompt {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> fingerprints;
  std::vector<std::uint64_t> names;
  std::vector<Digest> digests;  // that the names are projected from

  std::size_t blocks() const { return names.size(); }
  std::optional<std::uint64_t> ParentOf(std::size_t block) const {
    return block == 0 ? std::nullopt : std::optional(names[block - 1]);
  }
};

Prompt MakePrompt(const PromptSource& source, const std::vector<Content>& path);
// The first `blocks` blocks of a prompt of the source.
Prompt MakePrompt(const PromptSource& source, std::uint64_t number, std::size_t blocks);

// Blocks [begin, end), verified.
Stored StoredOf(const Prompt& prompt, std::size_t begin, std::size_t end);
// The same blocks, last one first.
Removed RemovedOf(const Prompt& prompt, std::size_t begin, std::size_t end);

}  // namespace conductor::bench
