// Unregistering an instance that has everything: one record, then physical cleanup in slices, as
// the apply thread does it between its other work. What a registration or a frame waits for is one
// of the pauses; queries wait for nothing. Then the same of the whole service: what an event, a
// query and a registration wait from the request to unregister until nothing is left in memory.
#include <algorithm>

#include "bench/beside.h"
#include "bench/rows.h"
#include "bench/service_rig.h"
#include "bench/state_rig.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kEntriesPerSlice = 2'048;  // as the service takes them

// Entries in memory, and those of the prompts that stay.
double EntriesOf(const ServiceRig& rig) {
  for (const MetricSample& sample : rig.service().CollectMetrics()) {
    if (sample.name == "index_entries") return sample.value;
  }
  return -1;
}

Status RunServiceRetire(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  CONDUCTOR_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::Make(settings.directory));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto rig,
                             ServiceRig::Start(scratch->data_dir(), ServiceRig::Streams::kNone));
  std::uint64_t number = 0;
  CONDUCTOR_RETURN_IF_ERROR(rig->Register(0, "tcp://10.0.0.1:10000"));
  CONDUCTOR_RETURN_IF_ERROR(rig->Store(source, 1, 0, 1, number));
  const double entries_kept = EntriesOf(*rig);

  const std::string of = "service, unregistering " + SpellCount(settings.blocks) + " blocks";
  BesideRows rows(of);
  Row registration{.work = of + ": a registration", .unit = "pause", .by_median = true};
  Row whole{.work = of + ": until nothing is left", .unit = "block"};
  const std::size_t prompts = std::max<std::size_t>(1, settings.blocks / kPromptBlocks);
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    const std::size_t instance = 2 * repeat + 1;  // the next one registers beside it
    const auto endpoint = [](std::size_t i) {
      return "tcp://10.0.0.2:" + std::to_string(10'000 + i);
    };
    CONDUCTOR_RETURN_IF_ERROR(rig->Register(instance, endpoint(instance)));
    std::uint64_t its_number = 0;
    CONDUCTOR_RETURN_IF_ERROR(
        rig->Store(source, static_cast<StreamId>(instance + 1), 1, prompts, its_number));
    const auto unregister = [&]() -> Status {
      const Stopwatch all;
      CONDUCTOR_RETURN_IF_ERROR(rig->service().Unregister({InstanceName(instance), "default", 0}));
      const Stopwatch one;
      CONDUCTOR_RETURN_IF_ERROR(rig->Register(instance + 1, endpoint(instance + 1)));
      registration.repeats.push_back(one.ElapsedNs());
      CONDUCTOR_RETURN_IF_ERROR(WaitUntil("nothing is left of it", Poll::kPause, [&] {
        return EntriesOf(*rig) <= entries_kept + kEventBlocks;
      }));
      whole.repeats.push_back(Per(all.ElapsedNs(), prompts * kPromptBlocks));
      return {};
    };
    Beside beside;
    CONDUCTOR_RETURN_IF_ERROR(ComeAndGoBeside(source, *rig, number, unregister, beside));
    rows.Add(beside);
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const StatusView view, rig->service().GetStatus());
  if (view.blocks != kPromptBlocks) return Wrong("blocks are left of what was unregistered");
  std::vector<Row*> all = rows.rows();
  all.push_back(&registration);
  all.push_back(&whole);
  for (Row* row : all) {
    row->checksum = MixBits(view.blocks + view.registrations);
    report.Add(std::move(*row));
  }
  return {};
}

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
  return RunServiceRetire(settings, report);
}

}  // namespace conductor::bench
