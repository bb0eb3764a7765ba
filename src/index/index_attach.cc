// What a block's arrival means for the fragments that waited for it: joins, orphans, cycles.
#include <set>

#include "src/index/prefix_index.h"

namespace conductor {

// What waits for a look: fragments that may be a shared block now, and children that may get a
// class. The order is part of what Apply means: joins first, then by (stream, name).
struct PrefixIndex::Waiting {
  bool attach = false;
  Scope scope = 0;
  NameRef name;
  EntryId id = 0;

  bool operator<(const Waiting& other) const {
    return std::tie(attach, scope, name.projected, name.digest, id) <
           std::tie(other.attach, other.scope, other.name.projected, other.name.digest, other.id);
  }
};

class PrefixIndex::WaitingSet : public std::set<Waiting> {};

// The name of `id` means a live block now, or its class changed: who should be looked at.
void PrefixIndex::NoteWaiting(EntryId id, WaitingSet* waiting) const {
  const Scope scope = ScopeOf(id);
  ForProjected(ContextOf(id), ProjectedOf(id), [&](EntryId own) {
    const Entry& o = entries_[own];
    if (scope != kSharedScope && o.scope != scope) return;
    const auto note = [&](EntryId entry, bool attach) {
      const BlockClass c = entries_[entry].block_class.load(std::memory_order_relaxed);
      if (!IsFragment(c) || !IsLive(entry)) return;
      waiting->insert({attach, entries_[entry].scope, NameOf(entry), entry});
    };
    if (scope == kSharedScope) note(own, /*attach=*/false);
    for (EntryId child = o.first_child; child != 0; child = entries_[child].next_sibling) {
      if (entries_[child].check == HashCheck::kNotComputed) note(child, /*attach=*/true);
    }
  });
}

// Looks at what waits until nothing changes any more.
void PrefixIndex::Settle(EntryId start) {
  if (!HasOwnNames(ContextOf(start))) return;
  WaitingSet waiting;
  NoteWaiting(start, &waiting);
  while (!waiting.empty()) {
    const Waiting next = *waiting.begin();
    waiting.erase(waiting.begin());
    const Entry& e = entries_[next.id];
    if (!e.in_use || !IsLive(next.id)) continue;
    if (!IsFragment(e.block_class.load(std::memory_order_relaxed))) continue;
    if (!next.attach) {
      Join(next.id, LiveShared(e.context, e.projected));
    } else if (const EntryId changed = Attach(next.id)) {
      NoteWaiting(changed, &waiting);
    }
  }
}

// The fragment *is* the shared block, or contradicts it and is gone.
void PrefixIndex::Join(EntryId fragment, EntryId shared) {
  const EntryId parent = entries_[fragment].parent.load(std::memory_order_relaxed);
  bool agrees = true;
  if (parent != 0) {
    const LinkFacts a = FactsOf(fragment), b = FactsOf(shared);
    const EntryId above = ParentOf(shared);
    const bool root = ScopeOf(parent) == kRootScope;  // whatever its salt: see SaysTheSame
    agrees = a.fingerprint == b.fingerprint && a.length == b.length &&
             root == (ScopeOf(above) == kRootScope) &&
             (root || ProjectedOf(parent) == ProjectedOf(above));
  }
  agrees ? MoveHolders(fragment, shared) : RejectAll(fragment);
  PurgeAndRelease(fragment);
}

// A child whose parent's name means something new. Returns the entry whose class changed, or 0.
EntryId PrefixIndex::Attach(EntryId child) {
  const Entry& c = entries_[child];
  const EntryId parent = c.parent.load(std::memory_order_relaxed);
  const EntryId shared = LiveShared(c.context, ProjectedOf(parent));
  if (c.block_class.load(std::memory_order_relaxed) == BlockClass::kNameOnly) {
    // It changes only when its name becomes a shared one.
    return c.extra_keys_on_wire && shared != 0 ? Promote(child, shared) : 0;
  }
  const EntryId own = FindLive(c.context, c.scope, NameOf(parent));
  const EntryId resolved = own != 0 ? own : shared;
  if (resolved == 0) return 0;
  const BlockClass derived = ClassBelow(ClassOf(resolved), c.extra_keys_on_wire);
  if (derived == BlockClass::kOrphan) return 0;
  if (derived == BlockClass::kShared) return Promote(child, resolved);
  SetClass(child, derived);
  if (derived == BlockClass::kUnproven) MoveToUnproven(child);
  return child;
}

// A fragment below the shared `parent` turns out to be the shared block of its own projection,
// which nobody has so far: a live one would have been joined. Returns it, or 0 when that closes a
// cycle.
EntryId PrefixIndex::Promote(EntryId child, EntryId parent) {
  const Entry& c = entries_[child];
  EntryId shared = FindOrAdd(c.context, kSharedScope, {c.projected, {}});
  Purge(shared);
  std::vector<EntryId> path;
  const bool cycle =
      HasChildren(shared) && ClosesCycle(shared, kSharedScope, NameOf(parent), &path);
  if (cycle) {
    RejectAll(child);
    ReleaseIfUnused(shared);
  } else {
    const LinkFacts facts = FactsOf(child);
    Arrival arrival;
    const BlockName name{ProjectedOf(parent), {}};
    arrival.context = c.context;
    arrival.parent = &name;
    arrival.fingerprint = facts.fingerprint;
    arrival.length = facts.length;
    arrival.check = facts.check;
    arrival.extra_keys_on_wire = facts.extra_keys_on_wire;
    shared = PlaceShared(shared, arrival, parent);
    MoveHolders(child, shared);
    if (const std::uint32_t d = c.full_digest.load(std::memory_order_relaxed)) {
      SetFullDigest(shared, Digest(digests_.At(d)));
    }
  }
  PurgeAndRelease(child);
  return cycle ? 0 : shared;
}

void PrefixIndex::MoveHolders(EntryId from, EntryId to) {
  for (HolderId holder : LiveHolders(from)) {
    AddHolder(to, holder, Copies(from, holder));
    DropHolder(from, holder);
  }
}

void PrefixIndex::RejectAll(EntryId id) {
  for (HolderId holder : LiveHolders(id)) RejectHolder(id, holder);
}

// Unproven blocks are held by the ids that the first verified block retires.
void PrefixIndex::MoveToUnproven(EntryId id) {
  for (HolderId holder : LiveHolders(id)) {
    HolderKey key = holders_.holder(holder).key;
    if (key.unproven) continue;
    key.unproven = true;
    AddHolder(id, holders_.Current(key, holders_.holder(holder).row), Copies(id, holder));
    DropHolder(id, holder);
  }
}

// --- cycles --------------------------------------------------------------------------------------

// Whether somebody's parent has this name.
bool PrefixIndex::IsParentOfAny(EntryId id) const {
  bool any = HasChildren(id);
  const ContextId context = ContextOf(id);
  if (any || !HasOwnNames(context)) return any;
  const Scope scope = ScopeOf(id);
  ForProjected(context, ProjectedOf(id), [&](EntryId own) {
    const Entry& o = entries_[own];
    any = any || (o.first_child != 0 && (scope == kSharedScope || scope == o.scope));
  });
  return any;
}

// Whether following the parents' names from `start`, which counts as live and hangs below `parent`,
// leads back to it: `path` has the blocks between, parent first. The first name is looked up in the
// scope `view`, every other one in the scope of the block it belongs to.
bool PrefixIndex::ClosesCycle(EntryId start, Scope view, NameRef parent,
                              std::vector<EntryId>* path) const {
  path->clear();
  const ContextId context = ContextOf(start);
  // A block before, further and further away: a loop that `start` is not on ends there.
  EntryId mark = 0;
  std::size_t next_mark = 1;
  Scope scope = view;
  NameRef name = parent;
  while (true) {
    const EntryId at = Resolve(context, scope, name, start);
    if (at == start) return true;
    if (at == 0 || at == mark) return false;
    path->push_back(at);
    if (path->size() == next_mark) {
      mark = at;
      next_mark *= 2;
    }
    const EntryId above = ParentOf(at);
    if (above == 0 || ScopeOf(above) == kRootScope) return false;
    scope = ScopeOf(at);
    name = NameOf(above);
  }
}

// True: the arriving block at `start` would close a cycle, in the view of its publisher or among
// shared names. The waiting orphans on it are dropped. Only names that somebody hangs below can
// close one, so the walk up is rare.
bool PrefixIndex::DropCycle(EntryId start, const Arrival& arrival) {
  if (arrival.parent == nullptr) return false;
  if (ProjectedOf(start) != arrival.parent->projected && !IsParentOfAny(start)) return false;
  std::vector<EntryId> path;
  const bool shared = ScopeOf(start) == kSharedScope;
  if (!ClosesCycle(start, static_cast<Scope>(arrival.stream), *arrival.parent, &path) &&
      !(shared && ClosesCycle(start, kSharedScope, *arrival.parent, &path))) {
    return false;
  }
  for (EntryId at : path) {
    if (ClassOf(at) != BlockClass::kOrphan) continue;
    RejectAll(at);
    PurgeAndRelease(at);
  }
  return true;
}

}  // namespace conductor
