// Fingerprint v1: the 64-bit content identity of a block. A DISK FORMAT, frozen: tokens are not
// stored, so it can never be recomputed. tests/golden/fingerprint_v1.json holds its vectors.
//
//   fingerprint = XXH3_64bits_withSeed(bytes, seed)
//   seed        = number of tokens of the block
//   bytes       = tokens as little-endian int32, then one entry per remaining extra key, in order:
//     kText    01, u32 length, UTF-8 bytes
//     kInteger 02, i64
//     kItem    03, u32 length, UTF-8 bytes of the identifier, i64 offset
//     kBytes   04, u32 length, bytes                        (all integers little-endian)
//
// Nothing is appended when no key remains: such a block is hashed in place. The encoding is
// injective, because the seed tells the tokens from the keys and every entry tells its own length.
// "Remaining" keys are those that SplitExtraKeys leaves; events and queries both pass through it,
// so that one block has one fingerprint. A bigram page hashes its L+1 tokens.
// The fingerprint is local to the block. Pure functions; any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/hash/extra_key_list.h"
#include "src/types.h"

namespace conductor {

// What a block is, apart from its place in the tree.
struct BlockIdentity {
  std::uint64_t fingerprint = 0;

  bool operator==(const BlockIdentity&) const = default;
};

std::uint64_t FingerprintV1(std::span<const std::int32_t> tokens, ExtraKeyList remaining);

// The fingerprints of out.size() full blocks without extra keys: block i begins at token
// i * block_size. `overlap` tokens of the next block belong to each (1 for bigram pages, else 0).
// The tokens reach to the end of the last block.
void FingerprintTokens(std::span<const std::int32_t> tokens, std::uint32_t block_size,
                       std::span<std::uint64_t> out, std::uint32_t overlap = 0);

struct SplitKeys {
  ExtraKeys remaining;
  // Selects the tree's root, by DigestSalt.
  std::optional<std::string> salt;
};

// Takes out of a block's keys what the context and the root already say: the adapter (the first
// entry, if it equals the adapter's name or number) and, in the block at token 0 only, the salt:
// the last bare text that is left. An old image identifier that stands there is taken for a salt,
// in events and queries alike: the engine's hash cannot tell them apart either.
SplitKeys SplitExtraKeys(const ExtraKeys& keys, std::string_view lora_name,
                         std::optional<std::int64_t> lora_id, bool first_block);

// The same without copies: both parts point to what `keys` points to.
struct SplitKeyViews {
  ExtraKeyList remaining;
  std::optional<std::string_view> salt;
};
SplitKeyViews SplitExtraKeyViews(ExtraKeyList keys, std::string_view lora_name,
                                 std::optional<std::int64_t> lora_id, bool first_block);

// The first 16 bytes of SHA-256("conductor-salt-v1" 00 salt): what is kept of a salt.
SaltDigest DigestSalt(std::string_view salt);

}  // namespace conductor
