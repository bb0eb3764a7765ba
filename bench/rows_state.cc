// State: Apply of prepared records, digest included, no log. Distinct blocks of one instance in
// 64-block events; removals as an engine's LRU gives them: the oldest prompt first, and of a
// prompt the last block first.
#include <algorithm>

#include "bench/rows.h"
#include "bench/state_rig.h"
#include "src/index/walk.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kEventsPerPrompt = kPromptBlocks / kEventBlocks;
constexpr double kApplyBarNs = 1e9 / 8e6;
constexpr double kPauseBarNs = 2e6;

struct Spent {
  double wall_ns = 0, processor_ns = 0;
};

struct StateRun {
  Spent grow, store, remove;
  double pause_ns = 0;
  std::size_t grown = 0, stored = 0, removed = 0;
  std::uint64_t checksum = 0;
};

// Longest match of a whole prompt of kPromptBlocks, in blocks.
Result<std::uint64_t> MatchedBlocks(const StateRig& rig, const PromptSource& source,
                                    std::uint64_t prompt) {
  const std::vector<std::int32_t> tokens = source.Tokens(prompt, kPromptBlocks);
  CONDUCTOR_ASSIGN_OR_RETURN(const QueryAnswer answer, MatchPrompt(rig.index(), MakeQuery(tokens)));
  return answer.instances.empty() ? 0 : answer.instances[0].best.disk / kBlockSize;
}

std::vector<Record> PreparePrompt(StateRig& rig, const PromptSource& source, std::uint64_t prompt,
                                  bool remove) {
  std::vector<Record> records;
  for (std::size_t e = 0; e < kEventsPerPrompt; ++e) {
    const std::size_t begin = (remove ? kEventsPerPrompt - 1 - e : e) * kEventBlocks;
    Event event = remove ? Event(source.RemovedEvent(prompt, begin, kEventBlocks))
                         : Event(source.StoredEvent(prompt, begin, kEventBlocks));
    records.push_back(rig.Prepare(0, std::move(event)));
  }
  return records;
}

void ApplyTimed(StateRig& rig, const std::vector<Record>& records, Spent& spent,
                double* pause_ns = nullptr) {
  const ProcessorWatch processor;
  for (const Record& record : records) {
    const Stopwatch watch;
    rig.Apply(record);
    const double ns = watch.ElapsedNs();
    if (pause_ns != nullptr) *pause_ns = std::max(*pause_ns, ns);
    spent.wall_ns += ns;
  }
  spent.processor_ns += processor.ElapsedNs();
}

Result<StateRun> RunOnce(const Settings& settings) {
  const PromptSource source(settings.seed);
  const std::size_t prompts = settings.blocks / kPromptBlocks;
  const std::size_t churned = std::max<std::size_t>(1, prompts / 2);
  StateRun run;
  StateRig rig(1);
  for (std::size_t p = 0; p < prompts; ++p) {
    ApplyTimed(rig, PreparePrompt(rig, source, p, false), run.grow, &run.pause_ns);
    run.grown += kPromptBlocks;
  }
  // A full cache: what comes in pushes the oldest out.
  for (std::size_t p = 0; p < churned; ++p) {
    ApplyTimed(rig, PreparePrompt(rig, source, prompts + p, false), run.store);
    ApplyTimed(rig, PreparePrompt(rig, source, p, true), run.remove);
    run.stored += kPromptBlocks;
    run.removed += kPromptBlocks;
  }
  const Stopwatch watch;
  const Sum128 digest = rig.state().Digest();
  run.store.wall_ns += watch.ElapsedNs();

  if (rig.index().blocks() != prompts * kPromptBlocks) {
    return Wrong(std::to_string(rig.index().blocks()) + " blocks, expected " +
                 std::to_string(prompts * kPromptBlocks));
  }
  for (std::size_t p = 0; p < prompts + churned; p += std::max<std::size_t>(1, prompts / 16)) {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t matched, MatchedBlocks(rig, source, p));
    if (matched != (p < churned ? 0 : kPromptBlocks)) {
      return Wrong("prompt " + std::to_string(p) + " matches " + std::to_string(matched) +
                   " blocks");
    }
  }
  Checksum sum;
  AddDigest(sum, digest);
  run.checksum = sum.value();
  return run;
}

void AddSpent(const Spent& spent, std::size_t count, Row& row) {
  row.repeats.push_back(Per(spent.wall_ns, count));
  row.processor.push_back(Per(spent.processor_ns, count));
}

}  // namespace

Status RunState(const Settings& settings, Report& report) {
  Row grow{.work = "stored while growing to the index size", .unit = "block"};
  Row pause{.work = "worst 64-block event, growing to " + SpellCount(settings.blocks),
            .unit = "event",
            .bar = kPauseBarNs,
            .by_median = true};
  Row store{.work = "stored at the index size", .unit = "block", .bar = kApplyBarNs};
  Row remove{.work = "removed at the index size, LRU order", .unit = "block", .bar = kApplyBarNs};
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const StateRun run, RunOnce(settings));
    AddSpent(run.grow, run.grown, grow);
    pause.repeats.push_back(run.pause_ns);
    AddSpent(run.store, run.stored, store);
    AddSpent(run.remove, run.removed, remove);
    for (Row* row : {&grow, &pause, &store, &remove}) {
      if (repeat > 0 && row->checksum != run.checksum) return Wrong("two runs, two digests");
      row->checksum = run.checksum;
    }
  }
  for (Row* row : {&grow, &pause, &store, &remove}) report.Add(std::move(*row));
  return {};
}

}  // namespace conductor::bench
