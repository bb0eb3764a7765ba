// Stream: ZMQ messages of a publisher in this process until their blocks are visible; subscription,
// decoding, hash verification, log (`interval`), index. The publisher's sending is included, its
// encoding is not. Freshness: the same with one message at a time on an idle service.
#include <algorithm>
#include <thread>

#include "bench/messages.h"
#include "bench/rows.h"
#include "bench/stream_rig.h"

namespace conductor::bench {
namespace {

constexpr std::chrono::milliseconds kIdlePause{2};

Status RunShape(const Settings& settings, const MessageShape& shape, Row row, Report& report) {
  const PromptSource source(settings.seed);
  const Messages messages = MakeMessages(source, 0, shape);
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const StreamRig rig, StartStreamRig(settings.directory));
    std::vector<std::string> payloads = messages.payloads;
    const ProcessorWatch processor;
    const Stopwatch watch;
    for (std::string& payload : payloads) rig.publisher->Publish(std::move(payload));
    for (std::uint64_t name : messages.last_names) {
      CONDUCTOR_RETURN_IF_ERROR(rig.service->WaitForBlock(name, Poll::kPause));
    }
    row.repeats.push_back(Per(watch.ElapsedNs(), messages.blocks()));
    row.processor.push_back(Per(processor.ElapsedNs(), messages.blocks()));
    CONDUCTOR_ASSIGN_OR_RETURN(row.checksum, CheckStream(source, 0, messages, *rig.service));
  }
  report.Add(std::move(row));
  return {};
}

}  // namespace

Status RunStream(const Settings& settings, Report& report) {
  const std::size_t blocks = settings.stream_blocks;
  // Prompts of 256 blocks, then sixteen requests that decode side by side.
  CONDUCTOR_RETURN_IF_ERROR(
      RunShape(settings, {blocks, 1, 64, blocks / 256},
               {.work = "64-block prefill messages", .unit = "block", .bar = 1e9 / 1e6}, report));
  CONDUCTOR_RETURN_IF_ERROR(RunShape(
      settings, {blocks / 2, 16, 1, 16},
      {.work = "messages of 16 one-block events", .unit = "block", .bar = 1e9 / 0.5e6}, report));
  return RunShape(settings, {blocks / 4, 1, 1, 16},
                  {.work = "1-block messages", .unit = "block", .bar = 1e9 / 0.25e6}, report);
}

Status RunFreshness(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  Row row{.work = "one 1-block message on an idle service", .unit = "message", .bar = 0.4e6};
  Row late{.work = "the same: 99th percentile", .unit = "message", .bar = 2e6, .by_median = true};
  const MessageShape shape{settings.freshness_samples, 1, 1, 1};
  const Messages messages = MakeMessages(source, 0, shape);
  const std::vector<std::uint64_t> names = source.ChainNames(0, settings.freshness_samples);
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const StreamRig rig, StartStreamRig(settings.directory));
    std::vector<double> samples;
    for (std::size_t i = 0; i < messages.payloads.size(); ++i) {
      // Every thread of the service is asleep again.
      std::this_thread::sleep_for(kIdlePause);
      std::string payload = messages.payloads[i];
      const Stopwatch watch;
      rig.publisher->Publish(std::move(payload));
      CONDUCTOR_RETURN_IF_ERROR(rig.service->WaitForBlock(names[i], Poll::kSpin));
      samples.push_back(watch.ElapsedNs());
    }
    row.repeats.push_back(Quantile(samples, 0.5));
    row.p99.push_back(Quantile(samples, 0.99));
    late.repeats.push_back(row.p99.back());
    CONDUCTOR_ASSIGN_OR_RETURN(row.checksum, CheckStream(source, 0, messages, *rig.service));
  }
  late.checksum = row.checksum;
  report.Add(std::move(row));
  report.Add(std::move(late));
  return {};
}

}  // namespace conductor::bench
