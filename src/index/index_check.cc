// The index's own invariants, all of them, slowly: for tests.
#include <set>

#include "src/index/prefix_index.h"

namespace conductor {

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
  return wrong;
}

}  // namespace conductor
