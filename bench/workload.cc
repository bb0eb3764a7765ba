#include "bench/workload.h"

#include <array>
#include <cstdio>

#include "bench/harness.h"
#include "src/check.h"
#include "src/hash/fingerprint.h"
#include "src/hash/profile.h"

namespace conductor::bench {

HashProfile BenchProfile() {
  auto profile = MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
  CHECK(profile.has_value());
  return *profile;
}

ContextKey BenchContext() {
  return {"default", std::string(kModel), "", kBlockSize};
}

std::string InstanceName(std::size_t instance) {
  char text[32];
  snprintf(text, sizeof text, "engine-%05zu", instance);
  return text;
}

void PromptSource::TokensOfBlock(std::uint64_t prompt, std::size_t block, std::int32_t* out) const {
  std::uint64_t state = MixBits(MixBits(seed_ ^ prompt) + block);
  for (std::uint32_t i = 0; i < kBlockSize; i += 2) {
    state = MixBits(state);
    out[i] = static_cast<std::int32_t>((state & 0xFFFFFFFF) % kVocabulary);
    out[i + 1] = static_cast<std::int32_t>((state >> 32) % kVocabulary);
  }
}

std::vector<std::int32_t> PromptSource::Tokens(std::uint64_t prompt, std::size_t blocks) const {
  std::vector<std::int32_t> tokens(blocks * kBlockSize);
  for (std::size_t i = 0; i < blocks; ++i) TokensOfBlock(prompt, i, &tokens[i * kBlockSize]);
  return tokens;
}

std::uint64_t PromptSource::Fingerprint(std::uint64_t prompt, std::size_t block) const {
  std::array<std::int32_t, kBlockSize> tokens;
  TokensOfBlock(prompt, block, tokens.data());
  return FingerprintV1(tokens, {});
}

BlockName PromptSource::Name(std::uint64_t prompt, std::size_t block) const {
  return {MixBits(MixBits(~seed_ ^ prompt) + block), {}};
}

std::vector<std::uint64_t> PromptSource::ChainNames(std::uint64_t prompt,
                                                    std::size_t blocks) const {
  const BlockHasher hasher(BenchProfile());
  std::vector<std::uint64_t> names;
  names.reserve(blocks);
  std::array<std::int32_t, kBlockSize> tokens;
  Digest digest = hasher.Root();
  for (std::size_t i = 0; i < blocks; ++i) {
    TokensOfBlock(prompt, i, tokens.data());
    digest = hasher.HashTokens(digest, tokens);
    names.push_back(hasher.Project(digest));
  }
  return names;
}

Stored PromptSource::StoredEvent(std::uint64_t prompt, std::size_t begin, std::size_t count) const {
  Stored event;
  event.block_length = kBlockSize;
  event.extra_keys_on_wire = true;
  if (begin > 0) event.parent = Name(prompt, begin - 1);
  event.blocks.reserve(count);
  for (std::size_t i = begin; i < begin + count; ++i) {
    event.blocks.push_back({Name(prompt, i), Fingerprint(prompt, i), HashCheck::kEqual});
  }
  // Any digest: it is kept, not checked.
  Digest last{};
  last[0] = static_cast<std::uint8_t>(event.blocks.back().fingerprint);
  event.last_digest = last;
  return event;
}

Removed PromptSource::RemovedEvent(std::uint64_t prompt, std::size_t begin,
                                   std::size_t count) const {
  Removed event;
  event.names.reserve(count);
  for (std::size_t i = begin + count; i > begin; --i) event.names.push_back(Name(prompt, i - 1));
  return event;
}

Registration MakeBenchRegistration(std::size_t instance, const std::string& endpoint) {
  Registration registration;
  registration.instance_id = InstanceName(instance);
  registration.endpoint = endpoint;
  registration.type = PublisherType::kVllm;
  registration.model_name = kModel;
  registration.block_size = kBlockSize;
  registration.hash_profile = BenchProfile();
  return registration;
}

Frame MakeFrame(StreamId stream, std::uint64_t number, Event event) {
  Frame frame;
  frame.stream = stream;
  frame.number = number;
  frame.fingerprint = MixBits(MixBits(stream) ^ number);
  frame.events.push_back(std::move(event));
  return frame;
}

std::vector<Frame> PrepareFrames(const PromptSource& source, std::size_t blocks,
                                 std::size_t event_blocks) {
  std::vector<Frame> frames;
  for (std::uint64_t p = 0; p < blocks / kPromptBlocks; ++p) {
    for (std::size_t begin = 0; begin < kPromptBlocks; begin += event_blocks) {
      frames.push_back(MakeFrame(1, frames.size(), source.StoredEvent(p, begin, event_blocks)));
    }
  }
  return frames;
}

PromptQuery MakeQuery(const std::vector<std::int32_t>& tokens, std::uint32_t top_k) {
  PromptQuery query;
  query.context = BenchContext();
  query.token_ids = tokens;
  query.options.top_k = top_k;
  return query;
}

std::uint64_t SumOf(const QueryAnswer& answer) {
  Checksum sum;
  sum.Add(answer.instances.size());
  for (const InstanceHits& hits : answer.instances) {
    sum.Add(hits.instance_id);
    for (std::uint64_t tokens :
         {hits.best.device, hits.best.cpu_local, hits.best.cpu_share, hits.best.disk}) {
      sum.Add(tokens);
    }
  }
  return sum.value();
}

}  // namespace conductor::bench
