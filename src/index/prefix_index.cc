// Entries, their names, links and chains.
#include "src/index/prefix_index.h"

#include "src/check.h"

namespace conductor {

PrefixIndex::PrefixIndex()
    : contexts_(retired_),
      holders_(retired_),
      digests_(retired_),
      runs_(retired_),
      by_name_(retired_),
      by_content_(retired_),
      by_projected_(retired_),
      slots_by_name_(retired_),
      runs_by_link_(retired_) {}

PrefixIndex::~PrefixIndex() {
  retired_.FreeAll();
}

std::size_t PrefixIndex::bytes() const {
  return contexts_.bytes() + entries_.bytes() + digest_names_.bytes() + digests_.bytes() +
         by_name_.bytes() + by_content_.bytes() + by_projected_.bytes() + runs_.bytes() +
         slots_by_name_.bytes() + runs_by_link_.bytes() + holders_.bytes() + parts_.bytes() +
         copies_.bytes();
}

// --- names --------------------------------------------------------------------------------------

EntryId PrefixIndex::FindName(ContextId context, Scope scope, NameRef name) const {
  if (scope == kSharedScope) {
    if (const EntryId slot = FindSlot(context, name.projected)) return slot;
  }
  EntryId found = 0;
  ForSpellings(context, scope, name, [&](EntryId id) {
    if (scope == kSharedScope || NameOf(id).digest == name.digest) found = id;
  });
  // A reader may have looked among the slots before the entry became one, and here after it.
  if (found == 0 && scope == kSharedScope) found = FindSlot(context, name.projected);
  return found;
}

void PrefixIndex::ForEachId(const std::function<void(EntryId)>& visit) const {
  for (EntryId id = 1; id < entries_.end_id(); ++id) {
    if (entries_[id].in_use) visit(id);
  }
  RunView run;
  for (std::uint32_t position = 0; runs_.NextRun(&position, &run);) {
    for (std::uint32_t slot = 0; slot < run.size(); ++slot) visit(run.base + slot);
  }
}

EntryId PrefixIndex::FindLive(ContextId context, Scope scope, NameRef name, EntryId assumed) const {
  if (scope == kSharedScope) {
    const EntryId slot = FindSlot(context, name.projected);
    if (slot != 0) return slot == assumed || IsLive(slot) ? slot : 0;
  }
  EntryId found = 0;
  ForSpellings(context, scope, name, [&](EntryId id) {
    if (id != assumed && !IsLive(id)) return;
    if (found == 0 || NameOf(id).digest < NameOf(found).digest) found = id;
  });
  return found;
}

EntryId PrefixIndex::Resolve(ContextId context, Scope scope, NameRef name, EntryId assumed) const {
  if (scope != kSharedScope && HasOwnNames(context)) {
    if (const EntryId own = FindLive(context, scope, name, assumed)) return own;
  }
  return FindLive(context, kSharedScope, name, assumed);
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

EntryId PrefixIndex::AsParent(StreamId stream, EntryId stored, const BlockName& name) const {
  const ContextId context = ContextOf(stored);
  if (ScopeOf(stored) != kSharedScope || !HasOwnNames(context)) return stored;
  const EntryId own = FindLive(context, static_cast<Scope>(stream), name);
  return own != 0 ? own : stored;
}

EntryId PrefixIndex::NewEntry(ContextId context, Scope scope, NameRef name) {
  const EntryId id = entries_.Allocate();
  Entry& e = entries_[id];
  if (watch_ != nullptr) watch_->OnNewBlock(id);
  e.projected = name.projected;
  e.context = context;
  e.scope = scope;
  e.in_use = true;
  e.digest_name = 0;
  e.twin = false;
  if (scope == kSharedScope) ++contexts_.context(context).shared_entries;
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
    ++contexts_.context(context).own_names;
  }
  entry_count_.fetch_add(1, std::memory_order_relaxed);
  return id;
}

EntryId PrefixIndex::FindOrAdd(ContextId context, Scope scope, NameRef name) {
  const EntryId id = FindName(context, scope, name);
  return id != 0 ? id : NewEntry(context, scope, name);
}

void PrefixIndex::FreeEntry(EntryId id) {
  Entry& e = entries_[id];
  e.in_use = false;
  // A hole's, when it was in a run: it would be that of the next block here.
  if (const DigestId digest = e.full_digest.exchange(0, std::memory_order_acq_rel)) {
    digests_.Retire(digest);
  }
  if (e.scope == kSharedScope) --contexts_.context(e.context).shared_entries;
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
    --contexts_.context(e.context).own_names;
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
          index->digest_names_[entry.digest_name] = {};
          index->digest_names_.Release(entry.digest_name);
          entry.digest_name = 0;
        }
        index->entries_.Release(freed);
      },
      this, id);
}

void PrefixIndex::ReleaseIfUnused(EntryId id) {
  if (IsInRun(id)) {
    // A run that goes may have been the last thing that kept the holes above it.
    EntryId at = id;
    while (IsInRun(at)) {
      const EntryId above = Trim(runs_.ViewOf(at));
      if (above == 0) return NoteMerge(at);
      at = above;
    }
    ReleaseIfUnused(at);
    return;
  }
  const Entry& e = entries_[id];
  if (!e.in_use || e.state.load(std::memory_order_relaxed) != 0 || e.first_child != 0) return;
  CHECK(e.parent.load(std::memory_order_relaxed) == 0);  // nobody's entry has no link
  FreeEntry(id);
}

// --- links --------------------------------------------------------------------------------------

std::uint64_t PrefixIndex::ContentHashOf(EntryId id) const {
  const Entry& e = entries_[id];
  return ContentHash(e.context, ProjectedOf(e.parent.load(std::memory_order_relaxed)),
                     e.fingerprint.load(std::memory_order_relaxed));
}

void PrefixIndex::InsertContent(EntryId id) {
  const std::uint64_t hash = ContentHashOf(id);
  entries_[id].next_content.store(by_content_.Find(hash), std::memory_order_release);
  by_content_.Set(hash, id);
  Entry& e = entries_[id];
  Context& context = contexts_.context(e.context);
  auto& count = e.scope == kSharedScope ? context.shared_content : context.own_content;
  count.fetch_add(1, std::memory_order_release);
  if (HasTwinRun(e.parent.load(std::memory_order_relaxed), e.context,
                 e.fingerprint.load(std::memory_order_relaxed))) {
    CountTwin(id, true);
  }
}

void PrefixIndex::CountTwin(EntryId id, bool twin) {
  Entry& e = entries_[id];
  if (e.twin == twin) return;
  e.twin = twin;
  contexts_.context(e.context).twins.fetch_add(twin ? 1 : ~std::uint64_t{0},
                                               std::memory_order_release);
}

void PrefixIndex::RemoveContent(EntryId id) {
  Context& context = contexts_.context(entries_[id].context);
  CountTwin(id, false);
  auto& count = entries_[id].scope == kSharedScope ? context.shared_content : context.own_content;
  count.fetch_sub(1, std::memory_order_release);
  const std::uint64_t hash = ContentHashOf(id);
  const EntryId next = entries_[id].next_content.load(std::memory_order_relaxed);
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
  EntryId& first = FirstChild(parent);
  PrevSibling(child) = 0;
  NextSibling(child) = first;
  if (first != 0) PrevSibling(first) = child;
  first = child;
  if (!IsInRun(parent) || !IsInRun(child)) return;
  const RunView run = runs_.ViewOf(parent);
  if (run.next != nullptr && run.next->load(std::memory_order_relaxed) == 0 &&
      run.SlotOf(parent) + 1 == run.capacity) {
    run.next->store(child, std::memory_order_release);
  }
}

void PrefixIndex::RemoveChild(EntryId parent, EntryId child) {
  const EntryId next = NextSibling(child), prev = PrevSibling(child);
  if (next != 0) PrevSibling(next) = prev;
  (prev != 0 ? NextSibling(prev) : FirstChild(parent)) = next;
  PrevSibling(child) = NextSibling(child) = 0;
  if (!IsInRun(parent)) return;
  const RunView run = runs_.ViewOf(parent);
  if (run.next != nullptr && run.next->load(std::memory_order_relaxed) == child) {
    run.next->store(0, std::memory_order_release);
  }
}

PrefixIndex::LinkFacts PrefixIndex::FactsOf(EntryId id) const {
  if (IsInRun(id)) {
    const RunView run = runs_.ViewOf(id);
    return {run.fingerprints[run.SlotOf(id)], LengthOf(id), CheckOf(run.run->facts),
            (run.run->facts & 1) != 0};
  }
  const Entry& e = entries_[id];
  return {e.fingerprint.load(std::memory_order_relaxed), e.length.load(std::memory_order_relaxed),
          e.check, e.extra_keys_on_wire};
}

void PrefixIndex::SetLink(EntryId id, EntryId parent, const LinkFacts& facts,
                          BlockClass block_class) {
  Entry& e = entries_[id];
  CHECK(e.parent.load(std::memory_order_relaxed) == 0);
  Touch(id);
  AdjustSums(id, false);
  e.fingerprint.store(facts.fingerprint, std::memory_order_release);
  e.length.store(facts.length, std::memory_order_release);
  e.check = facts.check;
  e.extra_keys_on_wire = facts.extra_keys_on_wire;
  e.parent.store(parent, std::memory_order_release);
  if (e.scope == kSharedScope) ++contexts_.context(e.context).linked_entries;
  AddChild(parent, id);
  AdjustSums(id, true);
  SetClass(id, block_class);
}

// Only for entries no engine has any more (their sums are gone already; pools' never had a link).
void PrefixIndex::ClearLink(EntryId id) {
  Entry& e = entries_[id];
  SetClass(id, BlockClass::kNone);
  const EntryId parent = e.parent.load(std::memory_order_relaxed);
  if (parent == 0) return;
  Touch(id);
  e.parent.store(0, std::memory_order_release);
  if (e.scope == kSharedScope) --contexts_.context(e.context).linked_entries;
  e.length.store(0, std::memory_order_release);
  RemoveChild(parent, id);
  ReleaseIfUnused(parent);
}

void PrefixIndex::SetClass(EntryId id, BlockClass block_class) {
  Entry& e = entries_[id];
  const BlockClass old = e.block_class.load(std::memory_order_relaxed);
  if (old == block_class) return;
  Touch(id);
  if (IsContent(old) && !IsContent(block_class)) RemoveContent(id);
  const StateId state = e.state.load(std::memory_order_relaxed);
  if (state != 0 && IsFragment(old) != IsFragment(block_class)) {
    HolderSet& set = *holders_.Mutable(state);
    CountEntries(set, IsFragment(old), -1);
    CountEntries(set, IsFragment(block_class), +1);
  }
  e.block_class.store(block_class, std::memory_order_release);
  if (IsContent(block_class) && !IsContent(old)) InsertContent(id);
}

void PrefixIndex::Purge(EntryId id) {
  ForgetHolders(id);
  if (IsInRun(id)) return;  // a hole
  Entry& e = entries_[id];
  if (const std::uint32_t digest = e.full_digest.exchange(0, std::memory_order_acq_rel)) {
    digests_.Retire(digest);
  }
  ClearLink(id);
}

void PrefixIndex::PurgeAndRelease(EntryId id) {
  Purge(id);
  ReleaseIfUnused(id);
}

}  // namespace conductor
