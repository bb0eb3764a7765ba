// The short bodies and templates of PrefixIndex: mostly what walks and look-ups call for each
// block, at the end the few that only the writer calls. Included by prefix_index.h, at its end.
#pragma once

#include "src/index/prefix_index.h"

namespace conductor {

inline std::uint64_t PrefixIndex::NameHash(ContextId context, Scope scope,
                                           std::uint64_t projected) {
  return HashMix((std::uint64_t{context} << 32) | scope, projected);
}

inline std::uint64_t PrefixIndex::ContentHash(ContextId context, std::uint64_t parent_name,
                                              std::uint64_t fingerprint) {
  return HashMix(fingerprint + context, parent_name);
}

inline std::uint64_t PrefixIndex::ProjectedHash(ContextId context, std::uint64_t projected) {
  return HashMix(projected, ~std::uint64_t{context});
}

inline ContextId PrefixIndex::ContextOf(EntryId id) const {
  return IsInRun(id) ? runs_.ViewOf(id).run->context : entries_[id].context;
}

inline std::uint64_t PrefixIndex::ProjectedOf(EntryId id) const {
  return IsInRun(id) ? runs_.NameOf(id) : entries_[id].projected;
}

inline StateId PrefixIndex::StateOf(EntryId id) const {
  return IsInRun(id) ? runs_.StateOf(id) : entries_[id].state.load(std::memory_order_acquire);
}

inline BlockClass PrefixIndex::ClassOf(EntryId id) const {
  if (!IsInRun(id)) return entries_[id].block_class.load(std::memory_order_acquire);
  return IsLive(id) ? BlockClass::kShared : BlockClass::kNone;
}

inline std::uint32_t PrefixIndex::LengthOf(EntryId id) const {
  if (!IsInRun(id)) return entries_[id].length.load(std::memory_order_acquire);
  return contexts_.context(runs_.ViewOf(id).run->context).key.block_size;
}

template <typename Visit>
void PrefixIndex::ForContent(EntryId above, std::uint64_t fingerprint, std::uint32_t length,
                             Visit&& visit) const {
  ForContentBelow({above, ContextOf(above), ScopeOf(above), NameOf(above)}, fingerprint, length,
                  visit);
}

template <typename Visit>
void PrefixIndex::ForContentBelowName(ContextId context, std::uint64_t shared_name,
                                      std::uint64_t fingerprint, std::uint32_t length,
                                      Visit&& visit) const {
  const EntryId above = FindName(context, kSharedScope, {shared_name, {}});
  ForContentBelow({above, context, kSharedScope, {shared_name, {}}}, fingerprint, length, visit);
}

inline EntryId PrefixIndex::FindRunBelow(EntryId above, std::uint64_t fingerprint) const {
  return FindRunBelow({above, ContextOf(above), ScopeOf(above), NameOf(above)}, fingerprint);
}

inline EntryId PrefixIndex::FindRunAside(ContextId context, EntryId above, std::uint64_t name,
                                         std::uint64_t fingerprint) const {
  return runs_by_link_.FindIf(ContentHash(context, name, fingerprint), [&](EntryId id) {
    const RunTable::View run = runs_.ViewOf(id);
    return run.fingerprints[0] == fingerprint &&
           run.run->parent.load(std::memory_order_acquire) == above;
  });
}

inline EntryId PrefixIndex::ParentOf(EntryId id) const {
  if (!IsInRun(id)) return entries_[id].parent.load(std::memory_order_acquire);
  const RunTable::View run = runs_.ViewOf(id);
  return id != run.base ? id - 1 : run.run->parent.load(std::memory_order_acquire);
}

inline NameRef PrefixIndex::NameOf(EntryId id) const {
  if (IsInRun(id)) return {runs_.NameOf(id), {}};
  const Entry& e = entries_[id];
  return {e.projected,
          e.digest_name == 0 ? std::string_view() : std::string_view(digest_names_[e.digest_name])};
}

inline void PrefixIndex::PrefetchName(ContextId context, const BlockName& name) const {
  slots_by_name_.Prefetch(NameHash(context, kSharedScope, name.projected));
}

inline EntryId PrefixIndex::FindSlot(ContextId context, std::uint64_t name) const {
  return slots_by_name_.FindIf(NameHash(context, kSharedScope, name),
                               [&](EntryId id) { return runs_.Is(id, context, name); });
}

// Inline: a walk asks it of every run it passes.
inline DigestId PrefixIndex::DigestIdOf(const RunTable::View& run, std::uint32_t* slot) {
  const std::uint32_t digest = run.run->full_digest.load(std::memory_order_acquire);
  *slot = digest & (kRunSlotsMax - 1);
  return digest >> (32 - kDigestIdBits);
}

inline bool PrefixIndex::HasSharedName(ContextId context, std::uint64_t name) const {
  return FindSlot(context, name) != 0 || HasSharedEntry(context, name);
}

inline bool PrefixIndex::HasSharedEntry(ContextId context, std::uint64_t name) const {
  if (contexts_.context(context).shared_entries == 0) return false;
  bool any = false;
  ForSpellings(context, kSharedScope, {name, {}}, [&](EntryId) { any = true; });
  return any;
}

inline bool PrefixIndex::HasChildren(EntryId id) const {
  if (!IsInRun(id)) return entries_[id].first_child != 0;
  const RunTable::View run = runs_.ViewOf(id);
  return run.SlotOf(id) + 1 < run.size() || run.children[run.SlotOf(id)] != 0;
}

// A reader may stand on an entry that the writer takes out of its chain and links elsewhere. So it
// looks at the link again after everything else of the entry: the same link means that the state
// and the way on belong to it. Otherwise, and on an entry of another chain, it starts again.
template <typename Visit>
void PrefixIndex::ForContentBelow(const Above& above, std::uint64_t fingerprint,
                                  std::uint32_t length, Visit&& visit) const {
  const Context& context = contexts_.context(above.context);
  if (length == context.key.block_size) {
    if (const EntryId below = FindRunBelow(above, fingerprint)) visit(below, StateOf(below));
  }
  if (context.shared_content.load(std::memory_order_acquire) == 0 &&
      context.own_content.load(std::memory_order_acquire) == 0) {
    return;
  }
  const std::uint64_t hash = ContentHash(above.context, above.name.projected, fingerprint);
  EntryId id = by_content_.Find(hash);
  while (id != 0) {
    const Entry& e = entries_[id];
    const EntryId parent = e.parent.load(std::memory_order_acquire);
    const std::uint64_t found = e.fingerprint.load(std::memory_order_acquire);
    const bool here = parent != 0 && SegmentMap::SameSlot(
                                         ContentHash(e.context, ProjectedOf(parent), found), hash);
    const bool matches =
        here && found == fingerprint && e.length.load(std::memory_order_acquire) == length &&
        IsContent(e.block_class.load(std::memory_order_acquire)) && IsBelow(parent, above);
    const StateId state = e.state.load(std::memory_order_acquire);
    const EntryId next = e.next_content.load(std::memory_order_acquire);
    if (!here || e.parent.load(std::memory_order_acquire) != parent ||
        e.fingerprint.load(std::memory_order_acquire) != found) {
      id = by_content_.Find(hash);
      continue;
    }
    if (matches) visit(id, state);
    id = next;
  }
}

// Whether the name of `parent`, some block's parent, names `above`. A shared block is what every
// publisher may mean by its name; a publisher's own block is meant by that publisher alone.
inline bool PrefixIndex::IsBelow(EntryId parent, const Above& above) const {
  if (parent == above.entry) return true;
  if (ProjectedOf(parent) != above.name.projected || ContextOf(parent) != above.context) {
    return false;
  }
  const Scope scope = ScopeOf(parent);
  if (scope == kRootScope || above.scope == kRootScope) return false;
  return above.scope == kSharedScope ||
         (scope == above.scope && SameSpelling(NameOf(parent).digest, above.name.digest));
}

template <typename Visit>
void PrefixIndex::ForSpellings(ContextId context, Scope scope, NameRef name, Visit&& visit) const {
  EntryId id = by_name_.Find(NameHash(context, scope, name.projected));
  for (; id != 0; id = entries_[id].next_name.load(std::memory_order_acquire)) {
    const Entry& e = entries_[id];
    if (e.projected != name.projected || e.context != context || e.scope != scope) continue;
    if (SameSpelling(NameOf(id).digest, name.digest)) visit(id);
  }
}

template <typename Visit>
void PrefixIndex::ForProjected(ContextId context, std::uint64_t projected, Visit&& visit) const {
  EntryId id = by_projected_.Find(ProjectedHash(context, projected));
  while (id != 0) {
    const Entry& e = entries_[id];
    if (e.projected == projected && e.context == context) visit(id);
    id = e.next_projected.load(std::memory_order_acquire);
  }
}

inline EntryId& PrefixIndex::FirstChild(EntryId parent) {
  if (!IsInRun(parent)) return entries_[parent].first_child;
  const RunTable::View run = runs_.ViewOf(parent);
  return run.children[run.SlotOf(parent)];
}

inline EntryId& PrefixIndex::NextSibling(EntryId child) {
  return IsInRun(child) ? runs_.ViewOf(child).run->next_sibling : entries_[child].next_sibling;
}

inline EntryId& PrefixIndex::PrevSibling(EntryId child) {
  return IsInRun(child) ? runs_.ViewOf(child).run->prev_sibling : entries_[child].prev_sibling;
}

inline void PrefixIndex::SetParent(EntryId child, EntryId parent) {
  auto& field = IsInRun(child) ? runs_.ViewOf(child).run->parent : entries_[child].parent;
  field.store(parent, std::memory_order_release);
}

inline CopyKey PrefixIndex::CopyKeyOf(EntryId id, HolderId holder) const {
  return ScopeOf(id) == kSharedScope ? CopyKey{ProjectedOf(id), 0, holder} : CopyKey{0, id, holder};
}

inline std::size_t PrefixIndex::entries_in_memory() const {
  return entry_count_.load(std::memory_order_relaxed) + slot_count_.load(std::memory_order_relaxed);
}

inline EntryId PrefixIndex::LiveShared(ContextId context, std::uint64_t projected) const {
  return FindLive(context, kSharedScope, {projected, {}});
}

inline bool PrefixIndex::HasLink(EntryId id) const {
  return IsInRun(id) || entries_[id].parent.load(std::memory_order_relaxed) != 0;
}

}  // namespace conductor
