#include "src/hash/fingerprint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "src/check.h"
#include "src/hash/byte_buffer.h"
#include "src/hash/extra_keys.h"
#include "src/hash/sha256.h"
#include "src/hash/xxh3.h"

namespace conductor {
namespace {

// Tokens are hashed where they lie.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(XXH64_hash_t) == sizeof(std::uint64_t));
// The kinds are bytes of the format.
static_assert(static_cast<int>(ExtraKey::Kind::kText) == 1);
static_assert(static_cast<int>(ExtraKey::Kind::kInteger) == 2);
static_assert(static_cast<int>(ExtraKey::Kind::kItem) == 3);
static_assert(static_cast<int>(ExtraKey::Kind::kBytes) == 4);

constexpr std::string_view kSaltDomain("conductor-salt-v1\0", 18);

std::span<const std::uint8_t> Words(std::span<const std::int32_t> tokens) {
  return {reinterpret_cast<const std::uint8_t*>(tokens.data()), tokens.size_bytes()};
}

// Blocks of usual sizes never leave this unit.
std::uint64_t Hash(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
  if (bytes.size() > kXxh3ShortBytes) return Xxh3(bytes, seed);
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// Texts are bounded by the limits of wire and request, far below 4 GiB.
void PutText(std::string_view text, ByteBuffer& out) {
  out.PutLittleEndian(text.size(), 4);
  out.Append(BytesOf(text));
}

void PutKey(const ExtraKeyView& key, ByteBuffer& out) {
  out.Put(static_cast<std::uint8_t>(key.kind));
  const bool has_text = key.kind != ExtraKey::Kind::kInteger;
  const bool has_integer =
      key.kind == ExtraKey::Kind::kInteger || key.kind == ExtraKey::Kind::kItem;
  if (has_text) PutText(key.text, out);
  if (has_integer) out.PutLittleEndian(static_cast<std::uint64_t>(key.integer), 8);
}

bool IsAdapter(const ExtraKeyView& key, std::string_view lora_name,
               std::optional<std::int64_t> lora_id) {
  if (key.kind == ExtraKey::Kind::kText) return !lora_name.empty() && key.text == lora_name;
  if (key.kind != ExtraKey::Kind::kInteger) return false;
  return key.integer == lora_id || key.integer == LoraIdOfName(lora_name);
}

}  // namespace

std::uint64_t FingerprintV1(std::span<const std::int32_t> tokens, ExtraKeyList remaining) {
  if (remaining.empty()) return Hash(Words(tokens), tokens.size());
  ByteBuffer buffer;
  buffer.Append(Words(tokens));
  for (std::size_t i = 0; i < remaining.size(); ++i) PutKey(remaining[i], buffer);
  return Hash(buffer.bytes(), tokens.size());
}

void FingerprintTokens(std::span<const std::int32_t> tokens, std::uint32_t block_size,
                       std::span<std::uint64_t> out, std::uint32_t overlap) {
  CHECK(block_size > 0);
  if (out.empty()) return;
  CHECK(tokens.size() >= overlap && out.size() <= (tokens.size() - overlap) / block_size);
  const std::size_t length = std::size_t{block_size} + overlap;
  if (length * sizeof(std::int32_t) > kXxh3ShortBytes) {
    const Xxh3Pieces pieces{Words(tokens).data(), block_size * sizeof(std::int32_t),
                            length * sizeof(std::int32_t)};
    return BestXxh3Kernel().hash_pieces(pieces, length, out.size(), out.data());
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int32_t* block = tokens.data() + i * block_size;
    out[i] = XXH3_64bits_withSeed(block, length * sizeof(std::int32_t), length);
  }
}

SplitKeyViews SplitExtraKeyViews(ExtraKeyList keys, std::string_view lora_name,
                                 std::optional<std::int64_t> lora_id, bool first_block) {
  SplitKeyViews split{keys, std::nullopt};
  if (keys.empty()) return split;
  if (IsAdapter(keys[0], lora_name, lora_id)) split.remaining = keys.WithoutFirst();
  if (!first_block) return split;
  for (std::size_t i = split.remaining.size(); i > 0; --i) {
    const ExtraKeyView key = split.remaining[i - 1];
    if (key.kind != ExtraKey::Kind::kText) continue;
    split.salt = key.text;
    split.remaining = split.remaining.Without(i - 1);
    break;
  }
  return split;
}

SplitKeys SplitExtraKeys(const ExtraKeys& keys, std::string_view lora_name,
                         std::optional<std::int64_t> lora_id, bool first_block) {
  const SplitKeyViews views = SplitExtraKeyViews(keys, lora_name, lora_id, first_block);
  SplitKeys split;
  split.remaining.reserve(views.remaining.size());
  for (std::size_t i = 0; i < views.remaining.size(); ++i) {
    const ExtraKeyView key = views.remaining[i];
    split.remaining.push_back({key.kind, std::string(key.text), key.integer});
  }
  if (views.salt) split.salt.emplace(*views.salt);
  return split;
}

SaltDigest DigestSalt(std::string_view salt) {
  const Digest digest = Sha256Concat({BytesOf(kSaltDomain), BytesOf(salt)});
  SaltDigest first_half;
  std::copy_n(digest.begin(), first_half.size(), first_half.begin());
  return first_half;
}

}  // namespace conductor
