// What pools have: names. The holder stands at the entry of that name in the shared scope, beside
// the engines when it is a shared block. What a name means to a prompt is found at the moment of
// the query (walk.cc).
#include "src/index/prefix_index.h"

namespace conductor {

HolderId PrefixIndex::PoolHolder(const PoolArrival& object) {
  return holders_.Current({object.stream, object.context, object.tier, false, object.pool}, kNoRow);
}

// The parts a pool has of one name are facts of its own, complete or not.
void PrefixIndex::MixParts(HolderId holder, const PoolArrival& object,
                           const PartTable::Change& change) {
  const auto mix = [&](Sum128 parts) -> Sum128 {
    if (parts == 0) return 0;
    const Sum128 facts[] = {contexts_.context(object.context).key_mix, object.name, parts};
    return FactMix(facts, sizeof(facts));
  };
  Sum128& sum = holders_.holder(holder).sum;
  sum -= mix(change.mix_before);
  sum += mix(change.mix_after);
}

StoreOutcome PrefixIndex::StorePart(const PoolArrival& object) {
  const HolderId holder = PoolHolder(object);
  if (fragments() + parts_.incomplete() >= kFragmentsMax && !parts_.Knows(holder, object.name)) {
    const bool joins = LiveShared(object.context, object.name) != 0;
    if (!joins || object.parts_needed > 1) return StoreOutcome::kFragmentLimit;
  }
  const PartTable::Change change =
      parts_.Add(holder, object.parts_needed, object.name, object.part);
  if (change.outcome == PartTable::Outcome::kTooMany) return StoreOutcome::kFragmentLimit;
  if (change.outcome == PartTable::Outcome::kUnchanged) return StoreOutcome::kStored;
  MixParts(holder, object, change);
  if (change.before || !change.after) return StoreOutcome::kStored;
  const EntryId id = FindOrAdd(object.context, kSharedScope, {object.name, {}});
  if (!IsLive(id)) Purge(id);  // dead but not yet cleaned up
  AddHolder(id, holder, 1);
  return StoreOutcome::kStored;
}

bool PrefixIndex::RemovePart(const PoolArrival& object) {
  const HolderId holder =
      holders_.FindCurrent({object.stream, object.context, object.tier, false, object.pool});
  if (holder == 0) return false;
  const PartTable::Change change =
      parts_.Remove(holder, object.parts_needed, object.name, object.part);
  if (change.outcome != PartTable::Outcome::kChanged) return false;
  LosePart(holder, object, change);
  return true;
}

void PrefixIndex::LosePart(HolderId holder, const PoolArrival& object,
                           const PartTable::Change& change) {
  MixParts(holder, object, change);
  if (!change.before || change.after) return;
  const EntryId id = FindName(object.context, kSharedScope, {object.name, {}});
  DropHolder(id, holder);
  if (!IsLive(id)) PurgeAndRelease(id);
}

bool PrefixIndex::EvictParts(const PoolArrival& object) {
  bool found = false;
  auto it = holders_.current().lower_bound({object.stream, object.context, object.tier});
  for (; it != holders_.current().end(); ++it) {
    const auto& [key, holder] = *it;
    if (key.stream != object.stream || key.context != object.context || key.tier != object.tier) {
      break;
    }
    const PartTable::Change change = parts_.Clear(holder, object.parts_needed, object.name);
    if (change.outcome != PartTable::Outcome::kChanged) continue;
    LosePart(holder, object, change);
    found = true;
  }
  return found;
}

}  // namespace conductor
