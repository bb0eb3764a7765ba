// The chains of block hashes, as the engines compute them (vllm_v1, sglang, sglang_bigram).
//
// A block's digest covers the full 32-byte digest of the block before it, its tokens and, in vLLM,
// its extra keys. The u64 that engines publish and the index is keyed by is the digest's
// projection. A BlockHasher is an immutable value: copy it, share it between threads.
//
//   BlockHasher hasher(profile);
//   auto digest = hasher.HashBlock(nullptr, tokens, {});        // the first block
//   auto next = hasher.HashBlock(&*digest, more_tokens, {});    // the one after it
//   std::uint64_t name = hasher.Project(*next);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/hash/extra_key_list.h"
#include "src/result.h"
#include "src/types.h"

namespace conductor {

class BlockHasher {
 public:
  explicit BlockHasher(const HashProfile& profile)
      : strategy_(profile.strategy), algorithm_(profile.algorithm), root_(profile.root_digest) {}

  // The parent of vLLM's first block; 32 zero bytes (which enter no hash) for SGLang.
  Digest Root() const { return root_; }

  // One step. A null parent is the start of the chain: vLLM's root, and nothing at all for an
  // unsalted SGLang page. `tokens` are those of the block; in sglang_bigram a page of L logical
  // positions has L+1 (position i contributes t_i and t_i+1). SGLang ignores `extra_keys`.
  // INVALID_ARGUMENT: no tokens, a negative SGLang token, a text that is not UTF-8.
  // Does not allocate for vLLM blocks of usual sizes, nor for plain SGLang.
  Result<Digest> HashBlock(const Digest* parent, std::span<const std::int32_t> tokens,
                           ExtraKeyList extra_keys) const;

  // HashBlock for vLLM without extra keys, which cannot fail. `tokens` is not empty.
  Digest HashTokens(const Digest& parent, std::span<const std::int32_t> tokens) const;

  // The index key of a digest: vLLM its last 8 bytes, SGLang its first 8, big-endian.
  std::uint64_t Project(const Digest& digest) const;

  // What precedes the first SGLang page of a salted prompt (pass it as parent). Nothing for an
  // empty salt, and nothing for vLLM, whose salt is an extra key.
  std::optional<Digest> SaltSeed(std::string_view cache_salt) const;

  // The digests of a whole prompt. vLLM: of its full blocks. SGLang: of all pages, the short last
  // one included; a bigram prompt has tokens - 1 positions. `block_extra_keys` are a vLLM request's
  // keys per block without adapter and salt; blocks beyond its end have none.
  Result<std::vector<Digest>> HashPrompt(std::span<const std::int32_t> tokens,
                                         std::uint32_t block_size, std::string_view lora_name,
                                         std::string_view cache_salt,
                                         std::span<const ExtraKeys> block_extra_keys = {}) const;

  // The SGLang chain after `prior` (null: nothing precedes it). For object keys of the storage
  // tier, whose first page has another prior than the engine's events: SglangStorageSeed.
  Result<std::vector<Digest>> HashPages(const Digest* prior, std::span<const std::int32_t> tokens,
                                        std::uint32_t page_size) const;

 private:
  bool IsVllm() const { return strategy_ == HashStrategy::kVllmV1; }
  Digest HashVllm(const Digest& parent, std::span<const std::int32_t> tokens,
                  ExtraKeyList extra_keys) const;

  HashStrategy strategy_;
  HashAlgorithm algorithm_;
  Digest root_;
};

// The prior of page 0 in SGLang's object keys (newest releases; older ones use none). Nothing when
// both parts are absent. An empty salt is absent; an empty extra key is not.
std::optional<Digest> SglangStorageSeed(std::optional<std::string_view> extra_key,
                                        std::optional<std::string_view> cache_salt);

}  // namespace conductor
