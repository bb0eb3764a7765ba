// The index's own invariants, all of them, slowly: for tests.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "src/index/prefix_index.h"

namespace conductor {

std::string HolderTable::Inconsistency(const std::map<StateId, std::uint64_t>& named,
                                       std::uint64_t unclean) const {
  std::string wrong;
  const auto expect = [&](bool holds, const char* what, std::uint32_t id) {
    if (!holds) wrong += std::string(what) + ": " + std::to_string(id) + "\n";
  };
  std::vector<std::uint64_t> memberships(holders_.end_id());
  std::vector<std::vector<StateId>> listed(holders_.end_id());
  for (HolderId id = 1; id < holders_.end_id(); ++id) {
    listed[id] = holders_[id].states;
    std::sort(listed[id].begin(), listed[id].end());
  }
  std::size_t sets = 0;
  for (StateId id = 1; id < sets_.end_id(); ++id) {
    const HolderSet* set = Mutable(id);
    if (set == nullptr) {
      expect(!named.contains(id), "a state that was freed", id);
      continue;
    }
    ++sets;
    const auto found = named.find(id);
    expect(set->entries == (found == named.end() ? 0 : found->second), "a set's entries", id);
    expect(set->fragments <= set->entries, "a set's fragments", id);
    std::uint32_t live = 0, live_engines = 0;
    std::uint64_t set_hash = 0;
    for (std::uint32_t i = 0; i < set->size; ++i) {
      const HolderId member = set->holders[i];
      const Holder& h = holders_[member];
      set_hash += MixHolder(member);
      memberships[member] += set->entries;
      expect(std::binary_search(listed[member].begin(), listed[member].end(), id),
             "a set that its holder does not list", id);
      expect(h.key.context == set->context, "a holder of another context", id);
      expect(i == 0 || set->holders[i - 1] < member, "the order of a set", id);
      if (h.retired.load()) continue;
      ++live;
      if (h.key.pool == 0) ++live_engines;
    }
    expect(set->set_hash == set_hash, "a set's hash", id);
    expect(set->via_mix == 0 || (set->Contains(set->via) && set->via_mix == MixHolder(set->via) &&
                                 set->via_row == holders_[set->via].row &&
                                 set->via_stream == holders_[set->via].key.stream),
           "what a set says of a holder", id);
    expect(set->live.load() == live && set->live_engines.load() == live_engines,
           "a set's live holders", id);
    expect(set->has_retired.load() == (live < set->size), "a set's retired holders", id);
  }
  expect(sets == set_count_ && sets == interned_.size(), "the count of sets",
         static_cast<std::uint32_t>(sets));
  std::uint64_t retired = 0;
  for (HolderId id = 1; id < holders_.end_id(); ++id) {
    const Holder& h = holders_[id];
    expect(h.memberships == memberships[id], "memberships", id);
    const auto its = current_.find(h.key);
    expect(h.current == (its != current_.end() && its->second == id), "whether it is current", id);
    if (h.retired.load() && h.memberships > 0) ++retired;
    expect(h.retired.load() || h.blocks.load() == h.memberships, "blocks of a holder", id);
  }
  for (const auto& [key, id] : current_) {
    expect(!holders_[id].retired.load() && holders_[id].key == key, "a current holder", id);
  }
  expect(retired == unclean, "the count of unclean holders", static_cast<std::uint32_t>(retired));
  return wrong;
}

std::string PrefixIndex::Inconsistency() const {
  std::string wrong;
  const auto expect = [&](bool holds, const char* what, EntryId id) {
    if (!holds) wrong += std::string(what) + ": " + std::to_string(id & ~kInRun) + "\n";
  };
  const auto next_of = [&](EntryId child) {
    return IsInRun(child) ? runs_.ViewOf(child).run->next_sibling : entries_[child].next_sibling;
  };
  // Children name their parent, and the runs among them are in use.
  std::set<EntryId> listed;
  std::size_t runs = 0, slots = 0;
  const auto check_children = [&](EntryId parent, EntryId first) {
    EntryId before = 0;
    for (EntryId child = first; child != 0; before = child, child = next_of(child)) {
      expect(ParentOf(child) == parent, "a child with another parent", child);
      const EntryId prev =
          IsInRun(child) ? runs_.ViewOf(child).run->prev_sibling : entries_[child].prev_sibling;
      expect(prev == before, "a broken list of children", child);
      if (!IsInRun(child)) continue;
      listed.insert(child);
      const RunView run = runs_.ViewOf(child);
      expect(run.base == child, "a child within a run", child);
      expect(run.run->life.load() == Run::kInUse, "a child that is gone", child);
    }
  };
  for (EntryId id = 1; id < entries_.end_id(); ++id) {
    const Entry& e = entries_[id];
    expect(e.in_use || e.full_digest.load() == 0, "a digest of no block", id);
    if (!e.in_use) continue;
    check_children(id, e.first_child);
    if (e.scope == kSharedScope) {
      expect(FindSlot(e.context, e.projected) == 0, "an entry whose name is in a run", id);
    }
  }
  RunView run;
  for (std::uint32_t position = 0; runs_.NextRun(&position, &run);) {
    ++runs;
    const ContextId context = run.run->context;
    const std::uint32_t size = run.size();
    const EntryId parent = run.run->parent.load();
    expect(size > 0 && size <= run.run->written && run.run->written <= run.capacity, "a run's size",
           run.base);
    const std::uint64_t link = ContentHash(context, ProjectedOf(parent), run.fingerprints[0]);
    expect(runs_by_link_.FindIf(link, [&](EntryId id) { return id == run.base; }) != 0,
           "a run that content does not find", run.base);
    for (std::uint32_t i = 0; i < size; ++i, ++slots) {
      const EntryId id = run.base + i;
      expect(FindSlot(context, run.names[i]) == id, "a slot that its name does not find", id);
      check_children(id, run.children[i]);
      const bool differs = i == 0 || run.states[i].load() != run.states[i - 1].load();
      expect(run.breaks == nullptr || ((run.Breaks() >> i) & 1) == (differs ? 1u : 0u),
             "a break that is none, or is missing", id);
    }
    // A way up that goes on for longer than there are blocks goes round.
    std::size_t steps = 0;
    EntryId at = run.base;
    for (; IsInRun(at) && steps < 1'000; ++steps) at = runs_.ViewOf(at).run->parent.load();
    expect(steps < 1'000, "a cycle of runs", run.base);
    const bool hole = run.states[size - 1].load() == 0 && run.children[size - 1] == 0;
    expect(!hole, "a hole at the end of a run", run.base);
  }
  expect(runs == listed.size(), "the count of listed runs", static_cast<EntryId>(runs));
  expect(runs_by_link_.size() == runs, "links of no run", static_cast<EntryId>(runs));
  expect(slots_by_name_.size() == slots, "names of no slot", static_cast<EntryId>(slots));
  expect(slot_count_.load() == slots, "the count of slots", static_cast<EntryId>(slots));
  std::map<StateId, std::uint64_t> named;
  std::size_t ids = 0;
  ForEachId([&](EntryId id) {
    ++ids;
    if (const StateId state = StateOf(id)) ++named[state];
  });
  expect(ids == entries_in_memory(), "the count of entries", static_cast<EntryId>(ids));
  return wrong + holders_.Inconsistency(named, unclean_);
}

}  // namespace conductor
