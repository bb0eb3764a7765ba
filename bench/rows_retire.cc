// Unregistering an instance that has everything: one record, then physical cleanup in slices, as
// the apply thread does it between its other work. What a registration or a frame waits for is one
// of the pauses; queries wait for nothing.
#include <algorithm>

#include "bench/rows.h"
#include "bench/state_rig.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kEntriesPerSlice = 2'048;  // as the service takes them

}  // namespace

Status RunRetire(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  Row record{.work = "the record that unregisters " + SpellCount(settings.blocks) + " blocks",
             .unit = "pause",
             .bar = 2e6,
             .by_median = true};
  Row slice{.work = "longest slice of the cleanup behind it",
            .unit = "pause",
            .bar = 2e6,
            .by_median = true};
  Row total{.work = "cleanup, all of it", .unit = "block"};
  Checksum sum;
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    StateRig rig(1);
    for (std::uint64_t p = 0; p * kPromptBlocks < settings.blocks; ++p) {
      rig.StorePrompt(source, 0, p, kPromptBlocks);
    }
    const std::size_t blocks = rig.index().blocks();
    const ServiceKey key = rig.state().streams().begin()->second.registration.Key();
    const Stopwatch unregister;
    rig.state().Apply(Record{{Unregistered{key}}});
    record.repeats.push_back(unregister.ElapsedNs());
    if (rig.index().blocks() != 0) return Wrong("blocks are left after the record");
    double longest = 0;
    const Stopwatch cleanup;
    for (bool more = true; more;) {
      const Stopwatch one;
      more = rig.state().CleanupSlice(kEntriesPerSlice);
      longest = std::max(longest, one.ElapsedNs());
    }
    total.repeats.push_back(Per(cleanup.ElapsedNs(), blocks));
    slice.repeats.push_back(longest);
    if (rig.index().entries_in_memory() > 1) return Wrong("entries are left after the cleanup");
    if (repeat == 0) {
      sum.Add(blocks);
      AddDigest(sum, rig.state().Digest());
    }
  }
  for (Row* row : {&record, &slice, &total}) {
    row->checksum = sum.value();
    report.Add(std::move(*row));
  }
  return {};
}

}  // namespace conductor::bench
