// Growth: memory per block over a whole growth cycle (a table that doubles is worst right after
// it), what is left after churn to empty, and the worst pause of the writer with the log on.
#include <algorithm>
#include <cmath>

#include "bench/prompts.h"
#include "bench/rows.h"
#include "bench/service_rig.h"
#include "bench/state_rig.h"

namespace conductor::bench {
namespace {

constexpr double kCycle = 16;  // from a size to this many times it
constexpr int kSamplesPerDoubling = 8;
constexpr std::size_t kChurnCycles = 5;
constexpr std::size_t kSliceEntries = 2'048;
// Above an index that had one prompt once: a superblock that stays for the next run of its size. A
// constant: it holds for whatever number of blocks came and went.
constexpr double kChurnLeftBytes = 65'536;

struct GrowthShape {
  std::size_t holders, run_blocks;
  double bar_bytes;
};

Status RunCycle(const Settings& settings, const GrowthShape& shape, std::size_t top,
                Report& report) {
  const PromptSource source(settings.seed);
  const double bottom = static_cast<double>(top) / kCycle;
  const std::string what = (shape.run_blocks == 1 ? "runs of 1, " : "runs of 64, ") +
                           std::to_string(shape.holders) +
                           (shape.holders == 1 ? " holder, " : " holders, ") +
                           SpellCount(static_cast<std::size_t>(bottom)) + " to " + SpellCount(top);
  StateRig rig(shape.holders);
  const std::size_t before = rig.index().bytes();
  double sum = 0, worst = 0, next = bottom;
  int samples = 0;
  for (std::uint64_t p = 0; rig.index().blocks() < top; ++p) {
    const Stored event = source.StoredEvent(p, 0, shape.run_blocks);
    for (std::size_t h = 0; h < shape.holders; ++h) rig.Apply(h, event);
    const auto blocks = static_cast<double>(rig.index().blocks());
    if (blocks < next) continue;
    next *= std::exp2(1.0 / kSamplesPerDoubling);
    const double bytes = static_cast<double>(rig.index().bytes() - before) / blocks;
    sum += bytes;
    worst = std::max(worst, bytes);
    ++samples;
  }
  for (std::size_t h = 0; h < shape.holders; ++h) {
    if (rig.index().BlocksOf(h + 1, Tier::kDevice) != rig.index().blocks()) {
      return Wrong(what + ": blocks missing");
    }
  }
  Checksum check;
  AddDigest(check, rig.state().Digest());
  report.Add({.work = "average, " + what,
              .unit = "block",
              .measure = Measure::kBytes,
              .repeats = {sum / samples},
              .bar = shape.bar_bytes,
              .checksum = check.value()});
  report.Add({.work = "worst, " + what,
              .unit = "block",
              .measure = Measure::kBytes,
              .repeats = {worst},
              .checksum = check.value()});
  return {};
}

// Fills the index and empties it again, oldest prompt first and of a prompt the last block first.
Status FillAndEmpty(StateRig& rig, const PromptSource& source, std::size_t prompts) {
  for (std::uint64_t p = 0; p < prompts; ++p) rig.StorePrompt(source, 0, p, kPromptBlocks);
  if (rig.index().blocks() != prompts * kPromptBlocks) return Wrong("churn: blocks missing");
  for (std::uint64_t p = 0; p < prompts; ++p) {
    for (std::size_t end = kPromptBlocks; end > 0; end -= kEventBlocks) {
      rig.Apply(0, source.RemovedEvent(p, end - kEventBlocks, kEventBlocks));
    }
  }
  while (rig.state().CleanupSlice(kSliceEntries)) {
  }
  if (rig.index().blocks() != 0) return Wrong("churn: blocks left");
  return {};
}

Status RunChurn(const Settings& settings, Report& report) {
  const std::size_t prompts = std::max<std::size_t>(1, settings.blocks / kPromptBlocks);
  StateRig rig(1);
  // What an index keeps once it had anything at all (its first slabs) is no growth.
  CONDUCTOR_RETURN_IF_ERROR(FillAndEmpty(rig, PromptSource(settings.seed + kChurnCycles), 1));
  const std::size_t empty_bytes = rig.index().bytes();
  double first_resident = 0;
  for (std::size_t cycle = 0; cycle < kChurnCycles; ++cycle) {
    // Other content each time: what a table keeps of the old is seen.
    const PromptSource source(settings.seed + cycle);
    CONDUCTOR_RETURN_IF_ERROR(FillAndEmpty(rig, source, prompts));
    if (cycle == 0) first_resident = static_cast<double>(ResidentWithoutFreed());
  }
  const std::size_t left = rig.index().bytes() - std::min(rig.index().bytes(), empty_bytes);
  Checksum check;
  AddDigest(check, rig.state().Digest());
  const std::string what = std::to_string(kChurnCycles) + " times filled and emptied: ";
  report.Add({.work = what + "gauge above empty",
              .unit = "index",
              .measure = Measure::kBytes,
              .repeats = {static_cast<double>(left)},
              .bar = kChurnLeftBytes,
              .checksum = check.value()});
  report.Add({.work = what + "resident, of the first",
              .unit = "index",
              .measure = Measure::kTimes,
              .repeats = {static_cast<double>(ResidentWithoutFreed()) / first_resident},
              .bar = 1.05,
              .checksum = check.value()});
  return {};
}

// One event at a time, each waited for: the longest of them is a pause that a publisher would see.
Status RunPause(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  Row row{.work = "worst 64-block event, growing to " + SpellCount(settings.blocks) + ", log on",
          .unit = "event",
          .by_median = true};
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::Make(settings.directory));
    CONDUCTOR_ASSIGN_OR_RETURN(const auto rig,
                               ServiceRig::Start(scratch->data_dir(), ServiceRig::Streams::kNone));
    CONDUCTOR_RETURN_IF_ERROR(rig->Register(0, "tcp://10.0.0.1:10000"));
    double worst = 0;
    std::vector<Frame> frames = PrepareFrames(source, settings.blocks, kEventBlocks);
    for (Frame& frame : frames) {
      const std::uint64_t name = std::get<Stored>(frame.events[0]).blocks.back().name.projected;
      const Stopwatch watch;
      CONDUCTOR_RETURN_IF_ERROR(rig->Offer(1, std::move(frame)));
      CONDUCTOR_RETURN_IF_ERROR(rig->WaitForBlock(name, Poll::kSpin));
      worst = std::max(worst, watch.ElapsedNs());
    }
    row.repeats.push_back(worst);
    CONDUCTOR_ASSIGN_OR_RETURN(const StatusView view, rig->service().GetStatus());
    if (view.blocks != frames.size() * kEventBlocks) return Wrong("pause: blocks missing");
    row.checksum = MixBits(view.blocks);
  }
  report.Add(std::move(row));
  return {};
}

}  // namespace

Status RunGrowth(const Settings& settings, Report& report) {
  for (const GrowthShape& shape : {GrowthShape{1, 64, 48}, GrowthShape{8, 64, 50},
                                   GrowthShape{64, 64, 54}, GrowthShape{1, 1, 72}}) {
    CONDUCTOR_RETURN_IF_ERROR(RunCycle(settings, shape, settings.growth_blocks, report));
  }
  CONDUCTOR_RETURN_IF_ERROR(RunChurn(settings, report));
  return RunPause(settings, report);
}

}  // namespace conductor::bench
