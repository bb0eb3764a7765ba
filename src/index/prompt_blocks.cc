#include "src/index/prompt_blocks.h"

#include <algorithm>

#include "src/hash/extra_keys.h"
#include "src/hash/fingerprint.h"

namespace conductor {
namespace {

constexpr std::size_t kFingerprintChunk = 64;

}  // namespace

PromptBlocks::PromptBlocks(const PromptQuery& query, HashStrategy strategy,
                           const BlockHasher& hasher)
    : query_(query),
      hasher_(hasher),
      vllm_(strategy == HashStrategy::kVllmV1),
      overlap_(strategy == HashStrategy::kSglangBigram ? 1 : 0) {
  const std::uint64_t tokens = query.token_ids.size();
  const std::uint64_t size = query.context.block_size;
  positions_ = tokens > overlap_ ? tokens - overlap_ : 0;
  // Only SGLang hashes a short last page.
  count_ = vllm_ ? positions_ / size : (positions_ + size - 1) / size;
  if (!vllm_) {
    if (!query.cache_salt.empty()) salt_ = DigestSalt(query.cache_salt);
    return;
  }
  const std::span<const ExtraKey> first =
      query.extra_keys.empty() ? std::span<const ExtraKey>() : query.extra_keys[0];
  const SplitKeys split =
      SplitExtraKeys(EngineExtraKeys(query.context.lora_name, 0, first, query.cache_salt),
                     query.context.lora_name, LoraIdOfName(query.context.lora_name), true);
  if (split.salt) salt_ = DigestSalt(*split.salt);
}

std::uint32_t PromptBlocks::Length(std::size_t i) const {
  const std::uint64_t begin = static_cast<std::uint64_t>(i) * query_.context.block_size;
  return static_cast<std::uint32_t>(EndOf(i) - begin);
}

std::uint64_t PromptBlocks::EndOf(std::size_t i) const {
  return std::min<std::uint64_t>((static_cast<std::uint64_t>(i) + 1) * query_.context.block_size,
                                 positions_);
}

std::span<const std::int32_t> PromptBlocks::TokensOf(std::size_t i) const {
  return query_.token_ids.subspan(i * query_.context.block_size, Length(i) + overlap_);
}

bool PromptBlocks::HasKeys(std::size_t i) const {
  return vllm_ && i < query_.extra_keys.size() && !query_.extra_keys[i].empty();
}

std::uint64_t PromptBlocks::Fingerprint(std::size_t i) {
  while (fingerprints_.size() <= i) {
    const std::size_t begin = fingerprints_.size();
    // Whole blocks without keys of their own go in bulk; the first may have lost its salt.
    std::size_t end = begin;
    while (end < count_ && end < begin + kFingerprintChunk && !HasKeys(end) &&
           Length(end) == query_.context.block_size) {
      ++end;
    }
    if (end > begin) {
      fingerprints_.resize(end);
      const std::size_t first_token = begin * query_.context.block_size;
      const std::size_t tokens = (end - begin) * query_.context.block_size + overlap_;
      FingerprintTokens(query_.token_ids.subspan(first_token, tokens), query_.context.block_size,
                        std::span(fingerprints_).subspan(begin), overlap_);
      continue;
    }
    SplitKeys split;
    if (HasKeys(begin)) {
      const ExtraKeys keys = EngineExtraKeys(query_.context.lora_name, begin,
                                             query_.extra_keys[begin], query_.cache_salt);
      split = SplitExtraKeys(keys, query_.context.lora_name, LoraIdOfName(query_.context.lora_name),
                             begin == 0);
    }
    fingerprints_.push_back(FingerprintV1(TokensOf(begin), split.remaining));
  }
  return fingerprints_[i];
}

Result<Digest> PromptBlocks::ExactDigest(std::size_t i) {
  return Extend(exact_, vllm_ ? std::nullopt : hasher_.SaltSeed(query_.cache_salt), i);
}

Result<Digest> PromptBlocks::ObjectDigest(std::size_t i) {
  return Extend(objects_, SglangStorageSeed(std::nullopt, query_.cache_salt), i);
}

Result<Digest> PromptBlocks::Extend(Chain& chain, const std::optional<Digest>& seed,
                                    std::size_t i) {
  if (chain.digest && chain.at > i) chain.digest.reset();
  for (std::size_t next = chain.digest ? chain.at + 1 : 0; next <= i; ++next) {
    const std::optional<Digest>& parent = chain.digest ? chain.digest : seed;
    ExtraKeys keys;
    if (vllm_) {
      const std::span<const ExtraKey> own = next < query_.extra_keys.size()
                                                ? std::span<const ExtraKey>(query_.extra_keys[next])
                                                : std::span<const ExtraKey>();
      keys = EngineExtraKeys(query_.context.lora_name, next, own, query_.cache_salt);
    }
    auto digest = hasher_.HashBlock(parent ? &*parent : nullptr, TokensOf(next), keys);
    if (!digest) return tl::unexpected(digest.error());
    chain.digest = *digest;
    chain.at = next;
  }
  return *chain.digest;
}

}  // namespace conductor
