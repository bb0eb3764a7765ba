#include "src/hash/profile.h"

#include <cstdint>
#include <optional>
#include <string>

#include "src/hash/cbor.h"
#include "src/hash/pickle.h"
#include "src/hash/sha256.h"

namespace conductor {
namespace {

constexpr std::string_view kRandomSeed = "random";
constexpr std::string_view kUnsetSeed = "vllm-none-hash";
constexpr std::uint64_t kSeedMax = 4294967295;
constexpr std::size_t kQuotedBytesMax = 80;

struct Field {
  std::string_view name;
  std::string_view value;
  std::string_view expected;
};

tl::unexpected<Error> Refuse(const Field& field) {
  if (field.value.empty()) {
    return InvalidField("missing", std::string(field.name),
                        "hash_profile: " + std::string(field.name) + " is missing, expected " +
                            std::string(field.expected));
  }
  return InvalidField("invalid_value", std::string(field.name),
                      "hash_profile: " + std::string(field.name) + ": expected " +
                          std::string(field.expected) + ", got '" +
                          std::string(field.value.substr(0, kQuotedBytesMax)) + "'");
}

std::optional<HashStrategy> ParseStrategy(std::string_view text) {
  for (auto strategy :
       {HashStrategy::kVllmV1, HashStrategy::kSglang, HashStrategy::kSglangBigram}) {
    if (text == ToString(strategy)) return strategy;
  }
  return std::nullopt;
}

std::optional<HashAlgorithm> ParseAlgorithm(std::string_view text) {
  for (auto algorithm :
       {HashAlgorithm::kSha256, HashAlgorithm::kSha256Cbor, HashAlgorithm::kSha256Raw}) {
    if (text == ToString(algorithm)) return algorithm;
  }
  return std::nullopt;
}

bool IsSeed(std::string_view text) {
  if (text == kRandomSeed || text == kUnsetSeed) return true;
  if (text.empty() || text.size() > kSeedTextBytesMax) return false;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
    if (value > kSeedMax) return false;
  }
  return true;
}

// NONE_HASH: the seed text, serialised as a string and hashed, is the parent of every first block.
Digest VllmRoot(HashAlgorithm algorithm, std::string_view seed) {
  ByteBuffer buffer;
  if (algorithm == HashAlgorithm::kSha256) {
    EncodePickleText(seed, buffer);
  } else {
    EncodeCborText(seed, buffer);
  }
  return Sha256(buffer.bytes());
}

}  // namespace

Result<HashProfile> MakeHashProfile(std::string_view strategy, std::string_view algorithm,
                                    std::string_view python_hash_seed,
                                    std::string_view index_projection) {
  const std::optional<HashStrategy> parsed_strategy = ParseStrategy(strategy);
  if (!parsed_strategy) {
    return Refuse({"strategy", strategy, "vllm_v1, sglang or sglang_bigram"});
  }
  const bool vllm = *parsed_strategy == HashStrategy::kVllmV1;
  const std::optional<HashAlgorithm> parsed_algorithm = ParseAlgorithm(algorithm);
  if (!parsed_algorithm || (*parsed_algorithm == HashAlgorithm::kSha256Raw) == vllm) {
    return Refuse({"algorithm", algorithm,
                   vllm ? "sha256 or sha256_cbor with vllm_v1" : "sha256_raw with sglang"});
  }
  const bool no_seed_needed = !vllm && python_hash_seed.empty();
  if (!no_seed_needed && !IsSeed(python_hash_seed)) {
    return Refuse({"python_hash_seed", python_hash_seed,
                   "decimal text 0..4294967295, 'random' or 'vllm-none-hash'"});
  }
  const std::string_view projection = IndexProjection(*parsed_strategy);
  if (index_projection != projection) {
    return Refuse({"index_projection", index_projection, projection});
  }

  HashProfile profile;
  profile.strategy = *parsed_strategy;
  profile.algorithm = *parsed_algorithm;
  if (vllm) {
    profile.python_hash_seed = std::string(python_hash_seed);
    profile.root_digest = VllmRoot(*parsed_algorithm, python_hash_seed);
  }
  return profile;
}

}  // namespace conductor
