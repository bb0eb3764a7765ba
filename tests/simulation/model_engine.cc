#include "tests/simulation/model_engine.h"

#include <algorithm>

#include "src/check.h"
#include "src/hash/extra_keys.h"
#include "src/hash/profile.h"

namespace conductor::simulation {

using enginesim::Era;
using enginesim::NameForm;

namespace {

HashProfile Profile(const char* seed) {
  auto profile = MakeHashProfile("vllm_v1", "sha256_cbor", seed, "low64_be");
  CHECK(profile);
  return *profile;
}

constexpr Era kEras[] = {Era::kA, Era::kB011, Era::kB015, Era::kB, Era::kBAll, Era::kC, Era::kMap};
constexpr NameForm kForms[] = {NameForm::kInt, NameForm::kSignedInt, NameForm::kBytes};

bool Has(const CacheContent& content, Tier tier, const Digest& digest) {
  const auto found = content.find(tier);
  return found != content.end() && found->second.contains(digest);
}

}  // namespace

void ApplyChange(const CacheChange& change, CacheContent& content) {
  switch (change.kind) {
    case CacheChange::Kind::kAdd:
      content[change.tier].insert(change.digest);
      break;
    case CacheChange::Kind::kRemove:
      content[change.tier].erase(change.digest);
      break;
    case CacheChange::Kind::kClearDevice:
      content[Tier::kDevice].clear();
      break;
  }
}

EngineTraits EngineTraits::Any(Random& random) {
  EngineTraits traits;
  traits.era = kEras[random.Below(std::size(kEras))];
  traits.names = kForms[random.Below(std::size(kForms))];
  traits.right_seed = random.Percent(75);
  const bool kinds = traits.era >= Era::kBAll;
  traits.main_group = kinds && random.Percent(40) ? 1 : 0;
  traits.cpu_tier = traits.era != Era::kA && random.Percent(50);
  // A name alone is found by the exact chain of hashes only.
  traits.tokenless_cpu = traits.right_seed && random.Percent(50);
  traits.noise = random.Percent(50);
  return traits;
}

HashProfile ModelEngine::RegisteredProfile() {
  return Profile("0");
}

ModelEngine::ModelEngine(const EngineTraits& traits, const PromptPool& pool)
    : traits_(traits), hasher_(Profile(traits.right_seed ? "0" : "1")) {
  for (const Prompt& prompt : pool.prompts()) {
    if (prompt.needs_extra_keys() && !HasExtraKeys(traits.era)) continue;
    const bool numbered = LoraIdOfName(prompt.lora_name).has_value();
    // The oldest releases hash an adapter's number; the ones after them do not say its name.
    if (!prompt.lora_name.empty() && numbered != (traits.era == Era::kA)) continue;
    if (!prompt.lora_name.empty() && traits.era == Era::kB011) continue;
    served_.push_back({&prompt, PromptPool::Chain(hasher_, prompt)});
  }
}

bool ModelEngine::HasGroups() const {
  return traits_.era >= Era::kB;
}
bool ModelEngine::HasKinds() const {
  return traits_.era >= Era::kBAll;
}

enginesim::WireHash ModelEngine::Spell(const Digest& digest) const {
  switch (traits_.names) {
    case NameForm::kBytes:
      return std::string(digest.begin(), digest.end());
    case NameForm::kSignedInt:
      return static_cast<std::int64_t>(hasher_.Project(digest));
    case NameForm::kInt:
      break;
  }
  return hasher_.Project(digest);
}

Work ModelEngine::Next(Random& random, const CacheContent& content) const {
  Work work;
  // What this piece of work does is seen by its later parts.
  CacheContent now = content;
  for (std::uint64_t parts = 1 + random.Below(3); parts > 0; --parts) {
    const std::size_t done = work.changes.size();
    const Served& served = served_[random.Below(served_.size())];
    const std::uint64_t kind = random.Below(100);
    if (kind < 55) {
      Store(served, 1 + random.Below(served.chain.size()), now, work);
    } else if (kind < 70) {
      CopyToCpu(served, random, now, work);
    } else if (kind < 97) {
      Evict(random, now, work);
    } else {
      work.events.emplace_back(enginesim::AllBlocksClearedEvent{});
      work.changes.push_back({CacheChange::Kind::kClearDevice, Tier::kDevice, {}});
    }
    if (traits_.noise && random.Percent(20)) AddNoise(random, work);
    for (std::size_t i = done; i < work.changes.size(); ++i) ApplyChange(work.changes[i], now);
  }
  return work;
}

// Stores what the cache has not of the prompt's first `end` blocks, stretch by stretch.
void ModelEngine::Store(const Served& served, std::size_t end, const CacheContent& content,
                        Work& work) const {
  std::size_t begin = 0;
  while (begin < end) {
    if (Has(content, Tier::kDevice, served.chain[begin])) {
      ++begin;
      continue;
    }
    std::size_t stop = begin;
    while (stop < end && !Has(content, Tier::kDevice, served.chain[stop])) ++stop;
    StoreStretch(served, {begin, stop}, work);
    begin = stop;
  }
}

void ModelEngine::StoreStretch(const Served& served, std::pair<std::size_t, std::size_t> range,
                               Work& work) const {
  work.events.emplace_back(Describe(served, range));
  for (std::size_t i = range.first; i < range.second; ++i) {
    work.changes.push_back({CacheChange::Kind::kAdd, Tier::kDevice, served.chain[i]});
  }
}

enginesim::BlockStoredEvent ModelEngine::Describe(const Served& served,
                                                  std::pair<std::size_t, std::size_t> range) const {
  const Prompt& prompt = *served.prompt;
  enginesim::BlockStoredEvent event;
  const auto token = [&](std::size_t block) {
    return prompt.tokens.begin() + static_cast<std::ptrdiff_t>(block * kBlockSize);
  };
  event.token_ids.assign(token(range.first), token(range.second));
  event.block_size = kBlockSize;
  if (HasGroups()) event.group_idx = traits_.main_group;
  if (HasKinds()) event.spec_kind = "full_attention";
  if (range.first > 0) event.parent_block_hash = Spell(served.chain[range.first - 1]);
  bool has_keys = false;
  std::vector<ExtraKeys> extra_keys;
  for (std::size_t block = range.first; block < range.second; ++block) {
    event.block_hashes.push_back(Spell(served.chain[block]));
    const ExtraKeys own = block < prompt.items.size() ? prompt.items[block] : ExtraKeys{};
    extra_keys.push_back(EngineExtraKeys(prompt.lora_name, block, own, prompt.salt));
    has_keys = has_keys || !extra_keys.back().empty();
  }
  if (has_keys || HasExtraKeys(traits_.era)) event.extra_keys = std::move(extra_keys);
  if (!prompt.lora_name.empty()) {
    event.lora_id = kAdapterId;
    if (!LoraIdOfName(prompt.lora_name)) event.lora_name = prompt.lora_name;
  }
  return event;
}

// Copies a stretch of device blocks to the CPU tier, where they may outlive the originals.
void ModelEngine::CopyToCpu(const Served& served, Random& random, const CacheContent& content,
                            Work& work) const {
  if (!traits_.cpu_tier) return;
  const std::size_t begin = random.Below(served.chain.size());
  std::size_t end = begin;
  while (end < served.chain.size() && Has(content, Tier::kDevice, served.chain[end]) &&
         !Has(content, Tier::kCpuLocal, served.chain[end])) {
    ++end;
  }
  if (begin == end) return;
  enginesim::BlockStoredEvent event = Describe(served, {begin, end});
  event.medium = "CPU";
  if (traits_.tokenless_cpu) {
    event.token_ids.clear();
    event.parent_block_hash.reset();
    event.extra_keys.reset();
  }
  work.events.emplace_back(std::move(event));
  for (std::size_t i = begin; i < end; ++i) {
    work.changes.push_back({CacheChange::Kind::kAdd, Tier::kCpuLocal, served.chain[i]});
  }
}

// Evicts some blocks of one tier, wherever in their chains they stand.
void ModelEngine::Evict(Random& random, const CacheContent& content, Work& work) const {
  const Tier tier = traits_.cpu_tier && random.Percent(40) ? Tier::kCpuLocal : Tier::kDevice;
  const auto found = content.find(tier);
  if (found == content.end() || found->second.empty()) return;
  enginesim::BlockRemovedEvent event;
  if (tier == Tier::kCpuLocal) event.medium = "CPU";
  if (HasGroups()) event.group_idx = traits_.main_group;
  const std::uint64_t percent = random.Percent(10) ? 90 : 10;
  for (const Digest& digest : found->second) {
    if (!random.Percent(percent)) continue;
    event.block_hashes.push_back(Spell(digest));
    work.changes.push_back({CacheChange::Kind::kRemove, tier, digest});
  }
  if (!event.block_hashes.empty()) work.events.emplace_back(std::move(event));
}

// Events that say nothing about prefix hits.
void ModelEngine::AddNoise(Random& random, Work& work) const {
  const Served& served = served_[random.Below(served_.size())];
  enginesim::BlockStoredEvent event = Describe(served, {0, 1});
  event.block_hashes = {std::uint64_t{0xabcd0000} + random.Below(4)};
  const std::uint64_t kind = random.Below(3);
  if (kind == 0 && HasKinds()) {
    event.group_idx = 1 - traits_.main_group;
    event.spec_kind = "sliding_window";
  } else if (kind == 1 && traits_.era != Era::kA) {
    event.medium = "PAPER";
  } else {
    event.block_size = 2 * kBlockSize;  // contradicts the registration
  }
  work.events.emplace_back(std::move(event));
}

std::string ModelEngine::Encode(const Work& work, double seconds) const {
  enginesim::EventBatch batch;
  batch.ts = seconds;
  batch.events = work.events;
  batch.dp_rank = traits_.dp_rank;
  return EncodeBatch(traits_.era, batch);
}

}  // namespace conductor::simulation
