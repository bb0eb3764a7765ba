#include "bench/prompts.h"

#include <array>

#include "src/hash/fingerprint.h"

namespace conductor::bench {

Prompt MakePrompt(const PromptSource& source, const std::vector<Content>& path) {
  const BlockHasher hasher(BenchProfile());
  Prompt prompt;
  prompt.tokens.resize(path.size() * kBlockSize);
  prompt.fingerprints.reserve(path.size());
  prompt.names.reserve(path.size());
  prompt.digests.reserve(path.size());
  Digest digest = hasher.Root();
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::span<std::int32_t> tokens(&prompt.tokens[i * kBlockSize], kBlockSize);
    source.TokensOfBlock(path[i].prompt, path[i].block, tokens.data());
    digest = hasher.HashTokens(digest, tokens);
    prompt.fingerprints.push_back(FingerprintV1(tokens, {}));
    prompt.names.push_back(hasher.Project(digest));
    prompt.digests.push_back(digest);
  }
  return prompt;
}

Prompt MakePrompt(const PromptSource& source, std::uint64_t number, std::size_t blocks) {
  std::vector<Content> path(blocks);
  for (std::size_t i = 0; i < blocks; ++i) path[i] = {number, i};
  return MakePrompt(source, path);
}

Stored StoredOf(const Prompt& prompt, std::size_t begin, std::size_t end) {
  Stored event;
  event.block_length = kBlockSize;
  event.extra_keys_on_wire = true;
  if (const auto parent = prompt.ParentOf(begin)) event.parent = BlockName{*parent, {}};
  event.blocks.reserve(end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    event.blocks.push_back({{prompt.names[i], {}}, prompt.fingerprints[i], HashCheck::kEqual});
  }
  event.last_digest = prompt.digests[end - 1];
  return event;
}

Removed RemovedOf(const Prompt& prompt, std::size_t begin, std::size_t end) {
  Removed event;
  event.names.reserve(end - begin);
  for (std::size_t i = end; i > begin; --i) event.names.push_back({prompt.names[i - 1], {}});
  return event;
}

}  // namespace conductor::bench
