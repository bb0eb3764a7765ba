#include "src/index/prompt_blocks.h"

#include <algorithm>

#include "src/hash/extra_keys.h"
#include "src/hash/fingerprint.h"

namespace conductor {
namespace {

// The first block alone, then ever more at a time.
constexpr std::size_t kChunkGrowth = 8;
constexpr std::size_t kChunkMax = 512;
// A thread keeps memory for prompts up to this length, in blocks.
constexpr std::size_t kKeptFingerprintsMax = 65'536;

std::vector<std::uint64_t>& ThreadsFingerprints() {
  thread_local std::vector<std::uint64_t> fingerprints;
  if (fingerprints.capacity() > kKeptFingerprintsMax)
    std::vector<std::uint64_t>().swap(fingerprints);
  fingerprints.clear();
  return fingerprints;
}

}  // namespace

PromptBlocks::PromptBlocks(const PromptQuery& query, HashStrategy strategy,
                           const BlockHasher& hasher)
    : query_(&query),
      block_size_(query.context.block_size),
      hasher_(hasher),
      vllm_(strategy == HashStrategy::kVllmV1),
      overlap_(strategy == HashStrategy::kSglangBigram ? 1 : 0),
      fingerprints_(ThreadsFingerprints()) {
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

PromptBlocks::PromptBlocks(const FingerprintQuery& query, const BlockHasher& hasher)
    : query_(nullptr),
      block_size_(query.context.block_size),
      hasher_(hasher),
      vllm_(true),
      overlap_(0),
      positions_(query.fingerprints.size() * std::uint64_t{query.context.block_size}),
      count_(query.fingerprints.size()),
      fingerprints_(ThreadsFingerprints()),
      known_(query.fingerprints) {}

std::uint32_t PromptBlocks::Length(std::size_t i) const {
  const std::uint64_t begin = static_cast<std::uint64_t>(i) * block_size_;
  return static_cast<std::uint32_t>(EndOf(i) - begin);
}

std::span<const std::int32_t> PromptBlocks::TokensOf(std::size_t i) const {
  return query_->token_ids.subspan(i * block_size_, Length(i) + overlap_);
}

bool PromptBlocks::HasKeys(std::size_t i) const {
  return vllm_ && i < query_->extra_keys.size() && !query_->extra_keys[i].empty();
}

void PromptBlocks::Extend(std::size_t i) {
  while (fingerprints_.size() <= i) {
    const std::size_t begin = fingerprints_.size();
    const std::size_t chunk = std::clamp<std::size_t>(begin * kChunkGrowth, 1, kChunkMax);
    // Whole blocks without keys of their own go in bulk; the first may have lost its salt.
    std::size_t end = begin;
    while (end < count_ && end < begin + chunk && !HasKeys(end) && Length(end) == block_size_) {
      ++end;
    }
    if (end > begin) {
      fingerprints_.resize(end);
      const std::size_t first_token = begin * block_size_;
      const std::size_t tokens = (end - begin) * block_size_ + overlap_;
      FingerprintTokens(query_->token_ids.subspan(first_token, tokens), block_size_,
                        std::span(fingerprints_).subspan(begin), overlap_);
      continue;
    }
    SplitKeys split;
    if (HasKeys(begin)) {
      const ExtraKeys keys = EngineExtraKeys(query_->context.lora_name, begin,
                                             query_->extra_keys[begin], query_->cache_salt);
      split = SplitExtraKeys(keys, query_->context.lora_name,
                             LoraIdOfName(query_->context.lora_name), begin == 0);
    }
    fingerprints_.push_back(FingerprintV1(TokensOf(begin), split.remaining));
  }
  known_ = fingerprints_;
}

void PromptBlocks::SetCheckpoint(std::size_t at, const Digest& digest) {
  exact_.digest = digest;
  exact_.at = at;
}

Result<Digest> PromptBlocks::ExactDigest(std::size_t i) {
  return ExtendChain(exact_, vllm_ ? std::nullopt : hasher_.SaltSeed(query_->cache_salt), i);
}

Result<Digest> PromptBlocks::ObjectDigest(std::size_t i) {
  return ExtendChain(objects_, SglangStorageSeed(std::nullopt, query_->cache_salt), i);
}

Result<Digest> PromptBlocks::ExtendChain(Chain& chain, const std::optional<Digest>& seed,
                                         std::size_t i) {
  if (chain.digest && chain.at > i) chain.digest.reset();
  for (std::size_t next = chain.digest ? chain.at + 1 : 0; next <= i; ++next) {
    const std::optional<Digest>& parent = chain.digest ? chain.digest : seed;
    ExtraKeys keys;
    if (vllm_) {
      const bool plain = query_->context.lora_name.empty() && !HasKeys(next) &&
                         (next > 0 || query_->cache_salt.empty());
      if (plain) {
        chain.digest = hasher_.HashTokens(parent ? *parent : hasher_.Root(), TokensOf(next));
        chain.at = next;
        continue;
      }
      const std::span<const ExtraKey> own =
          next < query_->extra_keys.size() ? std::span<const ExtraKey>(query_->extra_keys[next])
                                           : std::span<const ExtraKey>();
      keys = EngineExtraKeys(query_->context.lora_name, next, own, query_->cache_salt);
    }
    auto digest = hasher_.HashBlock(parent ? &*parent : nullptr, TokensOf(next), keys);
    if (!digest) return tl::unexpected(digest.error());
    chain.digest = *digest;
    chain.at = next;
  }
  return *chain.digest;
}

}  // namespace conductor
