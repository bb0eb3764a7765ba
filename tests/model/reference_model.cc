// Facts and events of the reference model: everything but storing blocks and queries.
#include "tests/model/reference_model.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

namespace conductor::model {

void ReferenceModel::Apply(const Record& record) {
  for (const Fact& fact : record.facts) {
    std::visit([this](const auto& known) { ApplyFact(known); }, fact);
    CollectContexts();
  }
}

// --- Registrations and lives ---------------------------------------------------------------------

void ReferenceModel::ApplyFact(const Registered& fact) {
  ApplyFact(Unregistered{fact.registration.Key()});
  Stream stream;
  stream.registration = fact.registration;
  stream.unverified_blocks = fact.unverified_blocks;
  streams_[++streams_registered_] = stream;
  if (fact.registration.type == PublisherType::kMooncake) return;
  auto [context, created] = contexts_.try_emplace(fact.registration.Context());
  if (created) context->second.hash_profile = fact.registration.hash_profile;
}

void ReferenceModel::ApplyFact(const Unregistered& fact) {
  for (const auto& [stream_id, stream] : streams_) {
    if (stream.registration.Key() != fact.key) continue;
    const StreamId id = stream_id;
    RetireAll(id);
    for (auto& [key, context] : contexts_) context.stored_into.erase(id);
    streams_.erase(id);
    return;
  }
}

void ReferenceModel::ApplyFact(const NewEpoch& fact) {
  auto it = streams_.find(fact.stream);
  if (it == streams_.end()) return;
  RetireAll(fact.stream);
  Stream& stream = it->second;
  ++stream.epoch;
  stream.cursor.reset();
  stream.recent.clear();
  stream.lost_ranges.clear();
  stream.history_from.reset();
  stream.counting_group.reset();
  stream.ever_verified = false;
  stream.unverified_blocks = fact.unverified_blocks;
}

void ReferenceModel::ApplyFact(const Dropped& fact) {
  auto it = streams_.find(fact.stream);
  if (it == streams_.end()) return;
  RetireAll(fact.stream);
  if (fact.reason == DropReason::kLostEvents) return;
  Stream& stream = it->second;
  stream.cursor.reset();
  stream.recent.clear();
  stream.history_from.reset();
  stream.lost_ranges.clear();
}

void ReferenceModel::ApplyFact(const CountingGroup& fact) {
  auto it = streams_.find(fact.stream);
  if (it != streams_.end()) it->second.counting_group = fact.group;
}

void ReferenceModel::ApplyFact(const HistoryStart& fact) {
  auto it = streams_.find(fact.stream);
  if (it != streams_.end()) it->second.history_from = fact.number;
}

void ReferenceModel::ApplyFact(const Lost& fact) {
  auto it = streams_.find(fact.stream);
  if (it == streams_.end()) return;
  auto& ranges = it->second.lost_ranges;
  if (!ranges.empty() && fact.from >= ranges.back().first &&
      fact.from <= ranges.back().second + 1) {
    ranges.back().second = std::max(ranges.back().second, fact.to);
  } else {
    ranges.emplace_back(fact.from, fact.to);
  }
  while (ranges.size() > kLostRangesPerStreamMax) {
    ranges[1].first = ranges[0].first;
    ranges.erase(ranges.begin());
  }
  it->second.cursor = fact.to;
}

void ReferenceModel::ApplyFact(const Evicted& fact) {
  auto it = streams_.find(fact.stream);
  if (it == streams_.end()) return;
  ContextKey key = it->second.registration.Context();
  key.lora_name = fact.lora_name;
  if (!fact.tenant_id.empty()) key.tenant_id = fact.tenant_id;
  if (!fact.model_name.empty()) key.model_name = fact.model_name;
  if (fact.block_size != 0) key.block_size = fact.block_size;
  auto context = contexts_.find(key);
  if (context == contexts_.end()) return;

  for (StreamId scope : {fact.stream, StreamId{0}}) {
    for (auto& [entry_key, entry] : context->second.entries) {
      if (entry_key.scope != scope) continue;
      if (scope == 0 ? entry_key != SharedKey(fact.name) : !SameName(entry_key.name, fact.name)) {
        continue;
      }
      const auto erased = entry.copies.erase(HolderKey{fact.stream, fact.tier, false}) +
                          entry.copies.erase(HolderKey{fact.stream, fact.tier, true});
      if (erased == 0) continue;
      if (entry.copies.empty()) context->second.entries.erase(EntryKey(entry_key));
      return;
    }
  }
  auto pool = context->second.pool.find(fact.name.projected);
  if (pool == context->second.pool.end()) return;
  std::erase_if(pool->second, [&](const auto& item) {
    return item.first.stream == fact.stream && item.first.tier == fact.tier;
  });
  if (pool->second.empty()) context->second.pool.erase(pool);
}

void ReferenceModel::ApplyFact(const Frame& fact) {
  auto it = streams_.find(fact.stream);
  if (it == streams_.end()) return;
  for (const Event& event : fact.events) {
    std::visit(
        [&](const auto& known) {
          if constexpr (std::derived_from<std::decay_t<decltype(known)>, PoolObject>) {
            ApplyEvent(fact.stream, fact.origins.at(known.origin), known);
          } else {
            ApplyEvent(fact.stream, known);
          }
        },
        event);
  }
  Stream& stream = it->second;
  stream.cursor = fact.number;
  stream.recent.emplace_back(fact.number, fact.fingerprint);
  while (stream.recent.size() > kRecentFingerprintsPerStream) stream.recent.pop_front();
  for (const auto& [reason, count] : fact.ignored) {
    stream.counters.ignored[reason] += count;
    totals_.ignored[reason] += count;
  }
}

// --- Events --------------------------------------------------------------------------------------

void ReferenceModel::ApplyEvent(StreamId id, const Stored& event) {
  ContextKey key = streams_.at(id).registration.Context();
  if (event.lora_name) key.lora_name = *event.lora_name;
  auto [context, created] = contexts_.try_emplace(key);
  if (created) context->second.hash_profile = streams_.at(id).registration.hash_profile;

  std::optional<BlockName> parent = event.parent;
  for (std::size_t i = 0; i < event.blocks.size(); ++i) {
    BlockToStore block;
    block.stream = id;
    block.tier = event.tier;
    block.name = event.blocks[i].name;
    block.link.parent = parent;
    if (!parent) block.link.salt = event.salt;
    block.link.fingerprint = event.blocks[i].fingerprint;
    block.link.length = event.block_length;
    block.link.check = event.blocks[i].check;
    block.link.extra_keys_on_wire = event.extra_keys_on_wire;
    const StoreOutcome outcome =
        event.has_tokens ? StoreBlock(context->second, block) : StoreName(context->second, block);
    const std::uint64_t left = event.blocks.size() - i;
    if (outcome == StoreOutcome::kRejected) CountRejected(id, left);
    if (outcome == StoreOutcome::kTooManyFragments) CountTooManyFragments(id, left);
    if (outcome != StoreOutcome::kStored) return;
    context->second.stored_into.insert(id);
    parent = block.name;
  }
}

void ReferenceModel::ApplyEvent(StreamId id, const Removed& event) {
  for (const BlockName& name : event.names) {
    bool found = false;
    for (Context* context : ContextsOf(id)) {
      // The normal holder before the unproven one, the own scope before the shared one.
      if (TakeOneCopy(*context, {id, event.tier, false}, name)) found = true;
    }
    if (!found) CountRemoveUnknown(id);
  }
}

bool ReferenceModel::TakeOneCopy(Context& context, const HolderKey& holder, const BlockName& name) {
  std::vector<EntryKey> candidates;
  for (const auto& [key, entry] : context.entries) {
    if (key.scope == holder.stream && SameName(key.name, name)) candidates.push_back(key);
  }
  candidates.push_back(SharedKey(name));
  for (const EntryKey& key : candidates) {
    auto entry = context.entries.find(key);
    if (entry == context.entries.end()) continue;
    for (bool unproven : {false, true}) {
      auto copies = entry->second.copies.find({holder.stream, holder.tier, unproven});
      if (copies == entry->second.copies.end()) continue;
      if (--copies->second == 0) entry->second.copies.erase(copies);
      if (entry->second.copies.empty()) context.entries.erase(entry);
      return true;
    }
  }
  return false;
}

void ReferenceModel::ApplyEvent(StreamId id, const Cleared& event) {
  const bool all_tiers =
      event.all_tiers || streams_.at(id).registration.type == PublisherType::kSglang;
  Retire(id, [&](const HolderKey& holder) { return all_tiers || holder.tier == Tier::kDevice; });
  ForgetLostRangesIfEmpty(id);
}

void ReferenceModel::ApplyEvent(StreamId id, const PoolOrigin& origin, const PoolStored& event) {
  const ContextKey key{origin.tenant_id, origin.model_name, origin.lora_name, origin.block_size};
  auto [context, created] = contexts_.try_emplace(key);
  if (created) context->second.hash_profile = streams_.at(id).registration.hash_profile;
  context->second.stored_into.insert(id);
  PoolHold& hold =
      context->second
          .pool[event.name.projected][{id, origin.backend_id, origin.tenant_id, event.tier}];
  hold.parts.insert(std::string(event.part));
  hold.needed = 1;
  for (const auto& [dimension, total] : streams_.at(id).registration.pool_parts) {
    if (total > 0) hold.needed *= total;
  }
}

void ReferenceModel::ApplyEvent(StreamId id, const PoolOrigin& origin, const PoolRemoved& event) {
  const ContextKey key{origin.tenant_id, origin.model_name, origin.lora_name, origin.block_size};
  auto context = contexts_.find(key);
  if (context == contexts_.end()) return CountRemoveUnknown(id);
  auto name = context->second.pool.find(event.name.projected);
  if (name == context->second.pool.end()) return CountRemoveUnknown(id);
  auto holder = name->second.find({id, origin.backend_id, origin.tenant_id, event.tier});
  if (holder == name->second.end()) return CountRemoveUnknown(id);
  if (holder->second.parts.erase(std::string(event.part)) == 0) return CountRemoveUnknown(id);
  if (holder->second.parts.empty()) name->second.erase(holder);
  if (name->second.empty()) context->second.pool.erase(name);
}

void ReferenceModel::ApplyEvent(StreamId id, const PoolCleared& event) {
  RetirePool(id, [&](const PoolHolderKey& holder) {
    return holder.backend_id == event.backend_id && holder.tenant_id == event.tenant_id;
  });
  ForgetLostRangesIfEmpty(id);
}

// --- Helpers -------------------------------------------------------------------------------------

void ReferenceModel::Retire(StreamId id, const std::function<bool(const HolderKey&)>& which) {
  for (auto& [key, context] : contexts_) {
    for (auto& [entry_key, entry] : context.entries) {
      std::erase_if(entry.copies,
                    [&](const auto& item) { return item.first.stream == id && which(item.first); });
    }
    std::erase_if(context.entries, [](const auto& item) { return item.second.copies.empty(); });
  }
}

void ReferenceModel::RetirePool(StreamId id,
                                const std::function<bool(const PoolHolderKey&)>& which) {
  for (auto& [key, context] : contexts_) {
    for (auto& [name, holders] : context.pool) {
      std::erase_if(holders,
                    [&](const auto& item) { return item.first.stream == id && which(item.first); });
    }
    std::erase_if(context.pool, [](const auto& item) { return item.second.empty(); });
  }
}

void ReferenceModel::RetireAll(StreamId id) {
  Retire(id, [](const HolderKey&) { return true; });
  RetirePool(id, [](const PoolHolderKey&) { return true; });
}

void ReferenceModel::ForgetLostRangesIfEmpty(StreamId id) {
  for (std::uint64_t blocks : BlocksByTier(id)) {
    if (blocks != 0) return;
  }
  for (const auto& [key, context] : contexts_) {
    for (const auto& [name, holders] : context.pool) {
      for (const auto& [holder, hold] : holders) {
        if (holder.stream == id) return;  // parts that make no block yet
      }
    }
  }
  streams_.at(id).lost_ranges.clear();
}

void ReferenceModel::CollectContexts() {
  for (auto it = contexts_.begin(); it != contexts_.end();) {
    auto& [key, context] = *it;
    const bool registered =
        std::any_of(streams_.begin(), streams_.end(), [&key = key](const auto& stream) {
          return stream.second.registration.type != PublisherType::kMooncake &&
                 stream.second.registration.Context() == key;
        });
    const bool exists = registered || PrefixCount(key) > 0;
    if (!exists) context.stored_into.clear();
    // Parts that do not make a block yet are kept for the context that may come.
    it = exists || !context.pool.empty() ? std::next(it) : contexts_.erase(it);
  }
}

void ReferenceModel::CountRejected(StreamId id, std::uint64_t blocks) {
  streams_.at(id).counters.rejected_blocks += blocks;
  totals_.rejected_blocks += blocks;
}

void ReferenceModel::CountTooManyFragments(StreamId id, std::uint64_t blocks) {
  streams_.at(id).counters.fragments_rejected += blocks;
  totals_.fragments_rejected += blocks;
}

void ReferenceModel::CountRemoveUnknown(StreamId id) {
  ++streams_.at(id).counters.remove_unknown;
  ++totals_.remove_unknown;
}

std::vector<Context*> ReferenceModel::ContextsOf(StreamId id) {
  std::vector<Context*> result;
  for (auto& [key, context] : contexts_) {
    if (streams_.at(id).registration.Context() == key || context.stored_into.contains(id)) {
      result.push_back(&context);
    }
  }
  return result;
}

}  // namespace conductor::model
