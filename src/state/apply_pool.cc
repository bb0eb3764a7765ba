// Pools: what a store's objects do to the index.
#include <algorithm>

#include "src/state/state_machine.h"

namespace conductor {
namespace {

// The event's own words decide its context; the registration fills the gaps.
template <typename PoolEvent>
ContextKey ContextOf(const Registration& registration, const PoolEvent& event) {
  ContextKey key = registration.Context();
  if (!event.tenant_id.empty()) key.tenant_id = event.tenant_id;
  if (!event.model_name.empty()) key.model_name = event.model_name;
  if (!event.lora_name.empty()) key.lora_name = event.lora_name;
  if (event.block_size != 0) key.block_size = event.block_size;
  return key;
}

// Parts that make a block present: one, unless the registration names totals. A total of 0 means
// that objects are not split that way.
std::size_t PartsNeeded(const Registration& registration) {
  std::uint64_t needed = 1;
  for (const auto& [dimension, total] : registration.pool_parts) {
    if (total > 1) needed = std::min<std::uint64_t>(needed * total, kPartsPerBlockMax);
  }
  return needed;
}

template <typename PoolEvent>
PrefixIndex::PoolObject ObjectOf(const StreamFacts& stream, const PoolEvent& event) {
  PrefixIndex::PoolObject object;
  object.stream = stream.id;
  object.tier = event.tier;
  object.name = event.name.projected;
  object.part = event.part;
  object.parts_needed = PartsNeeded(stream.registration);
  return object;
}

}  // namespace

void StateMachine::ApplyEvent(StreamFacts& stream, const PoolStored& event) {
  PrefixIndex::PoolObject object = ObjectOf(stream, event);
  object.context = index_.contexts().FindOrAdd(ContextOf(stream.registration, event));
  object.pool = index_.pools().FindOrAdd(event.backend_id, event.tenant_id);
  if (object.context == 0 || object.pool == 0) {
    ++stream.blocks_rejected;
    return;
  }
  if (!index_.contexts().context(object.context).Exists()) {
    index_.contexts().SetProfile(object.context, stream.registration.hash_profile,
                                 /*of_engine=*/false);
  }
  const bool stored = index_.StorePart(object) == PrefixIndex::Outcome::kStored;
  ++(stored ? stream.blocks_stored : stream.fragments_rejected);
}

void StateMachine::ApplyEvent(StreamFacts& stream, const PoolRemoved& event) {
  PrefixIndex::PoolObject object = ObjectOf(stream, event);
  object.context = index_.contexts().Find(ContextOf(stream.registration, event));
  object.pool = index_.pools().Find(event.backend_id, event.tenant_id);
  const bool known = object.context != 0 && object.pool != 0 && index_.RemovePart(object);
  ++(known ? stream.blocks_removed : stream.remove_unknown);
}

bool StateMachine::EvictParts(const StreamFacts& stream, ContextId context, const Evicted& fact) {
  PrefixIndex::PoolObject object;
  object.context = context;
  object.stream = stream.id;
  object.tier = fact.tier;
  object.name = fact.name.projected;
  object.parts_needed = PartsNeeded(stream.registration);
  return index_.EvictParts(object);
}

void StateMachine::ApplyEvent(StreamFacts& stream, const PoolCleared& event) {
  const PoolId pool = index_.pools().Find(event.backend_id, event.tenant_id);
  if (pool != 0) {
    index_.RetireHolders(stream.id, [pool](const HolderKey& key) { return key.pool == pool; });
  }
  ++stream.clears;
  if (!index_.HoldsAnything(stream.id)) stream.lost.clear();
  ShowLostRanges(stream);
}

}  // namespace conductor
