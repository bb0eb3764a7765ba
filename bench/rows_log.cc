// Log: facts offered to the service until the last block is visible; the log is RocksDB with
// `interval` sync.
#include <algorithm>

#include "bench/rows.h"
#include "bench/service_rig.h"

namespace conductor::bench {
namespace {

// Every prompt that was stored is there, whole: a sample of them.
Result<std::uint64_t> CheckPrompts(const PromptSource& source, ServiceRig& rig,
                                   std::size_t blocks) {
  Checksum sum;
  const std::size_t prompts = blocks / kPromptBlocks;
  for (std::uint64_t p = 0; p < prompts; p += std::max<std::size_t>(1, prompts / 32)) {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t matched,
                               rig.MatchedBlocks(source.Tokens(p, kPromptBlocks)));
    if (matched != kPromptBlocks) {
      return Wrong("prompt " + std::to_string(p) + " matches " + std::to_string(matched));
    }
    sum.Add(p);
    sum.Add(matched);
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const StatusView view, rig.service().GetStatus());
  sum.Add(view.blocks);
  if (view.blocks != prompts * kPromptBlocks) return Wrong(std::to_string(view.blocks) + " blocks");
  return sum.value();
}

Status OfferAll(const Settings& settings, std::size_t event_blocks, std::size_t blocks, Row& row) {
  const PromptSource source(settings.seed);
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::Make(settings.directory));
    CONDUCTOR_ASSIGN_OR_RETURN(const auto rig,
                               ServiceRig::Start(scratch->data_dir(), ServiceRig::Streams::kNone));
    CONDUCTOR_RETURN_IF_ERROR(rig->Register(0, "tcp://10.0.0.1:10000"));
    std::vector<Frame> frames = PrepareFrames(source, blocks, event_blocks);
    const std::uint64_t last = source.Name(blocks / kPromptBlocks - 1, kPromptBlocks - 1).projected;
    const ProcessorWatch processor;
    const Stopwatch watch;
    for (Frame& frame : frames) CONDUCTOR_RETURN_IF_ERROR(rig->Offer(1, std::move(frame)));
    CONDUCTOR_RETURN_IF_ERROR(rig->WaitForBlock(last, Poll::kPause));
    row.repeats.push_back(Per(watch.ElapsedNs(), blocks));
    row.processor.push_back(Per(processor.ElapsedNs(), blocks));
    CONDUCTOR_ASSIGN_OR_RETURN(row.checksum, CheckPrompts(source, *rig, blocks));
  }
  return {};
}

}  // namespace

Status RunLog(const Settings& settings, Report& report) {
  Row prefill{.work = "offered to visible, 64-block events", .unit = "block"};
  CONDUCTOR_RETURN_IF_ERROR(OfferAll(settings, 64, settings.log_blocks, prefill));
  report.Add(std::move(prefill));
  Row decode{.work = "offered to visible, 1-block events", .unit = "block"};
  CONDUCTOR_RETURN_IF_ERROR(OfferAll(settings, 1, settings.log_blocks / 4, decode));
  report.Add(std::move(decode));
  return {};
}

}  // namespace conductor::bench
