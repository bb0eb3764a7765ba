// Walk: prompts whose fingerprints are ready, ours beside baseline T (whose input they are). The
// answer is who has how many blocks; of ours also the whole answer, with names, tiers and trust.
//
// Plain: 2,048 blocks, graded depths as in `compare`. Branching: every 4th block of the prompt has
// a second child, because other prompts of the same start left it there; all instances have all
// prompts. The prompts came in order of length, reversed or shuffled; then the others are evicted,
// last block first, and cleanup and merging have their turn. The rest of the index is prompts of
// 256 blocks, spread over the instances.
#include <algorithm>
#include <numeric>
#include <set>

#include "bench/race.h"
#include "bench/rivals.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kWalkBlocks = 2'048;
constexpr std::size_t kBranchEvery = 4;
constexpr std::size_t kBranchBlocks = 2;  // of a branch's own
constexpr std::size_t kBranchInstances = 8;
constexpr std::uint64_t kBranchPrompt = std::uint64_t{1} << 21;
constexpr std::uint64_t kFillerPrompt = std::uint64_t{1} << 20;

// Whole prompts of one instance each, up to the size of the index. Returns how many blocks they
// have.
std::size_t FillRest(const Settings& settings, const PromptSource& source, Rivals& rivals) {
  std::size_t filled = 0;
  for (std::uint64_t p = 0; rivals.index().blocks() + kPromptBlocks <= settings.blocks; ++p) {
    rivals.Store(p % rivals.instances(), MakePrompt(source, kFillerPrompt + p, kPromptBlocks), 0,
                 kPromptBlocks);
    filled += kPromptBlocks;
  }
  return filled;
}

// One prompt's walk by ours and by T.
Status RaceWalk(const Settings& settings, Row row, Rivals& rivals, const std::vector<Prompt>& hot,
                Report& report) {
  std::vector<std::uint64_t> expected;
  Checksum sum;
  for (const Prompt& prompt : hot) {
    std::vector<Depth> depths = rivals.hash_map().Match(prompt.tokens);  // an independent answer
    SortDepths(depths);
    if (depths.size() != rivals.instances()) return Wrong(row.work + ": H: not all instances");
    expected.push_back(SumOf(depths));
    sum.Add(expected.back());
  }
  row.checksum = sum.value();
  std::vector<Racer> racers;
  racers.push_back({row, [&](std::size_t p) -> Result<double> {
                      CONDUCTOR_ASSIGN_OR_RETURN(const auto walk, WalkRows(rivals.index(), hot[p]));
                      if (SumOf(walk.depths) != expected[p]) return Wrong(row.work + ": wrong");
                      return walk.ns;
                    }});
  Row other = row;
  other.work = "T: " + row.work;
  other.bar = 0;
  racers.push_back({other, [&](std::size_t p) -> Result<double> {
                      std::vector<Depth> depths;
                      const double ns = WalkRadixTree(rivals.radix_tree(), hot[p], &depths);
                      SortDepths(depths);
                      if (SumOf(depths) != expected[p]) return Wrong("T: " + row.work + ": wrong");
                      return ns;
                    }});
  other.work = row.work + ": whole answer";
  racers.push_back({std::move(other), [&](std::size_t p) -> Result<double> {
                      CONDUCTOR_ASSIGN_OR_RETURN(const auto walk,
                                                 WalkReady(rivals.index(), hot[p]));
                      CONDUCTOR_ASSIGN_OR_RETURN(const auto depths, DepthsOf(walk.answer));
                      if (SumOf(depths) != expected[p]) return Wrong(row.work + ": wrong answer");
                      return walk.ns;
                    }});
  return RaceAndReport(settings, hot.size(), std::move(racers), report);
}

Status RunPlain(const Settings& settings, std::size_t instances, double bar_ns, Report& report) {
  const PromptSource source(settings.seed);
  Rivals rivals(instances);
  std::vector<Prompt> hot;
  for (std::size_t p = 0; p < 4; ++p) {
    hot.push_back(MakePrompt(source, p, kWalkBlocks));
    for (std::size_t i = 0; i < instances; ++i) {
      rivals.Store(i, hot[p], 0,
                   std::max<std::size_t>(1, kWalkBlocks * (instances - i) / instances));
    }
  }
  FillRest(settings, source, rivals);
  Row row{.work = "2048 blocks, " + std::to_string(instances) + " instances",
          .unit = "walk",
          .bar = bar_ns};
  return RaceWalk(settings, std::move(row), rivals, hot, report);
}

// The main prompt first, then one that leaves it after each kBranchEvery blocks.
std::vector<Prompt> BranchingPrompts(const PromptSource& source) {
  std::vector<Content> path(kWalkBlocks);
  for (std::size_t i = 0; i < path.size(); ++i) path[i] = {0, i};
  std::vector<Prompt> prompts;
  prompts.push_back(MakePrompt(source, path));
  for (std::size_t at = kBranchEvery; at < kWalkBlocks; at += kBranchEvery) {
    std::vector<Content> branch(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t i = 0; i < kBranchBlocks; ++i) branch.push_back({kBranchPrompt + at, i});
    prompts.push_back(MakePrompt(source, branch));
  }
  return prompts;
}

// The main prompt last when in order of length, first when reversed.
std::vector<std::size_t> ArrivalOrder(const std::string& order, std::size_t prompts,
                                      std::uint64_t seed) {
  std::vector<std::size_t> numbers(prompts);
  std::iota(numbers.begin(), numbers.end(), 1);
  numbers.back() = 0;
  if (order == "reversed") std::reverse(numbers.begin(), numbers.end());
  if (order == "shuffled") {
    for (std::size_t i = prompts - 1; i > 0; --i) {
      std::swap(numbers[i], numbers[MixBits(seed + i) % (i + 1)]);
    }
  }
  return numbers;
}

Status RunBranching(const Settings& settings, const std::string& order, Report& report) {
  const PromptSource source(settings.seed);
  Rivals rivals(kBranchInstances);
  const std::vector<Prompt> prompts = BranchingPrompts(source);
  std::set<std::uint64_t> stored;
  for (std::size_t p : ArrivalOrder(order, prompts.size(), settings.seed)) {
    // An engine announces only what it did not have.
    const std::vector<std::uint64_t>& names = prompts[p].names;
    std::size_t begin = 0;
    while (begin < names.size() && stored.count(names[begin]) != 0) ++begin;
    stored.insert(names.begin(), names.end());
    for (std::size_t i = 0; i < kBranchInstances; ++i) {
      rivals.Store(i, prompts[p], begin, names.size());
    }
  }
  const std::size_t filled = FillRest(settings, source, rivals);
  const std::vector<Prompt> hot = {prompts[0]};
  Row row{.work = "every 4th block branches, " + order, .unit = "walk", .bar = 15e3};
  CONDUCTOR_RETURN_IF_ERROR(RaceWalk(settings, row, rivals, hot, report));

  for (std::size_t p = 1; p < prompts.size(); ++p) {
    for (std::size_t i = 0; i < kBranchInstances; ++i) {
      rivals.Remove(i, prompts[p], prompts[p].blocks() - kBranchBlocks, prompts[p].blocks());
    }
  }
  rivals.CleanUp();
  if (rivals.index().blocks() != kWalkBlocks + filled)
    return Wrong(order + ": branches are still there");
  row.work = "the same, branches evicted, " + order;
  row.bar = 2e3;
  return RaceWalk(settings, std::move(row), rivals, hot, report);
}

}  // namespace

Status RunWalk(const Settings& settings, Report& report) {
  CONDUCTOR_RETURN_IF_ERROR(RunPlain(settings, 8, 1.5e3, report));
  CONDUCTOR_RETURN_IF_ERROR(RunPlain(settings, 256, 2.5e3, report));
  for (const std::string order : {"in order", "reversed", "shuffled"}) {
    CONDUCTOR_RETURN_IF_ERROR(RunBranching(settings, order, report));
  }
  return {};
}

}  // namespace conductor::bench
