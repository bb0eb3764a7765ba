// Memory: bytes of one distinct block, by the index's own gauge and by what the process has grown.
// Blocks are held by all the holders; they come in runs of 64 (one event), or alone.
#include "bench/rows.h"
#include "bench/state_rig.h"

namespace conductor::bench {
namespace {

struct Shape {
  std::string name;
  std::size_t run_blocks;
};

Status RunShape(const Settings& settings, const Shape& shape, std::size_t holders, Report& report) {
  const PromptSource source(settings.seed);
  const std::string what =
      shape.name + ", " + std::to_string(holders) + (holders == 1 ? " holder" : " holders");
  Row gauge{.work = what + ": the index's gauge", .unit = "block", .measure = Measure::kBytes};
  Row resident{.work = what + ": resident growth", .unit = "block", .measure = Measure::kBytes};
  const std::size_t prompts = settings.memory_blocks / shape.run_blocks;
  const auto blocks = static_cast<double>(prompts * shape.run_blocks);

  StateRig rig(holders);
  const std::uint64_t resident_before = ResidentWithoutFreed();
  const std::size_t gauge_before = rig.index().bytes();
  for (std::size_t p = 0; p < prompts; ++p) {
    for (std::size_t h = 0; h < holders; ++h) rig.StorePrompt(source, h, p, shape.run_blocks);
  }
  const std::uint64_t resident_after = ResidentWithoutFreed();
  if (rig.index().blocks() != prompts * shape.run_blocks) return Wrong(what + ": blocks missing");
  for (std::size_t h = 0; h < holders; ++h) {
    if (rig.index().BlocksOf(h + 1, Tier::kDevice) == prompts * shape.run_blocks) continue;
    return Wrong(what + ": blocks missing of holder " + std::to_string(h));
  }
  gauge.repeats.push_back(static_cast<double>(rig.index().bytes() - gauge_before) / blocks);
  resident.repeats.push_back(
      (static_cast<double>(resident_after) - static_cast<double>(resident_before)) / blocks);
  Checksum sum;
  AddDigest(sum, rig.state().Digest());
  gauge.checksum = resident.checksum = sum.value();
  report.Add(std::move(gauge));
  report.Add(std::move(resident));
  return {};
}

}  // namespace

Status RunMemory(const Settings& settings, Report& report) {
  for (const Shape& shape : {Shape{"runs of 64", 64}, Shape{"runs of 1", 1}}) {
    for (std::size_t holders : settings.holders) {
      if (shape.run_blocks == 1 && holders > 1) continue;
      CONDUCTOR_RETURN_IF_ERROR(RunShape(settings, shape, holders, report));
    }
  }
  return {};
}

}  // namespace conductor::bench
