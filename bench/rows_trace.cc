// Trace: the prompts of a request trace, one block per hash id, fingerprints ready. Request i goes
// to instance i modulo their number, which keeps everything. Then the prompts are asked for, spread
// over the trace: ours returns the best 8, baseline T all that match (it knows nothing else).
#include <algorithm>
#include <unordered_set>

#include "bench/race.h"
#include "bench/rivals.h"
#include "bench/trace_prompts.h"

namespace conductor::bench {
namespace {

constexpr std::uint32_t kBest = 8;
constexpr std::size_t kStride = 7'919;  // a prime: neighbours in time are far apart in the trace
constexpr std::size_t kCheckedPrompts = 64;
constexpr std::size_t kTurn = 64;  // prompts of a racer's turn

struct TraceShape {
  std::size_t instances;
  double bar_rate;
};

// The first blocks of the prompt that the instance does not have yet, as an engine would say it.
std::size_t FirstNew(std::unordered_set<std::uint64_t>& seen, std::size_t instance,
                     const Prompt& prompt) {
  std::size_t first = 0;
  const std::uint64_t salt = MixBits(instance);
  while (first < prompt.blocks() && seen.count(prompt.names[first] ^ salt) != 0) ++first;
  for (std::size_t i = first; i < prompt.blocks(); ++i) seen.insert(prompt.names[i] ^ salt);
  return first;
}

std::vector<Depth> BestOf(std::vector<Depth> depths) {
  SortDepths(depths);
  if (depths.size() > kBest) depths.resize(kBest);
  return depths;
}

Status RunShape(const Settings& settings, const TraceShape& shape,
                const std::vector<Prompt>& prompts, Report& report) {
  Rivals rivals(shape.instances);
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t r = 0; r < prompts.size(); ++r) {
    const std::size_t instance = r % shape.instances;
    rivals.Store(instance, prompts[r], FirstNew(seen, instance, prompts[r]), prompts[r].blocks());
  }
  Checksum sum;
  for (std::size_t i = 0; i < kCheckedPrompts; ++i) {
    const Prompt& prompt = prompts[i * kStride % prompts.size()];
    std::vector<Depth> depths = rivals.hash_map().Match(prompt.tokens);  // an independent answer
    SortDepths(depths);
    sum.Add(SumOf(depths));
    if (SumOf(BestOf(rivals.radix_tree().Match(prompt.fingerprints))) != SumOf(BestOf(depths))) {
      return Wrong("trace: H and T differ");
    }
  }
  std::vector<std::uint64_t> expected;  // by item; asked beforehand, so that no check is in between
  std::vector<std::size_t> matched;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Prompt& prompt = prompts[i * kStride % prompts.size()];
    const std::vector<Depth> depths = rivals.radix_tree().Match(prompt.fingerprints);
    matched.push_back(depths.size());
    expected.push_back(SumOf(BestOf(depths)));
  }
  const std::string what = std::to_string(shape.instances) + " instances";
  std::vector<Racer> racers(2);
  racers[0].middle = racers[1].middle = Middle::kMean;
  racers[0].row = {.work = what + ", best 8",
                   .unit = "walk",
                   .bar = 1e9 / shape.bar_rate,
                   .checksum = sum.value()};
  racers[0].time_one = [&](std::size_t i) -> Result<double> {
    const Prompt& prompt = prompts[i * kStride % prompts.size()];
    QueryOptions options;
    options.top_k = kBest;
    CONDUCTOR_ASSIGN_OR_RETURN(const auto walk, WalkReady(rivals.index(), prompt, options));
    CONDUCTOR_ASSIGN_OR_RETURN(const auto depths, DepthsOf(walk.answer));
    if (SumOf(depths) != expected[i]) return Wrong("trace, " + what + ": a wrong answer");
    return walk.ns;
  };
  racers[1].row = {.work = "T: " + what + ", all", .unit = "walk", .checksum = sum.value()};
  racers[1].time_one = [&](std::size_t i) -> Result<double> {
    const Prompt& prompt = prompts[i * kStride % prompts.size()];
    std::vector<Depth> depths;
    const double ns = WalkRadixTree(rivals.radix_tree(), prompt, &depths);
    if (depths.size() != matched[i]) return Wrong("T: another answer than before");
    return ns;
  };
  return RaceAndReport(settings, {prompts.size(), kTurn}, std::move(racers), report);
}

}  // namespace

Status RunTrace(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  CONDUCTOR_ASSIGN_OR_RETURN(const auto requests, ReadTrace(settings.trace));
  std::vector<Prompt> prompts;
  std::size_t blocks = 0;
  for (const auto& request : requests) {
    prompts.push_back(TracePrompt(source, request, 1));
    blocks += prompts.back().blocks();
  }
  for (const TraceShape& shape :
       {TraceShape{8, 1e6}, TraceShape{1'000, 800e3}, TraceShape{7'000, 500e3}}) {
    CONDUCTOR_RETURN_IF_ERROR(RunShape(settings, shape, prompts, report));
  }
  report.Note(std::to_string(requests.size()) + " requests, " + std::to_string(blocks) +
              " hash ids: " + settings.trace.substr(settings.trace.rfind('/') + 1));
  return {};
}

}  // namespace conductor::bench
