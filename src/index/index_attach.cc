// What class a block has, and what its arrival means for the fragments around it.
#include "src/check.h"
#include "src/index/prefix_index.h"

namespace conductor {

// A block below `parent` whose name was not recomputed takes its class from there.
BlockClass PrefixIndex::DeriveChild(HashCheck check, bool extra_keys_on_wire,
                                    EntryId parent) const {
  CHECK(check == HashCheck::kNotComputed);
  const Entry& p = entries_[parent];
  const BlockClass linked = extra_keys_on_wire ? BlockClass::kShared : BlockClass::kNameOnly;
  if (p.scope == kRootScope) return linked;
  if (!IsLive(parent)) return BlockClass::kOrphan;
  const BlockClass parent_class = p.block_class.load(std::memory_order_relaxed);
  return parent_class == BlockClass::kShared ? linked : parent_class;
}

BlockClass PrefixIndex::Derive(const Arrival& arrival) const {
  switch (arrival.check) {
    case HashCheck::kEqual:
      return BlockClass::kShared;
    case HashCheck::kDiffers:
      if (arrival.extra_keys_on_wire) return BlockClass::kOwnContent;
      return arrival.differs_is_name_only ? BlockClass::kNameOnly : BlockClass::kUnproven;
    case HashCheck::kNotComputed:
      break;
  }
  return DeriveChild(arrival.check, arrival.extra_keys_on_wire, arrival.parent);
}

EntryId PrefixIndex::LiveShared(ContextId context, std::uint64_t projected) const {
  const EntryId id = FindName(context, kSharedScope, BlockName{projected, {}});
  return id != 0 && IsLive(id) ? id : 0;
}

// Whether a publisher's own entry becomes the shared block of its projection: fragments do, and
// names that nobody has (they only stand for the parent of somebody's children).
bool PrefixIndex::Joinable(EntryId id) const {
  return !IsLive(id) || IsFragment(entries_[id].block_class.load(std::memory_order_relaxed));
}

// Whether a link from the block (entry `id`, 0 when it has none yet) to `parent` closes a cycle:
// then `path` has the live blocks between, parent first. Only names that somebody already hangs
// below can close one, so the walk up is rare.
bool PrefixIndex::ClosesCycle(ContextId context, Scope scope, const BlockName& name, EntryId id,
                              EntryId parent, std::vector<EntryId>* path) const {
  bool has_children = id != 0 && entries_[id].first_child != 0;
  if (scope == kSharedScope && !has_children) {
    ForProjected(context, name.projected, [&](EntryId own) {
      has_children = has_children || (entries_[own].first_child != 0 && Joinable(own));
    });
  }
  // A block that names itself as parent: the parent is a fresh placeholder of its own name.
  for (EntryId at = parent; at != 0; at = entries_[at].parent.load(std::memory_order_relaxed)) {
    const Entry& e = entries_[at];
    if (e.scope == kRootScope) break;
    if (at == id) return true;
    if (scope == kSharedScope && e.scope != kSharedScope && e.projected == name.projected &&
        Joinable(at)) {
      return true;
    }
    if (!has_children && at == parent) break;
    if (!IsLive(at)) break;
    path->push_back(at);
  }
  path->clear();
  return false;
}

// True: the link would close a cycle. The waiting blocks on it are dropped.
bool PrefixIndex::DropCycle(ContextId context, Scope scope, const BlockName& name, EntryId id,
                            EntryId parent) {
  std::vector<EntryId> path;
  if (!ClosesCycle(context, scope, name, id, parent, &path)) return false;
  for (EntryId on_cycle : path) {
    for (HolderId holder : LiveHolders(on_cycle)) RejectHolder(on_cycle, holder);
    Purge(on_cycle);
  }
  return true;
}

// A block has become live, got its link or another class: attach what waited for it.
void PrefixIndex::Settle(EntryId start) {
  std::vector<EntryId> work = {start};
  while (!work.empty()) {
    const EntryId id = work.back();
    work.pop_back();
    if (!IsLive(id)) continue;
    if (entries_[id].scope == kSharedScope) JoinFragments(id);
    for (EntryId child : Children(id)) {
      Entry& c = entries_[child];
      if (c.parent.load(std::memory_order_relaxed) != id || !IsLive(child)) continue;
      const BlockClass old = c.block_class.load(std::memory_order_relaxed);
      if (c.check != HashCheck::kNotComputed || !IsFragment(old)) continue;
      const BlockClass derived = DeriveChild(c.check, c.extra_keys_on_wire, id);
      // A name-only block changes only when its name becomes a shared one.
      if (derived == old || (old == BlockClass::kNameOnly && derived != BlockClass::kShared)) {
        continue;
      }
      if (derived == BlockClass::kShared) {
        if (EntryId shared = Promote(child, id)) work.push_back(shared);
        continue;
      }
      SetClass(child, derived);
      if (derived == BlockClass::kUnproven) MoveToUnproven(child);
      work.push_back(child);
    }
  }
}

// A fragment whose parent is shared turns out to be the shared block of its own projection.
EntryId PrefixIndex::Promote(EntryId child, EntryId parent) {
  const Entry& c = entries_[child];
  const BlockName name{c.projected, {}};
  EntryId shared = FindName(c.context, kSharedScope, name);
  if (shared != 0 && IsLive(shared)) {
    MoveFragment(child, shared);
    return shared;
  }
  std::vector<EntryId> path;
  const bool cycle =
      (shared != 0 && entries_[shared].first_child != 0) || c.first_child != 0
          ? ClosesCycle(c.context, kSharedScope, name, shared, parent, &path)
          : false;
  if (cycle) {
    for (HolderId holder : LiveHolders(child)) RejectHolder(child, holder);
    Purge(child);
    return 0;
  }
  if (shared == 0) shared = NewEntry(c.context, kSharedScope, name);
  Purge(shared, /*keep=*/true);
  SetLink(shared, parent, c.fingerprint.load(std::memory_order_relaxed),
          c.length.load(std::memory_order_relaxed), c.check, c.extra_keys_on_wire,
          BlockClass::kShared);
  if (const std::uint32_t d = c.full_digest.load(std::memory_order_relaxed)) {
    SetFullDigest(shared, Digest(digests_[d]));
  }
  MoveFragment(child, shared);
  return shared;
}

void PrefixIndex::JoinFragments(EntryId shared) {
  std::vector<EntryId> fragments;
  ForProjected(entries_[shared].context, entries_[shared].projected, [&](EntryId own) {
    if (Joinable(own)) fragments.push_back(own);
  });
  for (EntryId fragment : fragments) MoveFragment(fragment, shared);
}

// The fragment *is* the shared block: its holders and children move over and it is gone.
void PrefixIndex::MoveFragment(EntryId fragment, EntryId shared) {
  Entry& f = entries_[fragment];
  const EntryId parent = f.parent.load(std::memory_order_relaxed);
  const bool agrees =
      !IsLive(fragment) || parent == 0 ||
      SameLink(shared, parent, f.fingerprint.load(std::memory_order_relaxed),
               f.length.load(std::memory_order_relaxed), /*join=*/true);
  for (HolderId holder : LiveHolders(fragment)) {
    const std::uint32_t copies = Copies(fragment, holder);
    if (agrees) {
      AddHolder(shared, holder, copies);
      DropHolder(fragment, holder);
    } else {
      RejectHolder(fragment, holder);
    }
  }
  for (EntryId child : Children(fragment)) {
    Entry& c = entries_[child];
    const bool content = IsContent(c.block_class.load(std::memory_order_relaxed));
    if (content) RemoveContent(child);
    c.parent.store(0, std::memory_order_release);
    RemoveChild(fragment, child);
    c.parent.store(shared, std::memory_order_release);
    AddChild(shared, child);
    if (content) InsertContent(child);
  }
  Purge(fragment);
}

// Blocks below an unproven one are held by the ids that the first verified block retires.
void PrefixIndex::MoveToUnproven(EntryId id) {
  for (HolderId holder : LiveHolders(id)) {
    HolderKey key = holders_.holder(holder).key;
    if (key.unproven) continue;
    key.unproven = true;
    AddHolder(id, holders_.Current(key, holders_.holder(holder).row), Copies(id, holder));
    DropHolder(id, holder);
  }
}

}  // namespace conductor
