// Storing and removing one block.
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
  return ClassBelow(entries_[resolved].block_class.load(std::memory_order_relaxed),
                    arrival.extra_keys_on_wire);
}

// Whether a live block that has a link and the arriving one are the same block. Where a block that
// is not shared meets a shared one (it joins), a root is a root whatever its salt: a publisher that
// hides its extra keys hides the salt too.
bool PrefixIndex::SaysTheSame(EntryId id, const Arrival& arrival, BlockClass block_class) const {
  const LinkFacts have = FactsOf(id);
  if (have.fingerprint != arrival.fingerprint || have.length != arrival.length) return false;
  const EntryId parent = entries_[id].parent.load(std::memory_order_relaxed);
  const bool shared = entries_[id].scope == kSharedScope;
  const bool below_root = entries_[parent].scope == kRootScope;
  if (below_root != (arrival.parent == nullptr)) return false;
  if (below_root) {
    const bool joins = shared && block_class != BlockClass::kShared;
    return joins || FindRoot(arrival.context, arrival.salt) == parent;
  }
  return shared ? entries_[parent].projected == arrival.parent->projected
                : SameName(NameOf(parent), *arrival.parent);
}

// The entry below which the block hangs. A shared block's digest covers its parent's: the parent's
// shared name is known, present or not.
EntryId PrefixIndex::ParentOf(const Arrival& arrival, Scope scope) {
  if (arrival.parent == nullptr) return Root(arrival.context, arrival.salt);
  return FindOrAdd(
      arrival.context, scope,
      scope == kSharedScope ? NameRef{arrival.parent->projected, {}} : NameRef{*arrival.parent});
}

PrefixIndex::StoreResult PrefixIndex::StoreBlock(const Arrival& arrival) {
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
  if (id != 0 && entries_[id].parent.load(std::memory_order_relaxed) != 0) {
    if (!SaysTheSame(id, arrival, block_class)) return {Outcome::kContradiction, 0};
    AddHolder(id, HolderFor(arrival, id), 1);
    return {Outcome::kStored, id};
  }

  const bool fresh = id == 0;
  if (fresh) {
    id = FindOrAdd(arrival.context, scope, name);
    Purge(id);  // dead but not yet cleaned up: it starts afresh
  }
  if (DropCycle(id, arrival)) {
    ReleaseIfUnused(id);
    return {Outcome::kCycle, 0};
  }
  if (fresh && IsFragment(block_class) && fragments() >= kFragmentsMax) {
    ReleaseIfUnused(id);
    return {Outcome::kFragmentLimit, 0};
  }
  const bool above_is_parent =
      resolved != 0 && scope == kSharedScope && entries_[resolved].scope == kSharedScope;
  SetLink(id, above_is_parent ? resolved : ParentOf(arrival, scope),
          {arrival.fingerprint, arrival.length, arrival.check, arrival.extra_keys_on_wire},
          block_class);
  if (block_class == BlockClass::kUnproven) MoveToUnproven(id);
  AddHolder(id, HolderFor(arrival, id), 1);
  Settle(id);
  return {Outcome::kStored, id};
}

PrefixIndex::StoreResult PrefixIndex::StoreName(ContextId context, StreamId stream,
                                                std::uint32_t row, Tier tier,
                                                const BlockName& name) {
  const auto own_scope = static_cast<Scope>(stream);
  EntryId id = Resolve(context, own_scope, name);
  const bool fresh = id == 0;
  if (fresh) {
    if (fragments() >= kFragmentsMax) return {Outcome::kFragmentLimit, 0};
    id = FindOrAdd(context, own_scope, name);
    Purge(id);
    SetClass(id, BlockClass::kNameOnly);
  }
  const bool unproven =
      entries_[id].block_class.load(std::memory_order_relaxed) == BlockClass::kUnproven;
  AddHolder(id, holders_.Current({stream, context, tier, unproven}, row), 1);
  if (fresh) Settle(id);
  return {Outcome::kStored, id};
}

std::pair<EntryId, HolderId> PrefixIndex::FindHeld(ContextId context, StreamId stream, Tier tier,
                                                   const BlockName& name) const {
  std::pair<EntryId, HolderId> held = {0, 0};
  for (Scope scope : {static_cast<Scope>(stream), kSharedScope}) {
    ForSpellings(context, scope, name, [&](EntryId id) {
      const HolderSet* set = holders_.Find(entries_[id].state.load(std::memory_order_relaxed));
      if (set == nullptr) return;
      if (held.first != 0 && NameOf(held.first).digest < NameOf(id).digest) return;
      for (bool unproven : {false, true}) {
        const HolderId holder = holders_.FindCurrent({stream, context, tier, unproven});
        if (holder != 0 && set->Contains(holder)) held = {id, holder};
      }
    });
    if (held.first != 0) break;
  }
  return held;
}

bool PrefixIndex::RemoveCopy(ContextId context, StreamId stream, Tier tier, const BlockName& name) {
  const auto [id, holder] = FindHeld(context, stream, tier, name);
  if (id == 0) return false;
  const std::uint32_t copies = Copies(id, holder);
  if (copies > 1) {
    Holder& h = holders_.holder(holder);
    h.sum -= Mix(id, copies);
    h.sum += Mix(id, copies - 1);
    const std::uint64_t key = (std::uint64_t{id} << 32) | holder;
    copies > 2 ? static_cast<void>(copies_[key] = copies - 1)
               : static_cast<void>(copies_.erase(key));
    return true;
  }
  DropHolder(id, holder);
  if (!IsLive(id)) PurgeAndRelease(id);
  return true;
}

bool PrefixIndex::Evict(ContextId context, StreamId stream, Tier tier, const BlockName& name) {
  const auto [id, holder] = FindHeld(context, stream, tier, name);
  if (id == 0) return false;
  DropHolder(id, holder);
  if (!IsLive(id)) PurgeAndRelease(id);
  return true;
}

}  // namespace conductor
