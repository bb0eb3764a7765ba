// Storing and removing one block.
#include <algorithm>

#include "src/check.h"
#include "src/index/prefix_index.h"

namespace conductor {

// What class a block has by what its event says of it, below what its parent's name means.
BlockClass PrefixIndex::Derive(const Arrival& arrival, EntryId resolved) const {
  switch (arrival.check) {
    case HashCheck::kEqual:
      return BlockClass::kShared;
    case HashCheck::kDiffers:
      if (arrival.extra_keys_on_wire) return BlockClass::kOwnContent;
      return arrival.differs_is_name_only ? BlockClass::kNameOnly : BlockClass::kUnproven;
    case HashCheck::kNotComputed:
      break;
  }
  if (arrival.parent == nullptr) return ClassBelow(BlockClass::kShared, arrival.extra_keys_on_wire);
  if (resolved == 0) return BlockClass::kOrphan;
  return ClassBelow(ClassOf(resolved), arrival.extra_keys_on_wire);
}

// Whether a live block that has a link and the arriving one are the same block. Where a block that
// is not shared meets a shared one (it joins), a root is a root whatever its salt: a publisher that
// hides its extra keys hides the salt too.
bool PrefixIndex::SaysTheSame(EntryId id, const Arrival& arrival, BlockClass block_class) const {
  const LinkFacts have = FactsOf(id);
  if (have.fingerprint != arrival.fingerprint || have.length != arrival.length) return false;
  const EntryId parent = ParentOf(id);
  const bool shared = ScopeOf(id) == kSharedScope;
  const bool below_root = ScopeOf(parent) == kRootScope;
  if (below_root != (arrival.parent == nullptr)) return false;
  if (below_root) {
    const bool joins = shared && block_class != BlockClass::kShared;
    return joins || FindRoot(arrival.context, arrival.salt) == parent;
  }
  return shared ? ProjectedOf(parent) == arrival.parent->projected
                : SameName(NameOf(parent), *arrival.parent);
}

// The entry below which the block hangs. A shared block's digest covers its parent's: the parent's
// shared name is known, present or not.
EntryId PrefixIndex::ParentFor(const Arrival& arrival, Scope scope) {
  if (arrival.parent == nullptr) return Root(arrival.context, arrival.salt);
  return FindOrAdd(
      arrival.context, scope,
      scope == kSharedScope ? NameRef{arrival.parent->projected, {}} : NameRef{*arrival.parent});
}

StoreResult PrefixIndex::StoreBlock(const Arrival& arrival) {
  const BlockName& name = *arrival.name;
  const auto own_scope = static_cast<Scope>(arrival.stream);
  EntryId resolved = 0;
  if (arrival.parent != nullptr) {
    const bool known = arrival.above != 0 && IsLive(arrival.above);
    resolved = known ? arrival.above : Resolve(arrival.context, own_scope, *arrival.parent);
  }
  const BlockClass block_class = Derive(arrival, resolved);
  const Scope scope = block_class == BlockClass::kShared ? kSharedScope : own_scope;

  EntryId id = FindLive(arrival.context, scope, name);
  if (id == 0 && IsFragment(block_class)) id = LiveShared(arrival.context, name.projected);
  if (id != 0 && HasLink(id)) {
    if (!SaysTheSame(id, arrival, block_class)) return {StoreOutcome::kContradiction, 0};
    AddHolder(id, HolderFor(arrival, id), 1);
    return {StoreOutcome::kStored, id};
  }

  const bool fresh = id == 0;
  if (fresh) {
    id = FindOrAdd(arrival.context, scope, name);
    Purge(id);  // dead but not yet cleaned up: it starts afresh
  }
  if (DropCycle(id, arrival)) {
    ReleaseIfUnused(id);
    return {StoreOutcome::kCycle, 0};
  }
  if (fresh && IsFragment(block_class) && fragments() >= kFragmentsMax) {
    ReleaseIfUnused(id);
    return {StoreOutcome::kFragmentLimit, 0};
  }
  if (scope == kSharedScope) {
    id = PlaceShared(id, arrival, resolved);
  } else {
    SetLink(id, ParentFor(arrival, scope),
            {arrival.fingerprint, arrival.length, arrival.check, arrival.extra_keys_on_wire},
            block_class);
  }
  if (block_class == BlockClass::kUnproven) MoveToUnproven(id);
  AddHolder(id, HolderFor(arrival, id), 1);
  Settle(id);
  // What was attached below it may have made its run grow.
  const bool moved = IsInRun(id) && !runs_.IsInUse(id);
  return {StoreOutcome::kStored, moved ? FindMoved(id) : id};
}

StoreResult PrefixIndex::StoreName(ContextId context, StreamId stream, std::uint32_t row, Tier tier,
                                   const BlockName& name) {
  const auto own_scope = static_cast<Scope>(stream);
  EntryId id = Resolve(context, own_scope, name);
  const bool fresh = id == 0;
  if (fresh) {
    if (fragments() >= kFragmentsMax) return {StoreOutcome::kFragmentLimit, 0};
    id = FindOrAdd(context, own_scope, name);
    Purge(id);
    SetClass(id, BlockClass::kNameOnly);
  }
  const bool unproven = ClassOf(id) == BlockClass::kUnproven;
  AddHolder(id, holders_.Current({stream, context, tier, unproven}, row), 1);
  if (fresh) Settle(id);
  return {StoreOutcome::kStored, id};
}

std::pair<EntryId, HolderId> PrefixIndex::FindHeld(ContextId context, StreamId stream, Tier tier,
                                                   const BlockName& name) const {
  const HolderId current[] = {holders_.FindCurrent({stream, context, tier, false}),
                              holders_.FindCurrent({stream, context, tier, true})};
  return FindHeldBy(current, context, stream, name);
}

// `current`: the stream's holders of that tier, 0 where there is none.
std::pair<EntryId, HolderId> PrefixIndex::FindHeldBy(const HolderId (&current)[2],
                                                     ContextId context, StreamId stream,
                                                     const BlockName& name) const {
  std::pair<EntryId, HolderId> held = {0, 0};
  const auto look = [&](EntryId id) {
    const HolderSet* set = holders_.Find(StateOf(id));
    if (set == nullptr) return;
    if (held.first != 0 && NameOf(held.first).digest < NameOf(id).digest) return;
    for (const HolderId holder : current) {
      if (holder != 0 && set->Contains(holder)) held = {id, holder};
    }
  };
  if (HasOwnNames(context)) ForSpellings(context, static_cast<Scope>(stream), name, look);
  if (held.first != 0) return held;
  if (const EntryId slot = FindSlot(context, name.projected)) {
    look(slot);
  } else {
    ForSpellings(context, kSharedScope, name, look);
  }
  return held;
}

bool PrefixIndex::RemoveCopy(ContextId context, StreamId stream, Tier tier, const BlockName& name) {
  const auto [id, holder] = FindHeld(context, stream, tier, name);
  return id != 0 && (LoseCopy(id, holder), true);
}

std::size_t PrefixIndex::RemoveCopies(ContextId context, StreamId stream, Tier tier,
                                      std::span<const BlockName> names) {
  const HolderId current[] = {holders_.FindCurrent({stream, context, tier, false}),
                              holders_.FindCurrent({stream, context, tier, true})};
  std::size_t removed = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i % kPrefetchNames == 0) {
      for (const BlockName& name : names.subspan(i, std::min(kPrefetchNames, names.size() - i))) {
        slots_by_name_.Prefetch(NameHash(context, kSharedScope, name.projected));
      }
    }
    const auto [id, holder] = FindHeldBy(current, context, stream, names[i]);
    if (id == 0) continue;
    LoseCopy(id, holder);
    ++removed;
  }
  return removed;
}

void PrefixIndex::LoseCopy(EntryId id, HolderId holder) {
  const std::uint32_t copies = Copies(id, holder);
  if (copies > 1) {
    Holder& h = holders_.holder(holder);
    h.sum -= Mix(id, copies);
    h.sum += Mix(id, copies - 1);
    SetCopies(id, holder, copies - 1);
    return;
  }
  DropHolder(id, holder);
  if (!IsLive(id)) PurgeAndRelease(id);
}

bool PrefixIndex::Evict(ContextId context, StreamId stream, Tier tier, const BlockName& name) {
  const auto [id, holder] = FindHeld(context, stream, tier, name);
  if (id == 0) return false;
  DropHolder(id, holder);
  if (!IsLive(id)) PurgeAndRelease(id);
  return true;
}

}  // namespace conductor
