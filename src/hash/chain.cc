#include "src/hash/chain.h"

#include <algorithm>
#include <string>

#include "src/check.h"
#include "src/hash/cbor.h"
#include "src/hash/extra_keys.h"
#include "src/hash/pickle.h"
#include "src/hash/sglang.h"
#include "src/hash/sha256.h"
#include "src/hash/utf8.h"

namespace conductor {
namespace {

std::uint64_t ReadBigEndian64(std::span<const std::uint8_t, 8> bytes) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

// Reports a text the engines could not have hashed either.
Status CheckTexts(ExtraKeyList keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ExtraKeyView key = keys[i];
    const bool has_text = key.kind == ExtraKey::Kind::kText || key.kind == ExtraKey::Kind::kItem;
    if (has_text && !IsValidUtf8(key.text)) {
      return InvalidField(
          "invalid_value", "extra_keys",
          "block hash: extra key " + std::to_string(i) + ": expected UTF-8, got other bytes",
          static_cast<long long>(i));
    }
  }
  return {};
}

Status CheckText(std::string_view text, std::string_view field) {
  if (IsValidUtf8(text)) return {};
  return InvalidField("invalid_value", std::string(field),
                      "block hash: " + std::string(field) + ": expected UTF-8, got other bytes");
}

}  // namespace

Digest BlockHasher::HashVllm(const Digest& parent, std::span<const std::int32_t> tokens,
                             ExtraKeyList extra_keys) const {
  ByteBuffer buffer;
  if (algorithm_ == HashAlgorithm::kSha256) {
    EncodePickleBlock(parent, tokens, extra_keys, buffer);
  } else {
    EncodeCborBlock(parent, tokens, extra_keys, buffer);
  }
  return Sha256(buffer.bytes());
}

Digest BlockHasher::HashTokens(const Digest& parent, std::span<const std::int32_t> tokens) const {
  CHECK(IsVllm());
  CHECK(!tokens.empty());
  return HashVllm(parent, tokens, {});
}

Result<Digest> BlockHasher::HashBlock(const Digest* parent, std::span<const std::int32_t> tokens,
                                      ExtraKeyList extra_keys) const {
  const bool bigram = strategy_ == HashStrategy::kSglangBigram;
  const std::size_t tokens_min = bigram ? 2 : 1;
  if (tokens.size() < tokens_min) {
    return InvalidField("invalid_value", "token_ids",
                        "block hash: expected at least " + std::to_string(tokens_min) +
                            " tokens, got " + std::to_string(tokens.size()));
  }
  if (IsVllm()) {
    CONDUCTOR_RETURN_IF_ERROR(CheckTexts(extra_keys));
    return HashVllm(parent != nullptr ? *parent : root_, tokens, extra_keys);
  }
  CONDUCTOR_RETURN_IF_ERROR(CheckSglangTokens(tokens, 0));
  return bigram ? HashSglangBigramPage(parent, tokens) : HashSglangPage(parent, tokens);
}

std::uint64_t BlockHasher::Project(const Digest& digest) const {
  const std::span<const std::uint8_t, 32> bytes(digest);
  return IsVllm() ? ReadBigEndian64(bytes.last<8>()) : ReadBigEndian64(bytes.first<8>());
}

Result<std::vector<Digest>> BlockHasher::HashPages(const Digest* prior,
                                                   std::span<const std::int32_t> tokens,
                                                   std::uint32_t page_size) const {
  CHECK(!IsVllm());
  CHECK(page_size > 0);
  const std::size_t overlap = strategy_ == HashStrategy::kSglangBigram ? 1 : 0;
  std::vector<Digest> digests;
  if (tokens.size() <= overlap) return digests;
  CONDUCTOR_RETURN_IF_ERROR(CheckSglangTokens(tokens, 0));
  const std::size_t positions = tokens.size() - overlap;
  digests.reserve((positions + page_size - 1) / page_size);
  for (std::size_t begin = 0; begin < positions; begin += page_size) {
    const std::size_t length = std::min<std::size_t>(page_size, positions - begin) + overlap;
    const Digest* parent = digests.empty() ? prior : &digests.back();
    const auto page = tokens.subspan(begin, length);
    digests.push_back(overlap == 1 ? HashSglangBigramPage(parent, page)
                                   : HashSglangPage(parent, page));
  }
  return digests;
}

Result<std::vector<Digest>> BlockHasher::HashPrompt(
    std::span<const std::int32_t> tokens, std::uint32_t block_size, std::string_view lora_name,
    std::string_view cache_salt, std::span<const ExtraKeys> block_extra_keys) const {
  if (block_size == 0) {
    return InvalidField("invalid_value", "block_size", "prompt hash: block_size: expected > 0");
  }
  CONDUCTOR_RETURN_IF_ERROR(CheckText(lora_name, "lora_name"));
  CONDUCTOR_RETURN_IF_ERROR(CheckText(cache_salt, "cache_salt"));
  if (!IsVllm()) {
    const std::optional<Digest> seed = SaltSeed(cache_salt);
    return HashPages(seed ? &*seed : nullptr, tokens, block_size);
  }
  std::vector<Digest> digests;
  const std::size_t blocks = tokens.size() / block_size;
  digests.reserve(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    std::span<const ExtraKey> own_keys;
    if (i < block_extra_keys.size()) own_keys = block_extra_keys[i];
    CONDUCTOR_RETURN_IF_ERROR(CheckTexts(own_keys));
    const ExtraKeys keys = EngineExtraKeys(lora_name, i, own_keys, cache_salt);
    const Digest& parent = digests.empty() ? root_ : digests.back();
    digests.push_back(HashVllm(parent, tokens.subspan(i * block_size, block_size), keys));
  }
  return digests;
}

}  // namespace conductor
