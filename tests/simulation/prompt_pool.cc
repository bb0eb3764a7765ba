#include "tests/simulation/prompt_pool.h"

#include "src/check.h"
#include "src/hash/extra_keys.h"

namespace conductor::simulation {
namespace {

constexpr std::size_t kSequences = 8;
constexpr std::size_t kBlocksMax = 10;

std::vector<std::int32_t> FreshTokens(Random& random, std::size_t blocks) {
  std::vector<std::int32_t> tokens;
  // Few values, so that equal blocks also stand at other places of other prompts.
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto content = static_cast<std::int32_t>(random.Below(6));
    for (std::uint32_t i = 0; i < kBlockSize; ++i) {
      tokens.push_back(100 * content + static_cast<std::int32_t>(i));
    }
  }
  return tokens;
}

}  // namespace

std::string PromptPool::NumberedAdapter() {
  return LoraNameOfId(kAdapterId);
}

PromptPool::PromptPool(Random& random) {
  std::vector<std::vector<std::int32_t>> sequences;
  for (std::size_t i = 0; i < kSequences; ++i) {
    std::vector<std::int32_t> tokens;
    if (!sequences.empty() && random.Percent(70)) {
      const auto& base = sequences[random.Below(sequences.size())];
      const std::size_t keep = random.Below(base.size() / kBlockSize + 1) * kBlockSize;
      tokens.assign(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(keep));
    }
    const auto more = FreshTokens(random, 1 + random.Below(kBlocksMax));
    tokens.insert(tokens.end(), more.begin(), more.end());
    sequences.push_back(std::move(tokens));
  }
  for (const auto& tokens : sequences) {
    prompts_.push_back({tokens, "", "", {}});
    if (random.Percent(40)) prompts_.push_back({tokens, kAdapter, "", {}});
    if (random.Percent(25)) prompts_.push_back({tokens, NumberedAdapter(), "", {}});
    if (random.Percent(40)) prompts_.push_back({tokens, "", "salt", {}});
    if (random.Percent(20)) prompts_.push_back({tokens, kAdapter, "salt", {}});
    if (random.Percent(40)) {
      std::vector<ExtraKeys> items(tokens.size() / kBlockSize);
      items[random.Below(items.size())] = {{ExtraKey::Kind::kItem, "image", 0}};
      prompts_.push_back({tokens, "", random.Percent(50) ? "salt" : "", std::move(items)});
    }
  }
}

std::vector<Digest> PromptPool::Chain(const BlockHasher& hasher, const Prompt& prompt) {
  auto chain =
      hasher.HashPrompt(prompt.tokens, kBlockSize, prompt.lora_name, prompt.salt, prompt.items);
  CHECK(chain);
  return *std::move(chain);
}

}  // namespace conductor::simulation
