// Named: queries of 8k tokens in which 1 % of the blocks are known by name only (their events
// carried no extra keys and their hash was not compared). The walk reaches those by the exact
// SHA-256 chain over the prompt's own tokens. Cold: no event left a digest the chain could start
// from, so it starts at the root; warm: each event left that of its last block.
#include "bench/race.h"
#include "bench/rivals.h"
#include "src/index/walk.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kInstances = 8;
constexpr std::size_t kBlocks = 512;
constexpr std::size_t kPrompts = 4;
constexpr std::size_t kEvery = 100;  // one name-only block in so many
constexpr std::size_t kFirst = 50;
constexpr std::uint64_t kFillerPrompt = std::uint64_t{1} << 20;
constexpr double kPlainQueryNs = 20e3;  // the bar, without the chain
constexpr double kChainStep = 1.2;      // in CAL

bool IsNameOnly(std::size_t block) {
  return block % kEvery == kFirst;
}

// The last name-only block and all before it.
std::size_t ChainedBlocks() {
  std::size_t last = 0;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (IsNameOnly(i)) last = i + 1;
  }
  return last;
}

void StorePrompt(StateRig& rig, std::size_t instance, const Prompt& prompt, bool cold) {
  for (std::size_t begin = 0, end; begin < kBlocks; begin = end) {
    end = begin + 1;
    Stored event;
    if (IsNameOnly(begin)) {
      event = StoredOf(prompt, begin, end);
      event.extra_keys_on_wire = false;
      event.blocks[0].check = HashCheck::kNotComputed;
      event.last_digest.reset();
    } else {
      while (end < kBlocks && !IsNameOnly(end)) ++end;
      event = StoredOf(prompt, begin, end);
      if (cold) event.last_digest.reset();
    }
    rig.Apply(instance, std::move(event));
  }
}

Status RunOne(const Settings& settings, bool cold, double cal_ns, Report& report) {
  const PromptSource source(settings.seed);
  StateRig rig(kInstances);
  std::vector<Prompt> hot;
  std::size_t fragments = 0;
  for (std::size_t p = 0; p < kPrompts; ++p) {
    hot.push_back(MakePrompt(source, p, kBlocks));
    for (std::size_t i = 0; i < kInstances; ++i) StorePrompt(rig, i, hot[p], cold);
    for (std::size_t i = 0; i < kBlocks; ++i) fragments += IsNameOnly(i) ? 1 : 0;
  }
  // Publishers may have one for each of them.
  if (rig.index().fragments() < fragments) return Wrong("by name only: not so many fragments");
  for (std::uint64_t p = 0; rig.index().blocks() + kPromptBlocks <= settings.blocks; ++p) {
    rig.StorePrompt(source, p % kInstances, kFillerPrompt + p, kPromptBlocks);
  }
  std::vector<Depth> right;
  for (std::size_t i = 0; i < kInstances; ++i) right.push_back({static_cast<Owner>(i), kBlocks});
  Racer racer;
  racer.row = {.work = std::string("8192 tokens, 1 % by name only, ") + (cold ? "cold" : "warm"),
               .unit = "query",
               .bar = cold ? kPlainQueryNs + kChainStep * cal_ns * ChainedBlocks() : 0,
               .checksum = SumOf(right)};
  racer.time_one = [&](std::size_t p) -> Result<double> {
    const PromptQuery query = MakeQuery(hot[p].tokens);
    const Stopwatch watch;
    const Result<QueryAnswer> answer = MatchPrompt(rig.index(), query);
    const double ns = watch.ElapsedNs();
    if (!answer) return tl::unexpected(answer.error());
    CONDUCTOR_ASSIGN_OR_RETURN(const auto depths, DepthsOf(*answer));
    if (SumOf(depths) != SumOf(right)) return Wrong("by name only: a wrong answer");
    return ns;
  };
  return RaceAndReport(settings, kPrompts, {std::move(racer)}, report);
}

}  // namespace

Status RunNamed(const Settings& settings, Report& report) {
  const double cal_ns = Calibrate().cal_ns;
  CONDUCTOR_RETURN_IF_ERROR(RunOne(settings, /*cold=*/true, cal_ns, report));
  CONDUCTOR_RETURN_IF_ERROR(RunOne(settings, /*cold=*/false, cal_ns, report));
  report.Note("cold: " + std::to_string(ChainedBlocks()) + " blocks are chained");
  return {};
}

}  // namespace conductor::bench
