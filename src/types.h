// The nouns of the domain: tiers, publishers, profiles, names. Plain values, no behaviour beyond
// spelling. Every enum value below reaches the disk (storage/record.proto): explicit, from 1,
// never reused.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/whole_digest.h"

namespace conductor {

// Position in the log: from 1, no holes. 0 means "nothing".
using Seq = std::uint64_t;

// One registration's stream of frames, unique for the life of the log. Assigned by Apply, in
// registration order, from 1.
using StreamId = std::uint64_t;

// A full SHA-256 digest.
using Digest = std::array<std::uint8_t, 32>;

// The first 16 bytes of SHA-256("conductor-salt-v1\0" || salt). The salt itself is never stored.
using SaltDigest = std::array<std::uint8_t, 16>;

enum class PublisherType : std::uint8_t { kVllm = 1, kSglang = 2, kMooncake = 3 };

// In query order: a query's cursor passes device, cpu_local, cpu_share, disk and never goes back.
enum class Tier : std::uint8_t { kDevice = 1, kCpuLocal = 2, kCpuShare = 3, kDisk = 4 };
inline constexpr int kTierCount = 4;

enum class HashStrategy : std::uint8_t { kVllmV1 = 1, kSglang = 2, kSglangBigram = 3 };
enum class HashAlgorithm : std::uint8_t { kSha256 = 1, kSha256Cbor = 2, kSha256Raw = 3 };

// The recipe by which an engine names its blocks. Build one with MakeHashProfile (hash/profile.h),
// which refuses every combination outside the contract.
struct HashProfile {
  HashStrategy strategy = HashStrategy::kVllmV1;
  HashAlgorithm algorithm = HashAlgorithm::kSha256Cbor;
  // Verbatim: "0" and "00" are different seeds. Always "0" for the SGLang strategies.
  std::string python_hash_seed = "0";
  // Derived: the first parent of a vLLM chain; 32 zero bytes for the SGLang strategies.
  Digest root_digest{};

  bool operator==(const HashProfile&) const = default;
};

// The words of the contract: "vLLM", "device", "vllm_v1", "sha256_cbor", "low64_be".
std::string_view ToString(PublisherType type);
std::string_view ToString(Tier tier);
std::string_view ToString(HashStrategy strategy);
std::string_view ToString(HashAlgorithm algorithm);
std::string_view IndexProjection(HashStrategy strategy);
std::optional<PublisherType> ParsePublisherType(std::string_view text);

// A block's name as its publisher spells it: 64 bits, or a longer digest with its projection.
// SGLang's signed integers are the same 64 bits. An 8-byte binary is the integer it spells.
struct BlockName {
  // The integer, or the projection of `digest` (vLLM: last 8 bytes, SGLang: first 8; big-endian).
  std::uint64_t projected = 0;
  // The whole digest when the wire carried more than 8 bytes; else empty. Compared whole.
  WholeDigest digest;

  auto operator<=>(const BlockName&) const = default;
};

// What separates one prefix tree from another. An empty LoRA name is the base model.
struct ContextKey {
  std::string tenant_id = "default";
  std::string model_name;
  std::string lora_name;
  std::uint32_t block_size = 0;

  auto operator<=>(const ContextKey&) const = default;
};

// Identity of a registration: at most one active registration per key.
struct ServiceKey {
  std::string instance_id;
  std::string tenant_id = "default";
  std::uint32_t dp_rank = 0;

  auto operator<=>(const ServiceKey&) const = default;
};

// One entry of a block's extra keys, in engine order (LoRA name, multimodal items, salt, prompt
// embeds). Exactly one alternative is meant by `kind`.
struct ExtraKey {
  enum class Kind : std::uint8_t {
    kText = 1,     // LoRA name, salt, or an old image identifier
    kInteger = 2,  // LoRA id of old releases
    kItem = 3,     // (multimodal identifier, offset of the item from the block's first token)
    kBytes = 4,    // SHA-256 of the block's prompt embeds
  };
  Kind kind = Kind::kText;
  std::string text;          // kText, kItem (the identifier), kBytes (raw)
  std::int64_t integer = 0;  // kInteger, kItem (the offset, may be negative)

  bool operator==(const ExtraKey&) const = default;
};
using ExtraKeys = std::vector<ExtraKey>;

}  // namespace conductor
