#include "bench/messages.h"

#include "src/check.h"
#include "tools/vllm_encoder.h"

namespace conductor::bench {
namespace {

// The arrays that most releases in the field speak.
constexpr enginesim::Era kEra = enginesim::Era::kB;

enginesim::BlockStoredEvent StoredOnWire(const std::vector<std::uint64_t>& names,
                                         const std::vector<std::int32_t>& tokens, std::size_t begin,
                                         std::size_t count) {
  enginesim::BlockStoredEvent event;
  const auto at = static_cast<std::ptrdiff_t>(begin);
  const auto end = static_cast<std::ptrdiff_t>(begin + count);
  event.block_hashes.assign(names.begin() + at, names.begin() + end);
  if (begin > 0) event.parent_block_hash = names[begin - 1];
  event.token_ids.assign(tokens.begin() + at * kBlockSize, tokens.begin() + end * kBlockSize);
  event.block_size = kBlockSize;
  event.group_idx = 0;
  event.extra_keys.emplace(count);
  return event;
}

}  // namespace

Messages MakeMessages(const PromptSource& source, std::uint64_t first_prompt,
                      const MessageShape& shape) {
  CHECK(shape.prompts % shape.events == 0);
  Messages messages;
  messages.prompts = shape.prompts;
  const std::size_t rounds = shape.blocks / shape.prompts / shape.per_event;
  messages.blocks_per_prompt = rounds * shape.per_event;
  std::vector<std::vector<std::uint64_t>> names;
  std::vector<std::vector<std::int32_t>> tokens;
  for (std::size_t p = 0; p < shape.prompts; ++p) {
    names.push_back(source.ChainNames(first_prompt + p, messages.blocks_per_prompt));
    tokens.push_back(source.Tokens(first_prompt + p, messages.blocks_per_prompt));
    messages.last_names.push_back(names.back().back());
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t p = 0; p < shape.prompts; p += shape.events) {
      enginesim::EventBatch batch{.ts = 1'700'000'000, .dp_rank = 0};
      for (std::size_t e = 0; e < shape.events; ++e) {
        batch.events.emplace_back(
            StoredOnWire(names[p + e], tokens[p + e], round * shape.per_event, shape.per_event));
      }
      messages.payloads.push_back(enginesim::EncodeBatch(kEra, batch));
    }
  }
  return messages;
}

}  // namespace conductor::bench
