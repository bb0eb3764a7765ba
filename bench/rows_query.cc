// Query: MatchPrompt in process, one thread, by prompt length and number of instances.
//
// The hot prompts are held to graded depths: of B blocks, instance i of I has the first
// B * (I - i) / I, so every answer has one row for each instance, all different, and the walk meets
// I break points. The rest of the index is prompts of 256 blocks, spread over the instances. Hot
// prompts of one length take turns. The clock stops when the answer is there; every timed answer is
// compared with the one that was proven right beforehand.
#include <algorithm>

#include "bench/rows.h"
#include "bench/state_rig.h"
#include "src/index/walk.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kHotTokens = 262'144;  // of all hot prompts of one length
constexpr std::size_t kHotPromptsMax = 16;
constexpr std::size_t kSamplesMin = 50;
constexpr std::size_t kSamplesMax = 20'000;
constexpr std::uint64_t kMissPrompt = std::uint64_t{1} << 40;  // numbers from here on: not stored
constexpr std::uint64_t kFillerPrompt = std::uint64_t{1} << 20;
constexpr std::uint32_t kBest = 8;
constexpr double kMissBarNs = 1e3;

// What is required; 0: nothing is.
double HitBarNs(std::size_t tokens, std::size_t instances) {
  if (tokens == 8'192 && instances == 8) return 12e3;
  if (tokens == 8'192 && instances == 64) return 14e3;
  return tokens == 131'072 && instances == 256 ? 150e3 : 0;
}

struct Prompts {
  std::size_t blocks = 0;
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::uint64_t> expected;  // sums of the right answers
};

std::size_t Depth(std::size_t blocks, std::size_t instance, std::size_t instances) {
  return std::max<std::size_t>(1, blocks * (instances - instance) / instances);
}

std::size_t HotPrompts(std::size_t tokens) {
  return std::clamp<std::size_t>(kHotTokens / tokens, 2, kHotPromptsMax);
}

// What the contract says about a hot prompt of this rig: deepest first, then by name.
QueryAnswer RightAnswer(std::size_t blocks, std::size_t instances) {
  QueryAnswer answer;
  for (std::size_t i = 0; i < instances; ++i) {
    const std::uint64_t tokens = Depth(blocks, i, instances) * kBlockSize;
    InstanceHits& hits = answer.instances.emplace_back();
    hits.instance_id = InstanceName(i);
    hits.best = {tokens, tokens, tokens, tokens};
  }
  return answer;
}

std::vector<Prompts> FillHot(const Settings& settings, const PromptSource& source, StateRig& rig) {
  std::vector<Prompts> all;
  std::uint64_t number = 0;
  for (std::size_t length : settings.prompt_tokens) {
    Prompts& prompts = all.emplace_back();
    prompts.blocks = length / kBlockSize;
    const std::uint64_t expected = SumOf(RightAnswer(prompts.blocks, rig.instances()));
    for (std::size_t p = 0; p < HotPrompts(length); ++p, ++number) {
      for (std::size_t i = 0; i < rig.instances(); ++i) {
        rig.StorePrompt(source, i, number, Depth(prompts.blocks, i, rig.instances()));
      }
      prompts.tokens.push_back(source.Tokens(number, prompts.blocks));
      prompts.expected.push_back(expected);
    }
  }
  return all;
}

void FillRest(const Settings& settings, const PromptSource& source, StateRig& rig) {
  for (std::uint64_t p = 0; rig.index().blocks() < settings.blocks; ++p) {
    const std::size_t left = settings.blocks - rig.index().blocks();
    rig.StorePrompt(source, p % rig.instances(), kFillerPrompt + p, std::min(kPromptBlocks, left));
  }
}

// Prompts of the same length that nobody has: not even the first block.
Result<Prompts> MissPrompts(const PromptSource& source, const StateRig& rig, std::size_t blocks) {
  Prompts prompts;
  prompts.blocks = blocks;
  for (std::uint64_t p = 0; p < HotPrompts(blocks * kBlockSize); ++p) {
    prompts.tokens.push_back(source.Tokens(kMissPrompt + p, blocks));
    CONDUCTOR_ASSIGN_OR_RETURN(const QueryAnswer answer,
                               MatchPrompt(rig.index(), MakeQuery(prompts.tokens.back(), kBest)));
    for (const InstanceHits& hits : answer.instances) {
      if (hits.best.disk != 0) return Wrong("a prompt that nobody has matches");
    }
    prompts.expected.push_back(SumOf(answer));
  }
  return prompts;
}

Status Ask(const Settings& settings, const StateRig& rig, const Prompts& prompts,
           std::uint32_t top_k, Row& row) {
  Checksum sum;
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    std::vector<double> samples;
    const Stopwatch total;
    while (samples.size() < kSamplesMin ||
           (samples.size() < kSamplesMax && total.ElapsedNs() < settings.query_seconds * 1e9)) {
      const std::size_t p = samples.size() % prompts.tokens.size();
      const PromptQuery query = MakeQuery(prompts.tokens[p], top_k);
      const Stopwatch watch;
      const Result<QueryAnswer> answer = MatchPrompt(rig.index(), query);
      samples.push_back(watch.ElapsedNs());
      if (!answer) return tl::unexpected(answer.error());
      if (SumOf(*answer) != prompts.expected[p]) {
        return Wrong(row.work + ": a wrong answer, prompt " + std::to_string(p));
      }
    }
    row.repeats.push_back(Quantile(samples, 0.5));
    row.p99.push_back(Quantile(samples, 0.99));
  }
  for (std::uint64_t expected : prompts.expected) sum.Add(expected);
  row.checksum = sum.value();
  return {};
}

}  // namespace

Status RunQuery(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  for (std::size_t instances : settings.instances) {
    StateRig rig(instances);
    const std::vector<Prompts> hot = FillHot(settings, source, rig);
    FillRest(settings, source, rig);
    for (const Prompts& prompts : hot) {
      const std::string what = std::to_string(prompts.blocks * kBlockSize) + " tokens, " +
                               std::to_string(instances) + " instances";
      Row hit{.work = "hit, " + what,
              .unit = "query",
              .bar = HitBarNs(prompts.blocks * kBlockSize, instances)};
      CONDUCTOR_RETURN_IF_ERROR(Ask(settings, rig, prompts, 0, hit));
      report.Add(std::move(hit));
      CONDUCTOR_ASSIGN_OR_RETURN(const Prompts missing, MissPrompts(source, rig, prompts.blocks));
      Row miss{.work = "miss, best 8, " + what, .unit = "query", .bar = kMissBarNs};
      CONDUCTOR_RETURN_IF_ERROR(Ask(settings, rig, missing, kBest, miss));
      report.Add(std::move(miss));
    }
  }
  return {};
}

}  // namespace conductor::bench
