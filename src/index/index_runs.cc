// Runs: where shared blocks of full length are found and put. What a block means is decided
// elsewhere (index_store.cc, index_attach.cc); here it gets its place, which may move
// (index_run_moves.cc).
#include <algorithm>

#include "src/check.h"
#include "src/index/prefix_index.h"

namespace conductor {
// --- finding -------------------------------------------------------------------------------------

// The run block, if there is one, below a block or a root: the next slot, or a run that hangs
// there.
EntryId PrefixIndex::FindRunBelow(const Above& above, std::uint64_t fingerprint) const {
  const auto next_slot = [&]() -> EntryId {
    const RunView run = runs_.ViewOf(above.entry);
    const std::uint32_t next = run.SlotOf(above.entry) + 1;
    return next < run.size() && run.fingerprints[next] == fingerprint ? above.entry + 1 : 0;
  };
  if (IsInRun(above.entry)) {
    if (const EntryId next = next_slot()) return next;
  }
  const EntryId found = runs_by_link_.FindIf(
      ContentHash(above.context, above.name.projected, fingerprint), [&](EntryId id) {
        const RunView run = runs_.ViewOf(id);
        return run.fingerprints[0] == fingerprint && run.run->context == above.context &&
               IsBelow(run.run->parent.load(std::memory_order_acquire), above);
      });
  if (found != 0 || !IsInRun(above.entry)) return found;
  // For readers: a merge may have put the child behind this block, in this run or in the one that
  // took its place, before it took the link away.
  if (const EntryId next = next_slot()) return next;
  if (runs_.IsInUse(above.entry)) return 0;
  const EntryId moved = FindMoved(above.entry);
  if (moved == 0 || moved == above.entry) return 0;
  return FindRunBelow({moved, above.context, above.scope, above.name}, fingerprint);
}

EntryId PrefixIndex::FindNextRun(const RunView& run, std::uint64_t fingerprint) const {
  const std::uint32_t last = run.size() - 1;
  if (run.next != nullptr) {
    if (const EntryId next = run.next->load(std::memory_order_acquire)) {
      const RunView below = runs_.ViewOf(next);
      if (below.fingerprints[0] == fingerprint &&
          below.run->parent.load(std::memory_order_acquire) == run.base + last) {
        return next;
      }
    }
  }
  return FindRunBelow(
      {run.base + last, run.run->context, kSharedScope, NameRef{run.names[last], {}}}, fingerprint);
}

// Whether a run has a block with this content there already.
bool PrefixIndex::HasTwinRun(EntryId above, ContextId context, std::uint64_t fingerprint) const {
  return FindRunBelow({above, context, ScopeOf(above), NameOf(above)}, fingerprint) != 0;
}

// A block in a run is about to have the content of these entries.
void PrefixIndex::MarkTwinEntry(EntryId above, ContextId context, std::uint64_t fingerprint) {
  const std::uint64_t hash = ContentHash(context, ProjectedOf(above), fingerprint);
  for (EntryId id = by_content_.Find(hash); id != 0;
       id = entries_[id].next_content.load(std::memory_order_relaxed)) {
    const Entry& e = entries_[id];
    if (e.fingerprint.load(std::memory_order_relaxed) != fingerprint || e.context != context) {
      continue;
    }
    CountTwin(id, true);
  }
}

// Whether the slot's link is this one.
bool PrefixIndex::IsPlaceOf(EntryId slot, EntryId above, std::uint64_t fingerprint) const {
  const RunView run = runs_.ViewOf(slot);
  return run.fingerprints[run.SlotOf(slot)] == fingerprint && ParentOf(slot) == above;
}

// --- putting -------------------------------------------------------------------------------------

// Puts blocks behind `above`, all in one run and in `state`: as many as fit, up to the first whose
// name is there. The first one's is not. Returns how many, and the last one's id; 0: a run has a
// block with that content there already. The sets' counts are the caller's.
std::size_t PrefixIndex::AppendToRun(ContextId context, EntryId above,
                                     std::span<const StoredBlock> blocks, std::uint8_t facts,
                                     StateId state, EntryId* last) {
  if (HasTwinRun(above, context, blocks[0].fingerprint)) return 0;
  RunView run;
  bool at_end = false;
  if (IsInRun(above)) {
    run = runs_.ViewOf(above);
    const std::uint32_t size = run.size();
    at_end = run.SlotOf(above) + 1 == size && size == run.run->written && run.run->facts == facts;
    if (at_end && size == run.capacity) {
      at_end = size < kRunSlotsMax && MayMove(run);
      if (at_end) run = MoveRun(run, static_cast<std::uint32_t>(size + blocks.size()));
      if (at_end) above = run.base + size - 1;
    }
  }
  if (!at_end) {
    run = NewRun(static_cast<std::uint32_t>(std::min<std::size_t>(blocks.size(), kRunSlotsMax)));
    run.run->context = context;
    run.run->facts = facts;
    run.run->parent.store(above, std::memory_order_relaxed);
  }
  if (at_end) Touch(run.base);
  const std::uint32_t begin = run.size();
  const auto room =
      static_cast<std::uint32_t>(std::min<std::size_t>(blocks.size(), run.capacity - begin));
  const bool mark = contexts_.context(context).shared_content.load(std::memory_order_relaxed) > 0;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < room; ++i, ++count) {
    if (i > 0 && HasSharedName(context, blocks[i].name.projected)) break;
    const EntryId id = run.base + begin + i;
    if (mark) MarkTwinEntry(i == 0 ? above : id - 1, context, blocks[i].fingerprint);
    run.fingerprints[begin + i] = blocks[i].fingerprint;
    run.names[begin + i] = blocks[i].name.projected;
    run.states[begin + i].store(state, std::memory_order_relaxed);
    slots_by_name_.Insert(NameHash(context, kSharedScope, blocks[i].name.projected), id);
  }
  run.run->written = static_cast<std::uint8_t>(begin + count);
  run.SetStates(begin, count, state);
  // Release: whoever sees the size sees the slots.
  run.run->size.store(static_cast<std::uint8_t>(begin + count), std::memory_order_release);
  slot_count_.fetch_add(count, std::memory_order_relaxed);
  if (!at_end) {
    AddChild(above, run.base);
    runs_by_link_.Insert(ContentHash(context, ProjectedOf(above), blocks[0].fingerprint), run.base);
  }
  *last = run.base + begin + count - 1;
  return count;
}

// What the event's publisher has of it now, too: blocks from `id` on that lie side by side and are
// held by the same. Returns how many; 0: not plainly the same blocks.
std::size_t PrefixIndex::StoreAgain(const Arrival& arrival, std::span<const StoredBlock> blocks,
                                    EntryId id, EntryId above) {
  if (!IsPlaceOf(id, above, blocks[0].fingerprint)) return 0;
  const RunView run = runs_.ViewOf(id);
  const std::uint32_t slot = run.SlotOf(id);
  if (!IsLive(id)) {
    // A hole. Where links exist that are not runs', it might close a cycle by now.
    const bool same_facts =
        run.run->facts == RunFacts(HashCheck::kEqual, arrival.extra_keys_on_wire);
    if (!same_facts || contexts_.context(arrival.context).linked_entries > 0) return 0;
    ForgetHolders(id);
  }
  const HolderId holder =
      holders_.Current({arrival.stream, arrival.context, arrival.tier, false}, arrival.row);
  const StateId state = StateOf(id);
  const HolderSet* set = holders_.Find(state);
  if (set != nullptr && set->Contains(holder)) {
    AddHolder(id, holder, 1);
    return 1;
  }
  std::uint32_t count = 1;
  while (count < blocks.size() && slot + count < run.size() &&
         run.states[slot + count].load(std::memory_order_relaxed) == state &&
         run.names[slot + count] == blocks[count].name.projected &&
         run.fingerprints[slot + count] == blocks[count].fingerprint) {
    ++count;
  }
  SetStates(run, slot, count, holders_.WithHolder(state, holder));
  AddBlocks(holder, run, slot, count);
  return count;
}

void PrefixIndex::AddBlocks(HolderId holder, const RunView& run, std::uint32_t slot,
                            std::uint32_t count) {
  Holder& h = holders_.holder(holder);
  h.sum += MixRange(run, slot, count);
  h.blocks.fetch_add(count, std::memory_order_relaxed);
  h.memberships += count;
}

std::size_t PrefixIndex::StoreVerified(Arrival& arrival, std::span<const StoredBlock> blocks) {
  const Context& context = contexts_.context(arrival.context);
  if (context.own_names > 0 || arrival.length != context.key.block_size) return 0;
  const auto names_ahead = [&](std::size_t i) {
    for (std::size_t j = i; j < std::min(i + kPrefetchNames, blocks.size()); ++j) {
      slots_by_name_.Prefetch(NameHash(arrival.context, kSharedScope, blocks[j].name.projected));
    }
  };
  const std::uint8_t facts = RunFacts(HashCheck::kEqual, arrival.extra_keys_on_wire);
  EntryId above = arrival.above != 0 ? arrival.above : ParentFor(arrival, kSharedScope);
  // Plainly verified, and not its own parent.
  const BlockName* parent = arrival.parent;
  std::size_t plain = 0;
  while (plain < blocks.size() && blocks[plain].check == HashCheck::kEqual &&
         (parent == nullptr || !SameName(*parent, blocks[plain].name))) {
    parent = &blocks[plain++].name;
  }
  blocks = blocks.first(plain);
  std::size_t stored = 0;
  names_ahead(0);
  while (stored < plain) {
    const auto rest = blocks.subspan(stored);
    std::size_t count = 0;
    EntryId last = 0;
    if (const EntryId id = FindSlot(arrival.context, rest[0].name.projected)) {
      count = StoreAgain(arrival, rest, id, above);
      last = id + static_cast<EntryId>(count) - 1;
    } else if (!HasSharedEntry(arrival.context, rest[0].name.projected)) {
      names_ahead(stored + kPrefetchNames);
      const HolderId holder =
          holders_.Current({arrival.stream, arrival.context, arrival.tier, false}, arrival.row);
      const StateId state = holders_.WithHolder(0, holder);
      count = AppendToRun(arrival.context, above, rest, facts, state, &last);
      if (count == 0 && holders_.Find(state)->entries == 0) holders_.NoteEmpty(state);
      if (count > 0) {
        CountEntries(*holders_.Mutable(state), false, static_cast<std::int64_t>(count));
        const RunView run = runs_.ViewOf(last);
        const std::uint32_t slot = run.SlotOf(last) + 1 - static_cast<std::uint32_t>(count);
        AddBlocks(holder, run, slot, static_cast<std::uint32_t>(count));
      }
    }
    if (count == 0) break;
    stored += count;
    above = last;
  }
  if (stored == 0) {
    ReleaseIfUnused(above);
    return 0;
  }
  arrival.parent = &blocks[stored - 1].name;
  arrival.above = above;
  return stored;
}

// The place of a shared block that nobody has. `id` is what its name has now: a hole, or an entry
// without a link. Returns the block's id; it has a link, and whoever had the name before.
EntryId PrefixIndex::PlaceShared(EntryId id, const Arrival& arrival, EntryId resolved) {
  const bool above_is_parent = resolved != 0 && ScopeOf(resolved) == kSharedScope;
  EntryId above = above_is_parent ? resolved : ParentFor(arrival, kSharedScope);
  const std::uint8_t facts = RunFacts(arrival.check, arrival.extra_keys_on_wire);
  if (IsInRun(id)) {
    if (IsPlaceOf(id, above, arrival.fingerprint) && runs_.ViewOf(id).run->facts == facts &&
        arrival.length == LengthOf(id)) {
      return id;
    }
    id = Loosen(id);
    above = ParentFor(arrival, kSharedScope);  // it may have been in the same run
  }
  if (arrival.length == contexts_.context(arrival.context).key.block_size) {
    if (entries_[id].first_child != 0) {
      if (const EntryId hole = HoleBetween(above, id)) {
        const std::uint64_t name = ProjectedOf(id);
        Loosen(hole);
        // Either may have been freed with the run, or have moved.
        above = ParentFor(arrival, kSharedScope);
        id = FindOrAdd(arrival.context, kSharedScope, {name, {}});
      }
    }
    if (const EntryId slot = Adopt(id, above, arrival)) return slot;
  }
  SetLink(id, above,
          {arrival.fingerprint, arrival.length, arrival.check, arrival.extra_keys_on_wire},
          BlockClass::kShared);
  return id;
}

// Whether the way up from `from`, holes and all, leads to `top`: then a hole on it, else 0. Where
// links are all alive that would be a cycle, and was rejected; through holes, which keep their
// links, it would be one of runs that nothing could ever free.
EntryId PrefixIndex::HoleBetween(EntryId from, EntryId top) const {
  EntryId hole = 0;
  // A block before, further and further away: a loop that `top` is not on ends there.
  EntryId mark = 0;
  std::size_t steps = 0, next_mark = 1;
  for (EntryId at = from; at != 0 && at != mark;) {
    if (at == top) return hole;
    if (++steps == next_mark) {
      mark = at;
      next_mark *= 2;
    }
    if (!IsInRun(at)) {
      at = entries_[at].parent.load(std::memory_order_relaxed);
      continue;
    }
    const RunView run = runs_.ViewOf(at);
    for (EntryId slot = run.base; slot <= at; ++slot) {
      if (!IsLive(slot)) hole = slot;
    }
    at = run.run->parent.load(std::memory_order_relaxed);
  }
  return 0;
}

// Turns an entry without a link into a slot behind `above`, with all that hangs below it. 0: the
// place is taken.
EntryId PrefixIndex::Adopt(EntryId entry, EntryId above, const Arrival& arrival) {
  Entry& e = entries_[entry];
  const StateId state = e.state.load(std::memory_order_relaxed);
  const StoredBlock block{BlockName{e.projected, {}}, arrival.fingerprint, arrival.check};
  EntryId slot = 0;
  if (AppendToRun(arrival.context, above, {&block, 1},
                  RunFacts(arrival.check, arrival.extra_keys_on_wire), state, &slot) == 0) {
    return 0;
  }
  Touch(entry);
  // The state went over as it is: the sets count the same.
  e.state.store(0, std::memory_order_release);
  while (e.first_child != 0) {
    const EntryId child = e.first_child;
    RemoveChild(entry, child);
    SetParent(child, slot);
    AddChild(slot, child);
  }
  ReleaseIfUnused(entry);
  return slot;
}

}  // namespace conductor
