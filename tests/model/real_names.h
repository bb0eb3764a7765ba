// The engines' own hashes for the random operations: with them the generator's prompts can be asked
// through the real query path, which hashes tokens itself. Link conductor_domain to use it.
#pragma once

#include "src/check.h"
#include "src/hash/chain.h"
#include "src/hash/extra_keys.h"
#include "src/hash/fingerprint.h"
#include "src/hash/profile.h"
#include "tests/model/block_names.h"

namespace conductor::model {

class RealNames : public BlockNames {
 public:
  static HashProfile Profile(HashStrategy strategy, const std::string& seed) {
    const bool vllm = strategy == HashStrategy::kVllmV1;
    auto profile = MakeHashProfile(ToString(strategy), vllm ? "sha256_cbor" : "sha256_raw",
                                   vllm ? seed : "0", IndexProjection(strategy));
    CHECK(profile);
    return *profile;
  }
  Digest Next(const ChainSpec& chain, const Digest* parent,
              const BlockContent& content) const override {
    const BlockHasher hasher(Profile(chain.strategy, chain.seed));
    std::optional<Digest> seed;
    if (!parent) seed = hasher.SaltSeed(chain.salt);
    const ExtraKeys keys = EngineExtraKeys(chain.lora_name, parent ? 1 : 0, ItemKeys(content),
                                           parent ? "" : chain.salt);
    auto digest = hasher.HashBlock(seed ? &*seed : parent, content.tokens, keys);
    CHECK(digest);
    return *digest;
  }
  std::uint64_t Project(HashStrategy strategy, const Digest& digest) const override {
    return BlockHasher(Profile(strategy, "0")).Project(digest);
  }
  std::uint64_t Fingerprint(const BlockContent& content, bool with_keys) const override {
    return FingerprintV1(content.tokens, with_keys ? ItemKeys(content) : ExtraKeys{});
  }
  SaltDigest Salt(const std::string& salt) const override { return DigestSalt(salt); }

  static ExtraKeys ItemKeys(const BlockContent& content) {
    if (content.item.empty()) return {};
    ExtraKey key;
    key.kind = ExtraKey::Kind::kItem;
    key.text = content.item;
    return {key};
  }
};

}  // namespace conductor::model
