// Runs that are moved, merged, trimmed and taken apart. What readers find meanwhile: a run's blocks
// are findable in their new place before they cease to be in the old one, and whoever is in the old
// one goes on there.
#include <algorithm>

#include "src/index/prefix_index.h"

namespace conductor {
namespace {

// Children of all slots of a run that is moved: they all get new parents in one step.
constexpr std::uint32_t kMovedChildrenMax = 64;
// Runs that may be merged, and wait for it. More are forgotten: they stay as they are.
constexpr std::size_t kMergesMax = 1u << 16;

}  // namespace

// --- moving --------------------------------------------------------------------------------------

bool PrefixIndex::MayMove(const RunView& run) const {
  std::uint32_t children = 0;
  for (std::uint32_t slot = 0; slot < run.size(); ++slot) {
    for (EntryId child = run.children[slot]; child != 0;
         child = IsInRun(child) ? runs_.ViewOf(child).run->next_sibling
                                : entries_[child].next_sibling) {
      if (++children > kMovedChildrenMax) return false;
    }
  }
  return true;
}

// Copies slots to the end of `to`, and gives names and children over to the copies. Readers that
// are in the old run go on there: its links stay as they are.
void PrefixIndex::MoveSlots(const RunView& from, std::uint32_t first, std::uint32_t count,
                            const RunView& to) {
  const std::uint32_t begin = to.size();
  const ContextId context = from.run->context;
  for (std::uint32_t i = 0; i < count; ++i) {
    to.fingerprints[begin + i] = from.fingerprints[first + i];
    to.names[begin + i] = from.names[first + i];
    to.run->written = static_cast<std::uint8_t>(begin + i + 1);
    to.SetStates(begin + i, 1, from.states[first + i].load(std::memory_order_relaxed));
    to.run->size.store(static_cast<std::uint8_t>(begin + i + 1), std::memory_order_release);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const EntryId old_id = from.base + first + i, id = to.base + begin + i;
    slots_by_name_.Replace(NameHash(context, kSharedScope, from.names[first + i]), old_id, id);
    while (from.children[first + i] != 0) {
      const EntryId child = from.children[first + i];
      RemoveChild(old_id, child);
      SetParent(child, id);
      AddChild(id, child);
    }
  }
  MoveRunDigest(from, first, count, to, begin);
}

// The whole run, in one that has room for `slots` (at most 64).
PrefixIndex::RunView PrefixIndex::MoveRun(const RunView& run, std::uint32_t slots) {
  Touch(run.base);
  const RunView to = NewRun(std::min(slots, kRunSlotsMax));
  const EntryId parent = run.run->parent.load(std::memory_order_relaxed);
  const ContextId context = run.run->context;
  to.run->context = context;
  to.run->facts = run.run->facts;
  to.run->parent.store(parent, std::memory_order_relaxed);
  run.run->life.store(Run::kMoved, std::memory_order_release);
  MoveSlots(run, 0, run.size(), to);
  RemoveChild(parent, run.base);
  AddChild(parent, to.base);
  runs_by_link_.Replace(ContentHash(context, ProjectedOf(parent), run.fingerprints[0]), run.base,
                        to.base);
  runs_.Retire(run);
  return to;
}

// `parent` lost a child: maybe it is the end of a run and has one child left that continues it.
void PrefixIndex::NoteMerge(EntryId parent) {
  if (!IsInRun(parent) || merges_.size() >= kMergesMax) return;
  const RunView run = runs_.ViewOf(parent);
  if (run.run->life.load(std::memory_order_relaxed) != Run::kInUse) return;
  const std::uint32_t size = run.size();
  if (size == 0) return;
  const EntryId child = run.children[size - 1];
  if (size < kRunSlotsMax && IsInRun(child) && NextSibling(child) == 0) {
    merges_.push_back(run.base + size - 1);
  }
}

// Fills the run that ends at `end` from its only child. False: they are not what they were noted
// for any more, or cannot move.
bool PrefixIndex::Merge(EntryId end) {
  RunView run;
  if (!runs_.Find(end, &run)) return false;
  if (run.run->life.load(std::memory_order_relaxed) != Run::kInUse) return false;
  const std::uint32_t size = run.size();
  if (size == 0 || size == kRunSlotsMax || run.base + size - 1 != end) return false;
  const EntryId child = run.children[size - 1];
  if (!IsInRun(child) || NextSibling(child) != 0) return false;
  const RunView below = runs_.ViewOf(child);
  if (below.run->facts != run.run->facts || !MayMove(run) || !MayMove(below)) return false;

  const ContextId context = run.run->context;
  const std::uint32_t moved = std::min(below.size(), kRunSlotsMax - size);
  const std::uint32_t rest = below.size() - moved;
  Touch(below.base);
  below.run->life.store(Run::kMoved, std::memory_order_release);
  RemoveChild(end, child);
  const RunView to = MoveRun(run, size + moved);
  const EntryId old_end = to.base + size - 1;
  MoveSlots(below, 0, moved, to);
  const std::uint64_t link = ContentHash(context, to.names[size - 1], below.fingerprints[0]);
  if (rest > 0) {
    const RunView tail = NewRun(rest);
    const EntryId new_end = to.base + to.size() - 1;
    tail.run->context = context;
    tail.run->facts = below.run->facts;
    tail.run->parent.store(new_end, std::memory_order_relaxed);
    MoveSlots(below, moved, rest, tail);
    AddChild(new_end, tail.base);
    runs_by_link_.Insert(ContentHash(context, to.names[to.size() - 1], tail.fingerprints[0]),
                         tail.base);
    NoteMerge(tail.base + tail.size() - 1);
  }
  runs_by_link_.Remove(link, child);
  runs_.Retire(below);
  NoteMerge(old_end + moved);
  // The run before may have room for some of it.
  NoteMerge(to.run->parent.load(std::memory_order_relaxed));
  return true;
}

// --- giving up -----------------------------------------------------------------------------------

// Gives up the holes at the end that nothing hangs below. When nothing is left, the run goes, and
// what it hung below is returned.
EntryId PrefixIndex::Trim(const RunView& run) {
  const std::uint32_t before = run.size();
  std::uint32_t size = before;
  const ContextId context = run.run->context;
  while (size > 0 && run.states[size - 1].load(std::memory_order_relaxed) == 0 &&
         run.children[size - 1] == 0) {
    --size;
    slots_by_name_.Remove(NameHash(context, kSharedScope, run.names[size]), run.base + size);
  }
  if (size == before) return 0;
  slot_count_.fetch_sub(before - size, std::memory_order_relaxed);
  std::uint32_t digest_slot = 0;
  if (DigestIdOf(run, &digest_slot) != 0 && digest_slot >= size) SetRunDigest(run, 0, 0);
  run.run->size.store(static_cast<std::uint8_t>(size), std::memory_order_release);
  if (size > 0) {
    NoteMerge(run.base + size - 1);
    return 0;
  }
  const EntryId parent = run.run->parent.load(std::memory_order_relaxed);
  runs_by_link_.Remove(ContentHash(context, ProjectedOf(parent), run.fingerprints[0]), run.base);
  RemoveChild(parent, run.base);
  runs_.Retire(run);
  return parent;
}

// Takes a run apart into entries, because one of its names is about to mean something else. Rare:
// no publisher that hashes what it stores makes this happen. Returns the entry of `slot`'s name.
EntryId PrefixIndex::Loosen(EntryId slot) {
  const RunView run = runs_.ViewOf(slot);
  const std::uint32_t size = run.size();
  const ContextId context = run.run->context;
  const EntryId top = run.run->parent.load(std::memory_order_relaxed);
  Touch(run.base);
  run.run->life.store(Run::kMoved, std::memory_order_release);
  RemoveChild(top, run.base);
  std::vector<EntryId> made(size);
  EntryId above = top;
  for (std::uint32_t i = 0; i < size; ++i) {
    const EntryId old_id = run.base + i;
    const EntryId id = made[i] = NewEntry(context, kSharedScope, {run.names[i], {}});
    Entry& e = entries_[id];
    const LinkFacts facts = FactsOf(old_id);
    const StateId state = run.states[i].load(std::memory_order_relaxed);
    e.state.store(state, std::memory_order_release);
    if (holders_.IsLive(state)) {
      e.fingerprint.store(facts.fingerprint, std::memory_order_release);
      e.length.store(facts.length, std::memory_order_release);
      e.check = facts.check;
      e.extra_keys_on_wire = facts.extra_keys_on_wire;
      e.parent.store(above, std::memory_order_release);
      ++contexts_.context(context).linked_entries;
      AddChild(above, id);
    }
    while (run.children[i] != 0) {
      const EntryId child = run.children[i];
      RemoveChild(old_id, child);
      SetParent(child, id);
      AddChild(id, child);
    }
    if (const DigestId digest = DigestIdOf(old_id)) SetFullDigest(id, Digest(digests_.At(digest)));
    if (e.parent.load(std::memory_order_relaxed) != 0) {
      SetClass(id, BlockClass::kShared);
      CountTwin(id, false);  // of the slot it was
    }
    above = id;
  }
  // Now that readers find the entries.
  runs_by_link_.Remove(ContentHash(context, ProjectedOf(top), run.fingerprints[0]), run.base);
  for (std::uint32_t i = 0; i < size; ++i) {
    slots_by_name_.Remove(NameHash(context, kSharedScope, run.names[i]), run.base + i);
  }
  SetRunDigest(run, 0, 0);
  slot_count_.fetch_sub(size, std::memory_order_relaxed);
  runs_.Retire(run);
  const EntryId wanted = made[run.SlotOf(slot)];
  // Holes that were kept for a block below them.
  for (std::uint32_t i = size; i-- > 0;) {
    if (made[i] != wanted) ReleaseIfUnused(made[i]);
  }
  ReleaseIfUnused(top);
  return wanted;
}

}  // namespace conductor
