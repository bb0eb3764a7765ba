// Entries, their names, links and chains; storing and removing one block.
#include "src/index/prefix_index.h"

#include "src/check.h"

namespace conductor {

PrefixIndex::PrefixIndex()
    : contexts_(retired_),
      holders_(retired_),
      by_name_(retired_),
      by_content_(retired_),
      by_projected_(retired_) {}

PrefixIndex::~PrefixIndex() { retired_.FreeAll(); }

std::size_t PrefixIndex::bytes() const {
  return entries_.bytes() + digest_names_.bytes() + digests_.bytes() + by_name_.bytes() +
         by_content_.bytes() + by_projected_.bytes() + holders_.bytes() + copies_.size() * 32;
}

// --- names --------------------------------------------------------------------------------------

EntryId PrefixIndex::FindName(ContextId context, Scope scope, const BlockName& name) const {
  EntryId other_spelling = 0;
  EntryId id = by_name_.Find(NameHash(context, scope, name.projected));
  for (; id != 0; id = entries_[id].next_name.load(std::memory_order_acquire)) {
    const Entry& e = entries_[id];
    if (e.projected != name.projected || e.context != context || e.scope != scope) continue;
    if (scope == kSharedScope) return id;
    if (e.digest_name == 0 && name.digest.empty()) return id;
    if (e.digest_name != 0 && !name.digest.empty()) {
      if (digest_names_[e.digest_name] == name.digest) return id;
      continue;
    }
    // One spelled as an integer, one as a digest: the same block of the same publisher.
    if (scope != kRootScope && other_spelling == 0) other_spelling = id;
  }
  return other_spelling;
}

namespace {

BlockName RootName(const std::optional<SaltDigest>& salt) {
  BlockName name;
  if (salt) {
    name.digest.assign(reinterpret_cast<const char*>(salt->data()), salt->size());
    for (int i = 0; i < 8; ++i) name.projected = (name.projected << 8) | (*salt)[i];
  }
  return name;
}

}  // namespace

EntryId PrefixIndex::FindRoot(ContextId context, const std::optional<SaltDigest>& salt) const {
  return FindName(context, kRootScope, RootName(salt));
}

EntryId PrefixIndex::Root(ContextId context, const std::optional<SaltDigest>& salt) {
  return FindOrAdd(context, kRootScope, RootName(salt));
}

EntryId PrefixIndex::ResolveParent(ContextId context, StreamId stream, const BlockName& name) {
  const Scope own_scope = static_cast<Scope>(stream);
  const EntryId own = FindName(context, own_scope, name);
  if (own != 0 && IsLive(own)) return own;
  if (EntryId shared = LiveShared(context, name.projected)) return shared;
  return own != 0 ? own : NewEntry(context, own_scope, name);
}

EntryId PrefixIndex::AsParent(StreamId stream, EntryId stored, const BlockName& name) {
  const Entry& e = entries_[stored];
  if (e.scope != kSharedScope || by_projected_.size() == 0) return stored;
  const EntryId own = FindName(e.context, static_cast<Scope>(stream), name);
  return own != 0 && IsLive(own) ? own : stored;
}

EntryId PrefixIndex::NewEntry(ContextId context, Scope scope, const BlockName& name) {
  const EntryId id = entries_.Allocate();
  Entry& e = entries_[id];
  e.projected = name.projected;
  e.context = context;
  e.scope = scope;
  e.in_use = true;
  e.digest_name = 0;
  if (scope != kSharedScope && !name.digest.empty()) {
    e.digest_name = digest_names_.Allocate();
    digest_names_[e.digest_name] = name.digest;
  }
  e.block_class.store(BlockClass::kNone, std::memory_order_relaxed);
  const std::uint64_t hash = NameHash(context, scope, name.projected);
  e.next_name.store(by_name_.Find(hash), std::memory_order_relaxed);
  by_name_.Set(hash, id);
  if (scope != kSharedScope && scope != kRootScope) {
    const std::uint64_t projected_hash = ProjectedHash(context, name.projected);
    const EntryId head = by_projected_.Find(projected_hash);
    e.next_projected.store(head, std::memory_order_relaxed);
    e.prev_projected = 0;
    if (head != 0) entries_[head].prev_projected = id;
    by_projected_.Set(projected_hash, id);
  }
  entry_count_.fetch_add(1, std::memory_order_relaxed);
  return id;
}

EntryId PrefixIndex::FindOrAdd(ContextId context, Scope scope, const BlockName& name) {
  const EntryId id = FindName(context, scope, name);
  return id != 0 ? id : NewEntry(context, scope, name);
}

void PrefixIndex::FreeEntry(EntryId id) {
  Entry& e = entries_[id];
  e.in_use = false;
  const std::uint64_t hash = NameHash(e.context, e.scope, e.projected);
  const EntryId next = e.next_name.load(std::memory_order_relaxed);
  EntryId at = by_name_.Find(hash);
  if (at == id) {
    next != 0 ? by_name_.Set(hash, next) : by_name_.Erase(hash);
  } else {
    while (entries_[at].next_name.load(std::memory_order_relaxed) != id) {
      at = entries_[at].next_name.load(std::memory_order_relaxed);
    }
    entries_[at].next_name.store(next, std::memory_order_release);
  }
  if (e.scope != kSharedScope && e.scope != kRootScope) {
    const EntryId following = e.next_projected.load(std::memory_order_relaxed);
    if (following != 0) entries_[following].prev_projected = e.prev_projected;
    if (e.prev_projected != 0) {
      entries_[e.prev_projected].next_projected.store(following, std::memory_order_release);
    } else {
      const std::uint64_t projected_hash = ProjectedHash(e.context, e.projected);
      following != 0 ? by_projected_.Set(projected_hash, following)
                     : by_projected_.Erase(projected_hash);
    }
  }
  entry_count_.fetch_sub(1, std::memory_order_relaxed);
  retired_.Retire(
      [](void* owner, std::uintptr_t object) {
        auto* index = static_cast<PrefixIndex*>(owner);
        const auto freed = static_cast<EntryId>(object);
        Entry& entry = index->entries_[freed];
        if (entry.digest_name != 0) {
          std::string().swap(index->digest_names_[entry.digest_name]);
          index->digest_names_.Release(entry.digest_name);
          entry.digest_name = 0;
        }
        index->entries_.Release(freed);
      },
      this, id);
}

void PrefixIndex::ReleaseIfUnused(EntryId id) {
  const Entry& e = entries_[id];
  if (!e.in_use || id == pinned_ || e.state.load(std::memory_order_relaxed) != 0 || e.first_child != 0) return;
  CHECK(e.parent.load(std::memory_order_relaxed) == 0);  // nobody's entry has no link
  FreeEntry(id);
}

// --- links --------------------------------------------------------------------------------------

void PrefixIndex::InsertContent(EntryId id) {
  Entry& e = entries_[id];
  const std::uint64_t hash = ContentHash(e.parent.load(std::memory_order_relaxed),
                                         e.fingerprint.load(std::memory_order_relaxed));
  e.next_content.store(by_content_.Find(hash), std::memory_order_release);
  by_content_.Set(hash, id);
}

void PrefixIndex::RemoveContent(EntryId id) {
  Entry& e = entries_[id];
  const std::uint64_t hash = ContentHash(e.parent.load(std::memory_order_relaxed),
                                         e.fingerprint.load(std::memory_order_relaxed));
  const EntryId next = e.next_content.load(std::memory_order_relaxed);
  EntryId at = by_content_.Find(hash);
  if (at == id) {
    next != 0 ? by_content_.Set(hash, next) : by_content_.Erase(hash);
    return;
  }
  while (entries_[at].next_content.load(std::memory_order_relaxed) != id) {
    at = entries_[at].next_content.load(std::memory_order_relaxed);
  }
  entries_[at].next_content.store(next, std::memory_order_release);
}

void PrefixIndex::AddChild(EntryId parent, EntryId child) {
  Entry& p = entries_[parent];
  Entry& c = entries_[child];
  c.prev_sibling = 0;
  c.next_sibling = p.first_child;
  if (p.first_child != 0) entries_[p.first_child].prev_sibling = child;
  p.first_child = child;
}

void PrefixIndex::RemoveChild(EntryId parent, EntryId child) {
  Entry& c = entries_[child];
  if (c.next_sibling != 0) entries_[c.next_sibling].prev_sibling = c.prev_sibling;
  if (c.prev_sibling != 0) {
    entries_[c.prev_sibling].next_sibling = c.next_sibling;
  } else {
    entries_[parent].first_child = c.next_sibling;
  }
  c.prev_sibling = c.next_sibling = 0;
}

std::vector<EntryId> PrefixIndex::Children(EntryId id) const {
  std::vector<EntryId> children;
  for (EntryId c = entries_[id].first_child; c != 0; c = entries_[c].next_sibling) {
    children.push_back(c);
  }
  return children;
}

void PrefixIndex::SetLink(EntryId id, EntryId parent, std::uint64_t fingerprint,
                          std::uint32_t length, HashCheck check, bool extra_keys_on_wire,
                          BlockClass block_class) {
  Entry& e = entries_[id];
  CHECK(e.parent.load(std::memory_order_relaxed) == 0);
  AdjustSums(id, false);
  e.fingerprint.store(fingerprint, std::memory_order_release);
  e.length.store(length, std::memory_order_release);
  e.check = check;
  e.extra_keys_on_wire = extra_keys_on_wire;
  e.parent.store(parent, std::memory_order_release);
  AddChild(parent, id);
  AdjustSums(id, true);
  SetClass(id, block_class);
}

// Only for entries nobody has any more (their sums are gone already).
void PrefixIndex::ClearLink(EntryId id) {
  Entry& e = entries_[id];
  SetClass(id, BlockClass::kNone);
  const EntryId parent = e.parent.load(std::memory_order_relaxed);
  if (parent == 0) return;
  e.parent.store(0, std::memory_order_release);
  RemoveChild(parent, id);
  ReleaseIfUnused(parent);
}

void PrefixIndex::SetClass(EntryId id, BlockClass block_class) {
  Entry& e = entries_[id];
  const BlockClass old = e.block_class.load(std::memory_order_relaxed);
  if (old == block_class) return;
  if (IsContent(old) && !IsContent(block_class)) RemoveContent(id);
  const StateId state = e.state.load(std::memory_order_relaxed);
  if (state != 0 && IsFragment(old) != IsFragment(block_class)) {
    HolderSet& set = *holders_.Mutable(state);
    CountEntry(set, IsFragment(old), -1);
    CountEntry(set, IsFragment(block_class), +1);
  }
  e.block_class.store(block_class, std::memory_order_release);
  if (IsContent(block_class) && !IsContent(old)) InsertContent(id);
}

// By name: the parents are one entry, or entries that spell one name in different scopes. Where a
// fragment is compared with a shared block (`join`), a root is a root whatever its salt: a publisher
// that hides its extra keys hides the salt too.
bool PrefixIndex::SameParent(EntryId a, EntryId b, bool join) const {
  if (a == b) return true;
  const Entry& x = entries_[a];
  const Entry& y = entries_[b];
  if (x.scope == kRootScope || y.scope == kRootScope) return join && x.scope == y.scope;
  if (x.projected != y.projected) return false;
  if (x.digest_name == 0 || y.digest_name == 0) return true;
  return digest_names_[x.digest_name] == digest_names_[y.digest_name];
}

bool PrefixIndex::SameLink(EntryId id, EntryId parent, std::uint64_t fingerprint,
                           std::uint32_t length, bool join) const {
  const Entry& e = entries_[id];
  return e.fingerprint.load(std::memory_order_relaxed) == fingerprint &&
         e.length.load(std::memory_order_relaxed) == length &&
         SameParent(e.parent.load(std::memory_order_relaxed), parent, join);
}

// Nobody has it any more: it becomes a placeholder for its children, or (unless `keep`) nothing.
void PrefixIndex::Purge(EntryId id, bool keep) {
  Entry& e = entries_[id];
  ForgetHolders(id, /*retired_only=*/false);
  if (const std::uint32_t digest = e.full_digest.exchange(0, std::memory_order_acq_rel)) {
    RetireDigest(digest);
  }
  ClearLink(id);
  if (!keep) ReleaseIfUnused(id);
}

// --- full digests ---------------------------------------------------------------------------------

void PrefixIndex::SetFullDigest(EntryId id, const Digest& digest) {
  Entry& e = entries_[id];
  const std::uint32_t old = e.full_digest.load(std::memory_order_relaxed);
  if (old != 0 && digests_[old] == digest) return;
  const std::uint32_t fresh = digests_.Allocate();
  digests_[fresh] = digest;
  e.full_digest.store(fresh, std::memory_order_release);
  if (old != 0) RetireDigest(old);
}

void PrefixIndex::RetireDigest(std::uint32_t digest) {
  retired_.Retire(
      [](void* owner, std::uintptr_t object) {
        static_cast<PrefixIndex*>(owner)->digests_.Release(static_cast<std::uint32_t>(object));
      },
      this, digest);
}

std::optional<Digest> PrefixIndex::FindDigest(ContextId context, Scope scope,
                                              const BlockName& name) const {
  for (Scope s : {scope, kSharedScope}) {
    const EntryId id = FindName(context, s, name);
    if (id == 0 || !IsLive(id)) continue;
    if (const std::uint32_t d = entries_[id].full_digest.load(std::memory_order_acquire)) {
      return digests_[d];
    }
  }
  return std::nullopt;
}

// --- storing and removing -------------------------------------------------------------------------

PrefixIndex::StoreResult PrefixIndex::StoreBlock(const Arrival& arrival) {
  const BlockName& name = *arrival.name;
  const BlockClass block_class = Derive(arrival);
  const bool shared = block_class == BlockClass::kShared;
  EntryId parent = arrival.parent;
  const Entry& p = entries_[parent];
  if (shared && p.scope != kRootScope && p.scope != kSharedScope) {
    // Its digest covers its parent's: the parent's shared name is known, present or not.
    parent = FindOrAdd(arrival.context, kSharedScope, BlockName{p.projected, {}});
  }
  const Scope scope = shared ? kSharedScope : static_cast<Scope>(arrival.stream);

  EntryId id = 0;
  if (IsFragment(block_class)) id = LiveShared(arrival.context, name.projected);
  if (id == 0) id = FindName(arrival.context, scope, name);
  const bool live = id != 0 && IsLive(id);
  const bool linked = live && entries_[id].parent.load(std::memory_order_relaxed) != 0;
  Outcome outcome = Outcome::kStored;
  if (linked) {
    const bool join = !shared && entries_[id].scope == kSharedScope;
    if (!SameLink(id, parent, arrival.fingerprint, arrival.length, join)) {
      outcome = Outcome::kContradiction;
    }
  } else if (DropCycle(arrival.context, scope, name, id, parent)) {
    outcome = Outcome::kCycle;
  } else if (!live && IsFragment(block_class) && fragments() >= kFragmentsMax) {
    outcome = Outcome::kFragmentLimit;
  } else {
    if (id == 0) id = NewEntry(arrival.context, scope, name);
    // Dead but not yet cleaned up: it starts afresh. Its old parent may be the new one.
    pinned_ = parent;
    if (!live) Purge(id, /*keep=*/true);
    pinned_ = 0;
    SetLink(id, parent, arrival.fingerprint, arrival.length, arrival.check,
            arrival.extra_keys_on_wire, block_class);
  }
  if (outcome == Outcome::kStored) {
    const BlockClass final_class = entries_[id].block_class.load(std::memory_order_relaxed);
    AddHolder(id, HolderFor(arrival, final_class), 1);
  }
  ReleaseIfUnused(parent);
  ReleaseIfUnused(arrival.parent);
  if (outcome != Outcome::kStored) return {outcome, 0};
  if (!linked) Settle(id);
  return {outcome, id};
}

PrefixIndex::StoreResult PrefixIndex::StoreName(ContextId context, StreamId stream,
                                                std::uint32_t row, Tier tier,
                                                const BlockName& name) {
  const Scope own_scope = static_cast<Scope>(stream);
  EntryId id = FindName(context, own_scope, name);
  if (id == 0 || !IsLive(id)) {
    if (EntryId shared = LiveShared(context, name.projected)) {
      id = shared;
    } else {
      if (fragments() >= kFragmentsMax) return {Outcome::kFragmentLimit, 0};
      if (id == 0) id = NewEntry(context, own_scope, name);
      Purge(id, /*keep=*/true);
      SetClass(id, BlockClass::kNameOnly);
    }
  }
  const bool unproven =
      entries_[id].block_class.load(std::memory_order_relaxed) == BlockClass::kUnproven;
  const bool live = IsLive(id);
  AddHolder(id, holders_.Current({stream, context, tier, unproven}, row), 1);
  if (!live) Settle(id);
  return {Outcome::kStored, id};
}

bool PrefixIndex::RemoveCopy(ContextId context, StreamId stream, Tier tier,
                             const BlockName& name) {
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
  if (!IsLive(id)) Purge(id);
  return true;
}

bool PrefixIndex::Evict(ContextId context, StreamId stream, Tier tier, const BlockName& name) {
  const auto [id, holder] = FindHeld(context, stream, tier, name);
  if (id == 0) return false;
  DropHolder(id, holder);
  if (!IsLive(id)) Purge(id);
  return true;
}

}  // namespace conductor
