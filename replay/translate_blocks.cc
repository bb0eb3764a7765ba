// The blocks of a stored event: their fingerprints, their salt, and the comparison of their names
// with the hashes recomputed from the parent's full digest.
#include <algorithm>
#include <span>
#include <utility>

#include "replay/translator.h"
#include "src/hash/fingerprint.h"

namespace conductor {
namespace {

// What the engine hashed into every block besides its tokens, as far as the wire holds no keys of
// the block: releases that do not put them there leave what the event says of the adapter; a salt
// stays hidden.
std::optional<ExtraKeyView> KeyOfAllBlocks(const WireEvent& event) {
  if (event.extra_keys_on_wire) return std::nullopt;
  if (event.lora_name && !event.lora_name->empty()) {
    return ExtraKeyView{ExtraKey::Kind::kText, *event.lora_name, 0};
  }
  if (event.lora_id) return ExtraKeyView{ExtraKey::Kind::kInteger, {}, *event.lora_id};
  return std::nullopt;
}

// Digests recomputed block by block; unknown from the first block on that cannot be computed.
struct Chain {
  bool known = false;
  bool at_start = false;  // nothing precedes the next block
  Digest digest{};

  const Digest* parent() const { return at_start ? nullptr : &digest; }
};

}  // namespace

void Translator::FillNames(const WireEvent& event, Stored& stored) const {
  stored.blocks.reserve(event.names.size());
  for (const BlockName& name : event.names) {
    stored.blocks.push_back({name, 0, HashCheck::kNotComputed});
  }
}

void Translator::FillBlocks(const WireEvent& event, const Adapter& adapter, Stored& stored) {
  const std::span<const std::int32_t> tokens = event.bigram ? joined_tokens_ : event.token_ids;
  const std::size_t step = stored.block_length;
  const std::size_t length = step + (event.bigram ? 1 : 0);
  const bool sglang = registration_.type == PublisherType::kSglang;

  Chain chain;
  if (event.parent) {
    if (const auto digest = DigestOf(adapter, *event.parent)) chain = {true, false, *digest};
  } else {
    chain = {true, true, {}};
    if (sglang && event.cache_salt) {
      stored.salt = DigestSalt(*event.cache_salt);
      if (const auto seed = hasher_.SaltSeed(*event.cache_salt)) chain = {true, false, *seed};
    }
  }
  if (event.opaque_extra_keys) chain.known = false;

  const DigestCache::Scope scope = ScopeOf(adapter.name);
  const std::optional<ExtraKeyView> key_of_all = sglang ? std::nullopt : KeyOfAllBlocks(event);
  ExtraKeyList keys_of_all;
  if (key_of_all) keys_of_all = std::span(&*key_of_all, 1);
  stored.blocks.reserve(event.names.size());
  for (std::size_t i = 0; i < event.names.size(); ++i) {
    StoredBlock& block = stored.blocks.emplace_back();
    block.name = event.names[i];
    const auto own = tokens.subspan(i * step, length);
    const bool first = i == 0 && !event.parent;
    ExtraKeyList own_keys, remaining;
    const bool has_own_keys = !sglang && i < event.extra_keys.size();
    if (has_own_keys) {
      own_keys = event.extra_keys[i];
      const SplitKeyViews split = SplitExtraKeyViews(own_keys, adapter.name, event.lora_id, first);
      if (split.salt) stored.salt = DigestSalt(*split.salt);
      remaining = split.remaining;
    }
    block.fingerprint = FingerprintV1(own, remaining);
    if (!chain.known) continue;
    cache_.Prefetch(scope, block.name);
    const auto digest =
        hasher_.HashBlock(chain.parent(), own, has_own_keys ? own_keys : keys_of_all);
    if (!digest) {
      chain.known = false;
      continue;
    }
    chain = {true, false, *digest};
    block.check = IsNameOf(block.name, *digest) ? HashCheck::kEqual : HashCheck::kDiffers;
    cache_.Put(scope, block.name, *digest);
  }
  if (chain.known) stored.last_digest = chain.digest;
}

// The digest recomputed for a block of this stream, from what this thread has seen or the state.
std::optional<Digest> Translator::DigestOf(const Adapter& adapter, const BlockName& name) {
  if (auto digest = cache_.Find(ScopeOf(adapter.name), name)) return digest;
  auto digest = digests_.FindDigest(stream_, std::string(adapter.name), name);
  if (digest && !state_is_this_life_ && !IsNameOf(name, *digest)) return std::nullopt;
  return digest;
}

bool Translator::IsNameOf(const BlockName& name, const Digest& digest) const {
  if (name.digest.empty()) return hasher_.Project(digest) == name.projected;
  return std::equal(name.digest.begin(), name.digest.end(), digest.begin(), digest.end(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

DigestCache::Scope Translator::ScopeOf(std::string_view adapter) {
  if (const auto known = scopes_.find(adapter); known != scopes_.end()) return known->second;
  if (scopes_.size() >= kAdapterScopesMax) scopes_.clear();
  return scopes_.emplace(adapter, cache_.NewScope()).first->second;
}

}  // namespace conductor
