#include "src/hash/sglang.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "src/hash/byte_buffer.h"
#include "src/hash/chain.h"
#include "src/hash/sha256.h"

namespace conductor {
namespace {

// The tokens in memory are the words that are hashed.
static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kSaltDomain("sglang-cache-salt-v1\0", 21);
constexpr std::string_view kNamespaceDomain = "sglang-cache-namespace-v1";

std::span<const std::uint8_t> Words(std::span<const std::int32_t> tokens) {
  return {reinterpret_cast<const std::uint8_t*>(tokens.data()), tokens.size_bytes()};
}

std::span<const std::uint8_t> Prior(const Digest* prior) {
  if (prior == nullptr) return {};
  return *prior;
}

void PutNamespacePart(std::optional<std::string_view> text, ByteBuffer& out) {
  out.Put(text ? 1 : 0);
  if (!text) return;
  out.PutLittleEndian(text->size(), 8);
  out.Append(BytesOf(*text));
}

}  // namespace

Digest HashSglangPage(const Digest* prior, std::span<const std::int32_t> tokens) {
  return Sha256Concat({Prior(prior), Words(tokens)});
}

Digest HashSglangBigramPage(const Digest* prior, std::span<const std::int32_t> tokens) {
  ByteBuffer words;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) words.Append(Words(tokens.subspan(i, 2)));
  return Sha256Concat({Prior(prior), words.bytes()});
}

Status CheckSglangTokens(std::span<const std::int32_t> tokens, std::size_t first_index) {
  const auto negative = std::find_if(tokens.begin(), tokens.end(), [](auto t) { return t < 0; });
  if (negative == tokens.end()) return {};
  const std::size_t index = first_index + static_cast<std::size_t>(negative - tokens.begin());
  return InvalidField("invalid_value", "token_ids",
                      "sglang page hash: token " + std::to_string(index) +
                          ": expected 0..2147483647, got " + std::to_string(*negative),
                      static_cast<long long>(index));
}

std::optional<Digest> BlockHasher::SaltSeed(std::string_view cache_salt) const {
  if (IsVllm() || cache_salt.empty()) return std::nullopt;
  return Sha256Concat({BytesOf(kSaltDomain), BytesOf(cache_salt)});
}

std::optional<Digest> SglangStorageSeed(std::optional<std::string_view> extra_key,
                                        std::optional<std::string_view> cache_salt) {
  if (cache_salt && cache_salt->empty()) cache_salt.reset();
  if (!extra_key && !cache_salt) return std::nullopt;
  ByteBuffer parts;
  PutNamespacePart(extra_key, parts);
  PutNamespacePart(cache_salt, parts);
  return Sha256Concat({BytesOf(kNamespaceDomain), parts.bytes()});
}

}  // namespace conductor
