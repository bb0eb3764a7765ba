#include "tests/model/random_ops.h"

#include <algorithm>

#include "tests/model/store_object.h"

namespace conductor::model {
namespace {

constexpr std::uint32_t kBlockSize = 4;
constexpr std::size_t kPathBlocksMax = 7;
constexpr std::size_t kFavourites = 5;
constexpr std::size_t kStoredRemembered = 48;
constexpr std::uint64_t kForgedNames = 8;

template <typename T>
const T& Pick(RandomSource& random, const std::vector<T>& from) {
  return from[random.Below(from.size())];
}

}  // namespace

RandomOps::RandomOps(RandomSource source, const BlockNames& names, RandomOpsOptions options)
    : random_(source), names_(names), options_(std::move(options)) {
  AddSlots();
  for (std::size_t i = 0; i < kFavourites; ++i) {
    std::vector<BlockContent> blocks;
    for (std::size_t j = 0; j < kPathBlocksMax; ++j) {
      blocks.push_back(RandomContent(HashStrategy::kVllmV1));
    }
    favourites_.push_back(blocks);
  }
}

void RandomOps::AddSlots() {
  const auto add = [&](const std::string& instance, std::uint32_t rank, PublisherType type) {
    Slot slot;
    Registration& registration = slot.registration;
    registration.instance_id = instance;
    registration.dp_rank = rank;
    registration.type = type;
    registration.block_size = kBlockSize;
    registration.model_name = type == PublisherType::kSglang ? "sglang-model" : "vllm-model";
    registration.endpoint = "tcp://" + instance + ":" + std::to_string(5557 + rank);
    registration.hash_profile =
        type == PublisherType::kSglang ? options_.sglang_profile : options_.vllm_profile;
    slots_.push_back(slot);
    return &slots_.back();
  };
  slots_.reserve(16 + options_.more_publishers);
  add("right", 0, PublisherType::kVllm);
  add("right", 1, PublisherType::kVllm);
  add("digests", 0, PublisherType::kVllm)->spelling = Spelling::kDigest;
  add("hidden-keys", 0, PublisherType::kVllm)->keys_on_wire = false;
  add("wrong-seed", 0, PublisherType::kVllm)->seed = "7";
  Slot* wrong_hidden = add("wrong-seed-hidden-keys", 0, PublisherType::kVllm);
  wrong_hidden->seed = "8";
  wrong_hidden->keys_on_wire = false;
  Slot* wrong_digests = add("wrong-seed-digests", 0, PublisherType::kVllm);
  wrong_digests->seed = "7";
  wrong_digests->spelling = Spelling::kDigest;
  if (options_.mixed_spellings) {
    add("mixed", 0, PublisherType::kVllm)->spelling = Spelling::kMixed;
  }
  add("adapter", 0, PublisherType::kVllm)->registration.lora_name = "l1";
  add("other-tenant", 0, PublisherType::kVllm)->registration.tenant_id = "other";
  add("sglang", 0, PublisherType::kSglang);
  add("sglang", 1, PublisherType::kSglang);
  if (options_.pools) {
    add("pool", 0, PublisherType::kMooncake);
    add("whole-pool", 0, PublisherType::kMooncake)->registration.pool_parts = {{"kv", 2}};
  }
  for (std::size_t i = 0; i < options_.more_publishers; ++i) {
    add("right-" + std::to_string(i), 0, PublisherType::kVllm);
  }
}

Record RandomOps::NextRecord() {
  Record record;
  if (!started_) {
    started_ = true;
    for (Slot& slot : slots_) record.facts.push_back(Register(slot));
    return record;
  }
  for (std::uint64_t i = 1 + random_.Below(3); i > 0; --i) record.facts.push_back(NextFact());
  if (random_.Below(500) == 0) AddManyLost(ActiveSlot(), &record);
  return record;
}

Registered RandomOps::Register(Slot& slot) {
  slot.stream = ++streams_registered_;
  slot.next_number = 0;
  slot.stored.clear();
  return {slot.registration,
          random_.Percent(30) ? UnverifiedBlocks::kNameOnly : UnverifiedBlocks::kContent};
}

// More ranges than a stream may have, so that the oldest are merged.
void RandomOps::AddManyLost(Slot& slot, Record* record) {
  for (std::size_t i = 0; i < kLostRangesPerStreamMax + 2; ++i) {
    record->facts.push_back(Lost{slot.stream, slot.next_number, slot.next_number});
    slot.next_number += 2;
  }
}

RandomOps::Slot& RandomOps::ActiveSlot() {
  std::vector<Slot*> active;
  for (Slot& slot : slots_) {
    if (slot.stream != 0) active.push_back(&slot);
  }
  // Registrations change one at a time and come back, so that there is always one.
  return *Pick(random_, active);
}

Fact RandomOps::NextFact() {
  Slot& slot = ActiveSlot();
  if (random_.Percent(90)) return NextFrame(slot);
  switch (random_.Below(10)) {
    case 0:
    case 1:
    case 2:
      if (options_.registrations_change) {
        std::vector<Slot*> idle;
        for (Slot& other : slots_) {
          if (other.stream == 0) idle.push_back(&other);
        }
        if (!idle.empty() && (idle.size() > 4 || random_.Percent(50))) {
          return Register(*Pick(random_, idle));
        }
        slot.stream = 0;
        return Unregistered{slot.registration.Key()};
      }
      return NextEvicted(slot);
    case 3:
      slot.next_number = 0;
      slot.stored.clear();
      return NewEpoch{slot.stream, random_.Percent(30) ? UnverifiedBlocks::kNameOnly
                                                       : UnverifiedBlocks::kContent};
    case 4:
      slot.stored.clear();
      return Dropped{slot.stream, static_cast<DropReason>(1 + random_.Below(3))};
    case 5: {
      const std::uint64_t from = slot.next_number;
      slot.next_number += 1 + random_.Below(3);
      return Lost{slot.stream, from, slot.next_number - 1};
    }
    case 6:
      if (random_.Percent(50))
        return CountingGroup{slot.stream, static_cast<int>(random_.Below(3))};
      return HistoryStart{slot.stream, slot.next_number};
    default:
      return NextEvicted(slot);
  }
}

Frame RandomOps::NextFrame(Slot& slot) {
  Frame frame;
  frame.stream = slot.stream;
  frame.number = slot.next_number++;
  frame.fingerprint = random_.Next();
  if (random_.Percent(5)) frame.ignored[IgnoreReason::kRemote] = 1 + random_.Below(3);
  for (std::uint64_t i = 1 + random_.Below(3); i > 0; --i) {
    const std::uint64_t dice = random_.Below(100);
    if (slot.registration.type == PublisherType::kMooncake) {
      AddPool(slot, &frame);
    } else if (dice < 2) {
      frame.events.push_back(Cleared{random_.Percent(30)});
    } else if (dice < 28) {
      frame.events.push_back(NextRemoved(slot));
    } else if (dice < 40) {
      frame.events.push_back(RemovePath(slot));
    } else if (dice < 48 && options_.token_less) {
      AddTokenLess(slot, &frame.events);
    } else if (dice < 62 && options_.forged_links) {
      AddForged(slot, &frame.events);
    } else {
      AddPath(slot, &frame.events);
    }
  }
  return frame;
}

// --- What is stored ------------------------------------------------------------------------------

BlockContent RandomOps::RandomContent(HashStrategy strategy) {
  const std::uint64_t dice = random_.Below(strategy == HashStrategy::kVllmV1 ? 100 : 80);
  if (dice < 45) return {{1, 2, 3, 4}, ""};
  if (dice < 70) return {{5, 6, 7, 8}, ""};
  if (dice < 80) return {{9, 10, 11, 12}, ""};
  // Placeholder tokens: equal, whatever the item is.
  if (dice < 85) return {{90, 90, 90, 90}, ""};
  return {{90, 90, 90, 90}, dice < 93 ? "image-x" : "image-y"};
}

RandomOps::Path RandomOps::RandomPath(const ContextKey& base, HashStrategy strategy) {
  Path path;
  path.context = base;
  path.strategy = strategy;
  const std::uint64_t salted = random_.Below(100);
  if (salted < 25) path.salt = salted < 17 ? "salt-1" : "salt-2";
  if (strategy == HashStrategy::kVllmV1) {
    const std::uint64_t adapted = random_.Below(100);
    if (adapted < 20) path.context.lora_name = adapted < 15 ? "l1" : "l2";
    if (random_.Percent(70)) {
      path.blocks = Pick(random_, favourites_);
      path.blocks.resize(1 + random_.Below(kPathBlocksMax));
      return path;
    }
  }
  for (std::uint64_t i = 1 + random_.Below(4); i > 0; --i) {
    path.blocks.push_back(RandomContent(strategy));
  }
  if (strategy != HashStrategy::kVllmV1 && random_.Percent(30)) {
    path.blocks.back().tokens.resize(1 + random_.Below(kBlockSize - 1));
  }
  return path;
}

RandomOps::Path RandomOps::PathOf(const Slot& slot) {
  const Registration& registration = slot.registration;
  const bool sglang = registration.type == PublisherType::kSglang;
  Path path =
      RandomPath(registration.Context(), sglang ? HashStrategy::kSglang : HashStrategy::kVllmV1);
  if (path.context.lora_name.empty()) path.context.lora_name = registration.lora_name;
  return path;
}

std::vector<Digest> RandomOps::Chain(const Path& path, const std::string& seed) const {
  const ChainSpec spec{path.strategy, seed, path.context.lora_name, path.salt};
  std::vector<Digest> chain;
  for (const BlockContent& block : path.blocks) {
    chain.push_back(names_.Next(spec, chain.empty() ? nullptr : &chain.back(), block));
  }
  return chain;
}

BlockName RandomOps::Spell(const Slot& slot, HashStrategy strategy, const Digest& digest) {
  BlockName name{names_.Project(strategy, digest), ""};
  if (slot.spelling == Spelling::kDigest ||
      (slot.spelling == Spelling::kMixed && random_.Percent(50))) {
    name.digest = std::string(digest.begin(), digest.end());
  }
  return name;
}

// What the comparison says when an engine of this slot stores the block.
HashCheck RandomOps::CheckOf(const Slot& slot, const Path& path, std::size_t block) {
  if (slot.seed != "0") {
    return random_.Percent(65) ? HashCheck::kDiffers : HashCheck::kNotComputed;
  }
  if (!slot.keys_on_wire) {
    for (std::size_t i = 0; i <= block; ++i) {
      const bool hidden = !path.blocks[i].item.empty() || (i == 0 && !path.salt.empty());
      if (!hidden) continue;
      if (i == block) return HashCheck::kDiffers;
      return random_.Percent(80) ? HashCheck::kNotComputed : HashCheck::kDiffers;
    }
  }
  return random_.Percent(75) ? HashCheck::kEqual : HashCheck::kNotComputed;
}

Tier RandomOps::RandomTier() {
  const std::uint64_t dice = random_.Below(100);
  if (dice < 60) return Tier::kDevice;
  if (dice < 78) return Tier::kCpuLocal;
  return dice < 88 ? Tier::kCpuShare : Tier::kDisk;
}

// A stretch of a prompt, as an engine announces it; a short last page is an event of its own.
void RandomOps::AddPath(Slot& slot, std::vector<Event>* events) {
  const Path path = PathOf(slot);
  const std::vector<Digest> chain = Chain(path, slot.seed);
  const std::size_t begin = random_.Percent(60) ? 0 : random_.Below(chain.size());
  const Tier tier = RandomTier();
  const bool keys_on_wire = slot.keys_on_wire || slot.registration.type == PublisherType::kSglang;

  std::optional<BlockName> parent;
  if (begin > 0) parent = Spell(slot, path.strategy, chain[begin - 1]);
  Stored event;
  for (std::size_t i = begin; i < chain.size(); ++i) {
    const auto length = static_cast<std::uint32_t>(path.blocks[i].tokens.size());
    if (event.blocks.empty() || event.block_length != length) {
      if (!event.blocks.empty()) events->push_back(event);
      event = Stored{};
      event.tier = tier;
      event.block_length = length;
      event.extra_keys_on_wire = keys_on_wire;
      event.parent = parent;
      if (path.context.lora_name != slot.registration.lora_name) {
        event.lora_name = path.context.lora_name;
      }
      if (!parent && !path.salt.empty() && keys_on_wire) event.salt = names_.Salt(path.salt);
    }
    StoredBlock block;
    block.name = Spell(slot, path.strategy, chain[i]);
    block.fingerprint = names_.Fingerprint(path.blocks[i], keys_on_wire);
    block.check = CheckOf(slot, path, i);
    event.blocks.push_back(block);
    parent = block.name;
    slot.stored.emplace_back(tier, block.name);
  }
  events->push_back(event);
  while (slot.stored.size() > kStoredRemembered) slot.stored.pop_front();
}

void RandomOps::AddTokenLess(Slot& slot, std::vector<Event>* events) {
  const Path path = PathOf(slot);
  const std::vector<Digest> chain = Chain(path, slot.seed);
  Stored event;
  event.tier = RandomTier();
  event.has_tokens = false;
  event.extra_keys_on_wire = slot.keys_on_wire;
  if (path.context.lora_name != slot.registration.lora_name) {
    event.lora_name = path.context.lora_name;
  }
  for (std::size_t i = random_.Below(chain.size()); i < chain.size(); ++i) {
    StoredBlock block;
    block.name = options_.forged_links && random_.Percent(15)
                     ? ForgedName(slot)
                     : Spell(slot, path.strategy, chain[i]);
    event.blocks.push_back(block);
    slot.stored.emplace_back(event.tier, block.name);
  }
  events->push_back(event);
}

// A few names that everybody uses for everything; some digests differ in their first byte only.
BlockName RandomOps::ForgedName(const Slot& slot) {
  if (random_.Percent(40)) {
    const Path path = PathOf(slot);
    return Spell(slot, path.strategy, Chain(path, slot.seed).back());
  }
  BlockName name{1 + random_.Below(kForgedNames), ""};
  if (slot.spelling == Spelling::kDigest ||
      (slot.spelling == Spelling::kMixed && random_.Percent(50))) {
    std::string digest(32, '\0');
    digest[0] = static_cast<char>(random_.Below(2));
    digest[31] = static_cast<char>(name.projected);
    name.digest = digest;
  }
  return name;
}

void RandomOps::AddForged(Slot& slot, std::vector<Event>* events) {
  Stored event;
  event.tier = RandomTier();
  event.block_length = random_.Percent(90) ? kBlockSize : 1 + random_.Below(kBlockSize);
  event.extra_keys_on_wire = random_.Percent(60);
  if (random_.Percent(20)) event.lora_name = "l1";
  if (random_.Percent(70)) {
    event.parent = ForgedName(slot);
  } else if (random_.Percent(20)) {
    event.salt = names_.Salt("salt-1");
  }
  for (std::uint64_t i = 1 + random_.Below(3); i > 0; --i) {
    StoredBlock block;
    block.name = ForgedName(slot);
    block.fingerprint = names_.Fingerprint(RandomContent(HashStrategy::kVllmV1), true);
    // An engine with a wrong profile is hardly ever right by chance: it stays unproven.
    const std::uint64_t equal_from = slot.seed == "0" ? 85 : 99;
    const std::uint64_t dice = random_.Below(100);
    block.check = dice < 60           ? HashCheck::kNotComputed
                  : dice < equal_from ? HashCheck::kDiffers
                                      : HashCheck::kEqual;
    event.blocks.push_back(block);
    slot.stored.emplace_back(event.tier, block.name);
  }
  events->push_back(event);
}

// --- What goes away ------------------------------------------------------------------------------

Removed RandomOps::NextRemoved(Slot& slot) {
  Removed removed;
  removed.tier = RandomTier();
  for (std::uint64_t i = 1 + random_.Below(4); i > 0; --i) {
    if (!slot.stored.empty() && random_.Percent(80)) {
      const auto& [tier, name] = slot.stored[random_.Below(slot.stored.size())];
      if (removed.names.empty()) removed.tier = tier;
      removed.names.push_back(name);
    } else if (random_.Percent(70)) {
      removed.names.push_back(ForgedName(slot));
    } else {
      removed.names.push_back({random_.Next(), ""});
    }
  }
  return removed;
}

Removed RandomOps::RemovePath(Slot& slot) {
  const Path path = PathOf(slot);
  const std::vector<Digest> chain = Chain(path, slot.seed);
  Removed removed;
  removed.tier = RandomTier();
  for (std::size_t i = random_.Below(chain.size()); i < chain.size(); ++i) {
    removed.names.push_back(Spell(slot, path.strategy, chain[i]));
  }
  if (random_.Percent(50)) std::reverse(removed.names.begin(), removed.names.end());
  return removed;
}

Evicted RandomOps::NextEvicted(Slot& slot) {
  Evicted evicted;
  evicted.stream = slot.stream;
  evicted.tier = RandomTier();
  evicted.lora_name = slot.registration.lora_name;
  if (!slot.stored.empty() && random_.Percent(60)) {
    const auto& [tier, name] = slot.stored[random_.Below(slot.stored.size())];
    evicted.tier = tier;
    evicted.name = name;
    return evicted;
  }
  const Path path = PathOf(slot);
  evicted.lora_name = path.context.lora_name;
  evicted.name = Spell(slot, path.strategy, Chain(path, slot.seed).back());
  if (slot.registration.type == PublisherType::kMooncake && random_.Percent(70)) {
    evicted.tenant_id = path.context.tenant_id;
    evicted.model_name = path.context.model_name;
    evicted.block_size = path.context.block_size;
  }
  return evicted;
}

void RandomOps::AddPool(Slot& slot, Frame* frame) {
  const std::string backend = random_.Percent(60) ? "backend-1" : "backend-2";
  if (random_.Percent(3)) {
    frame->events.push_back(PoolCleared{backend, "default"});
    return;
  }
  const Path path = PathOf(slot);
  const std::uint64_t dice = random_.Below(10);
  const std::vector<Digest> chain = Chain(path, dice < 7 ? "0" : dice < 9 ? "7" : "8");
  StoreObject stored;
  stored.tier = random_.Percent(60) ? Tier::kCpuShare : Tier::kDisk;
  stored.backend_id = backend;
  stored.tenant_id = path.context.tenant_id;
  stored.model_name = path.context.model_name;
  stored.lora_name = path.context.lora_name;
  stored.block_size = path.context.block_size;
  stored.part = random_.Percent(60) ? "kv=k|" : "kv=v|";
  const bool removes = random_.Percent(40);
  for (std::size_t i = random_.Below(chain.size()); i < chain.size(); ++i) {
    stored.name = {names_.Project(path.strategy, chain[i]), ""};
    if (random_.Percent(50)) {
      stored.name.digest = std::string(chain[i].begin(), chain[i].end());
    }
    if (removes) {
      AddTo<PoolRemoved>(*frame, stored);
    } else {
      AddTo<PoolStored>(*frame, stored);
      slot.stored.emplace_back(stored.tier, stored.name);
    }
  }
  while (slot.stored.size() > kStoredRemembered) slot.stored.pop_front();
}

// --- Queries -------------------------------------------------------------------------------------

RandomPrompt RandomOps::NextPrompt() {
  const Path path = PathOf(Pick(random_, slots_));
  const std::vector<Digest> chain = Chain(path, "0");
  RandomPrompt prompt;
  prompt.cache_salt = path.salt;
  prompt.spec.context = path.context;
  if (!path.salt.empty()) prompt.spec.salt = names_.Salt(path.salt);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const BlockContent& block = path.blocks[i];
    prompt.spec.positions.push_back({names_.Fingerprint(block, true),
                                     static_cast<std::uint32_t>(block.tokens.size()),
                                     names_.Project(path.strategy, chain[i])});
    prompt.token_ids.insert(prompt.token_ids.end(), block.tokens.begin(), block.tokens.end());
    prompt.items.push_back(block.item);
  }
  return prompt;
}

HashSpec RandomOps::NextHashes() {
  Slot& slot = slots_[random_.Below(slots_.size())];
  const Path path = PathOf(slot);
  const std::vector<Digest> chain = Chain(path, slot.seed);
  HashSpec spec;
  spec.context = path.context;
  const std::size_t begin = random_.Percent(70) ? 0 : random_.Below(chain.size());
  for (std::size_t i = begin; i < chain.size(); ++i) {
    spec.hashes.push_back(options_.forged_links && random_.Percent(10)
                              ? ForgedName(slot).projected
                              : names_.Project(path.strategy, chain[i]));
  }
  return spec;
}

}  // namespace conductor::model
