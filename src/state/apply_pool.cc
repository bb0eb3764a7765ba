// Pools: what a store's objects do to the index.
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "src/state/pool_slots.h"
#include "src/state/state_machine.h"

namespace conductor {
namespace {

// The event's own words decide its context; the registration fills the gaps.
ContextKey ContextOf(const Registration& registration, const PoolOrigin& origin) {
  const auto own_or = [](const std::string& own, const std::string& registered) {
    return own.empty() ? registered : own;
  };
  return {own_or(origin.tenant_id, registration.tenant_id),
          own_or(origin.model_name, registration.model_name),
          own_or(origin.lora_name, registration.lora_name),
          origin.block_size != 0 ? origin.block_size : registration.block_size};
}

// The value of "name=value" among the part's coordinates ("tp=2@kv=k|...").
std::optional<std::string_view> Coordinate(std::string_view part, std::string_view name) {
  std::string_view rest = part.substr(0, part.find('|'));
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find('@'));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (item.size() > name.size() && item.starts_with(name) && item[name.size()] == '=') {
      return item.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// Whether a coordinate is one of the `total` that are asked for. K and V are no numbers.
bool IsBelow(std::string_view value, std::uint32_t total) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  return !is_number || number < total;
}

// `slot`: in place of what it held, whose room is used.
PartTable::Part PartOf(const PoolParts& totals, std::string_view part, std::string& slot) {
  slot.clear();
  for (const auto& [dimension, total] : totals) {
    if (total <= 1) continue;
    const auto value = Coordinate(part, dimension);
    if (!value || !IsBelow(*value, total)) return {0, PartTable::HashOf(part)};
    slot.append(dimension).append("=").append(*value).append("@");
  }
  return {PartTable::HashOf(slot), PartTable::HashOf(part)};
}

}  // namespace

PoolArrival StateMachine::ObjectOf(const StreamFacts& stream, const PoolObject& event,
                                   bool stores) {
  PoolArrival object;
  object.stream = stream.id;
  object.tier = event.tier;
  object.name = event.name.projected;
  object.part = PartOf(stream.registration.pool_parts, event.part, pool_slot_);
  object.parts_needed = PartSlotsNeeded(stream.registration.pool_parts);
  const PoolOrigin& origin = pool_places_.origin(event.origin);
  PoolPlaces::Place& place = pool_places_.place(event.origin);
  if (place.context == 0) {
    const ContextKey key = ContextOf(stream.registration, origin);
    place.context = stores ? index_.contexts().FindOrAdd(key) : index_.contexts().Find(key);
  }
  if (place.pool == 0) {
    place.pool = stores ? index_.pools().FindOrAdd(origin.backend_id, origin.tenant_id)
                        : index_.pools().Find(origin.backend_id, origin.tenant_id);
  }
  object.context = place.context;
  object.pool = place.pool;
  return object;
}

void StateMachine::ApplyEvent(StreamFacts& stream, const PoolStored& event) {
  const PoolArrival object = ObjectOf(stream, event, /*stores=*/true);
  if (object.context == 0 || object.pool == 0) {
    ++stream.blocks_rejected;
    return;
  }
  if (!index_.contexts().context(object.context).Exists()) {
    index_.contexts().SetProfile(object.context, stream.registration.hash_profile,
                                 /*of_engine=*/false);
  }
  const bool stored = index_.StorePart(object) == StoreOutcome::kStored;
  ++(stored ? stream.blocks_stored : stream.fragments_rejected);
}

void StateMachine::ApplyEvent(StreamFacts& stream, const PoolRemoved& event) {
  const PoolArrival object = ObjectOf(stream, event, /*stores=*/false);
  const bool known = object.context != 0 && object.pool != 0 && index_.RemovePart(object);
  ++(known ? stream.blocks_removed : stream.remove_unknown);
}

bool StateMachine::EvictParts(const StreamFacts& stream, ContextId context, const Evicted& fact) {
  PoolArrival object;
  object.context = context;
  object.stream = stream.id;
  object.tier = fact.tier;
  object.name = fact.name.projected;
  object.parts_needed = PartSlotsNeeded(stream.registration.pool_parts);
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
