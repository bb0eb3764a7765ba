// How the random operations name blocks. The generator thinks in prompts (contents, salt, adapter);
// a BlockNames turns them into digests, projections, fingerprints and salt digests.
//
// SyntheticNames is a cheap mixer: enough when both sides take names and fingerprints as given.
// real_names.h has the engines' own hashes, for a comparison through the real query path.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/types.h"

namespace conductor::model {

// The content of one block: its tokens and, maybe, an item (image) at its first token.
struct BlockContent {
  std::vector<std::int32_t> tokens;
  std::string item;  // empty: none
};

// What selects a chain besides its contents.
struct ChainSpec {
  HashStrategy strategy = HashStrategy::kVllmV1;
  std::string seed = "0";
  std::string lora_name;
  std::string salt;
};

class BlockNames {
 public:
  virtual ~BlockNames() = default;
  // A null parent is the start of the chain; only there the salt counts.
  virtual Digest Next(const ChainSpec& chain, const Digest* parent,
                      const BlockContent& content) const = 0;
  virtual std::uint64_t Project(HashStrategy strategy, const Digest& digest) const = 0;
  // Without `with_keys` the item is not seen (it was not on the wire).
  virtual std::uint64_t Fingerprint(const BlockContent& content, bool with_keys) const = 0;
  virtual SaltDigest Salt(const std::string& salt) const = 0;
};

class SyntheticNames : public BlockNames {
 public:
  Digest Next(const ChainSpec& chain, const Digest* parent,
              const BlockContent& content) const override {
    const bool sglang = chain.strategy != HashStrategy::kVllmV1;
    Mixer mixer;
    if (parent) {
      for (std::uint8_t byte : *parent) mixer.Add(byte);
    } else {
      mixer.Add(sglang ? "sglang" : chain.seed);
      if (sglang) mixer.Add(chain.salt);
    }
    for (std::int32_t token : content.tokens) mixer.Add(static_cast<std::uint32_t>(token));
    if (!sglang) {
      mixer.Add(chain.lora_name);
      mixer.Add(content.item);
      mixer.Add(parent ? "" : chain.salt);
    }
    Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i) {
      if (i % 8 == 0) mixer.Add(i);
      digest[i] = static_cast<std::uint8_t>(mixer.value >> (8 * (i % 8)));
    }
    return digest;
  }
  std::uint64_t Project(HashStrategy strategy, const Digest& digest) const override {
    const std::size_t from = strategy == HashStrategy::kVllmV1 ? 24 : 0;
    std::uint64_t value = 0;
    for (std::size_t i = from; i < from + 8; ++i) value = (value << 8) | digest[i];
    return value;
  }
  std::uint64_t Fingerprint(const BlockContent& content, bool with_keys) const override {
    Mixer mixer;
    for (std::int32_t token : content.tokens) mixer.Add(static_cast<std::uint32_t>(token));
    mixer.Add(with_keys ? content.item : "");
    return mixer.value;
  }
  SaltDigest Salt(const std::string& salt) const override {
    Mixer mixer;
    mixer.Add(salt);
    SaltDigest digest{};
    for (std::size_t i = 0; i < 8; ++i) {
      digest[i] = static_cast<std::uint8_t>(mixer.value >> (8 * i));
    }
    return digest;
  }

 private:
  struct Mixer {
    std::uint64_t value = 0x9e3779b97f4a7c15u;
    void Add(std::uint64_t word) {
      value = (value ^ word) * 0xbf58476d1ce4e5b9u;
      value ^= value >> 29;
      value *= 0x94d049bb133111ebu;
      value ^= value >> 32;
    }
    void Add(const std::string& text) {
      Add(text.size());
      for (char byte : text) Add(static_cast<std::uint8_t>(byte));
    }
  };
};

}  // namespace conductor::model
