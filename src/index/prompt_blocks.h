// PromptBlocks: a prompt cut into the positions its context's hash strategy knows, with their
// fingerprints (in growing chunks, so that a miss costs one block) and, on demand, the exact hash
// chain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/hash/chain.h"
#include "src/query.h"
#include "src/result.h"

namespace conductor {

class PromptBlocks {
 public:
  // `query` and `hasher` outlive this.
  PromptBlocks(const PromptQuery& query, HashStrategy strategy, const BlockHasher& hasher);
  // Full blocks whose fingerprints are known. There is no chain to follow.
  PromptBlocks(const FingerprintQuery& query, const BlockHasher& hasher);

  bool HasTokens() const { return query_ != nullptr; }
  std::size_t count() const { return count_; }
  // Tokens (bigram: logical positions) of block i, and the boundary behind it.
  std::uint32_t Length(std::size_t i) const;
  std::uint32_t block_size() const { return block_size_; }
  std::uint64_t EndOf(std::size_t i) const {
    return std::min<std::uint64_t>((static_cast<std::uint64_t>(i) + 1) * block_size_, positions_);
  }
  const std::optional<SaltDigest>& salt() const { return salt_; }

  std::uint64_t Fingerprint(std::size_t i) { return Fingerprints(i).front(); }
  // Those of the blocks from i on that are known so far: at least one.
  std::span<const std::uint64_t> Fingerprints(std::size_t i) {
    if (i >= known_.size()) Extend(i);
    return known_.subspan(i);
  }
  // The full digest of block `at`, which the exact chain may start from.
  void SetCheckpoint(std::size_t at, const Digest& digest);
  // The full digest of block i; computes what is missing of the chain before it.
  Result<Digest> ExactDigest(std::size_t i);
  // SGLang's object keys in a store start a salted prompt with another seed than its events.
  bool ObjectNamesDiffer() const { return !vllm_ && salt_.has_value(); }
  // The same as ExactDigest for the object keys' chain.
  Result<Digest> ObjectDigest(std::size_t i);

 private:
  // A chain computed as far as it was asked for.
  struct Chain {
    std::optional<Digest> digest;  // of block `at`
    std::size_t at = 0;
  };
  void Extend(std::size_t i);
  Result<Digest> ExtendChain(Chain& chain, const std::optional<Digest>& seed, std::size_t i);
  std::span<const std::int32_t> TokensOf(std::size_t i) const;
  bool HasKeys(std::size_t i) const;

  const PromptQuery* query_;  // null: only fingerprints
  std::uint32_t block_size_;
  const BlockHasher& hasher_;
  bool vllm_;
  std::uint32_t overlap_;  // tokens of the next block that belong to a block: 1 for bigram
  std::uint64_t positions_ = 0;
  std::size_t count_ = 0;
  std::optional<SaltDigest> salt_;
  std::vector<std::uint64_t>& fingerprints_;  // this thread's, reused from query to query
  std::span<const std::uint64_t> known_;
  Chain exact_, objects_;
};

}  // namespace conductor
