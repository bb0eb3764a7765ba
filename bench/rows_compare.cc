// Compare: ours beside the two baselines, on the same blocks and prompts, in one interleaved run.
// A baseline's row says how many times as long (or large) it is as ours: "x ours".
//
// Query: from token ids, all instances answered; of B blocks, instance i of I has the first
// B * (I - i) / I. H hashes the chain with SHA-256 and looks every block up; T takes fingerprints,
// and the pass that makes them is in its time, as it is in ours.
#include <malloc.h>

#include <algorithm>
#include <array>

#include "bench/race.h"
#include "bench/rivals.h"
#include "src/hash/fingerprint.h"
#include "src/index/walk.h"

namespace conductor::bench {
namespace {

constexpr std::uint64_t kFillerPrompt = std::uint64_t{1} << 20;
constexpr std::size_t kHotPrompts = 4;
constexpr std::size_t kFewHolders =
    8;  // with more, a baseline's memory is measured on fewer blocks

struct QueryShape {
  std::size_t tokens, instances;
  double bar_ns;
};

std::size_t GradedDepth(std::size_t blocks, std::size_t instance, std::size_t instances) {
  return std::max<std::size_t>(1, blocks * (instances - instance) / instances);
}

void FillRest(const Settings& settings, const PromptSource& source, Rivals& rivals) {
  for (std::uint64_t p = 0; rivals.index().blocks() < settings.blocks; ++p) {
    const std::size_t count =
        std::min(kPromptBlocks, settings.blocks - std::size_t{rivals.index().blocks()});
    const Prompt prompt = MakePrompt(source, kFillerPrompt + p, count);
    rivals.Store(p % rivals.instances(), prompt, 0, count);
  }
}

Status Check(const std::string& what, std::vector<Depth> depths, std::uint64_t expected) {
  SortDepths(depths);
  if (SumOf(depths) == expected) return {};
  return Wrong(what + ": a wrong answer");
}

Status RunQueries(const Settings& settings, const QueryShape& shape, Report& report) {
  const PromptSource source(settings.seed);
  const std::size_t blocks = shape.tokens / kBlockSize;
  Rivals rivals(shape.instances);
  std::vector<Prompt> hot;
  std::vector<Depth> right;
  for (std::size_t i = 0; i < shape.instances; ++i) {
    right.push_back({static_cast<Owner>(i), GradedDepth(blocks, i, shape.instances)});
  }
  SortDepths(right);
  const std::uint64_t expected = SumOf(right);
  for (std::size_t p = 0; p < kHotPrompts; ++p) {
    hot.push_back(MakePrompt(source, p, blocks));
    for (std::size_t i = 0; i < shape.instances; ++i) {
      rivals.Store(i, hot[p], 0, GradedDepth(blocks, i, shape.instances));
    }
  }
  FillRest(settings, source, rivals);

  const std::string what = "hit, " + std::to_string(shape.tokens) + " tokens, " +
                           std::to_string(shape.instances) + " instances";
  Row row{.work = what, .unit = "query", .bar = shape.bar_ns, .checksum = expected};
  std::vector<Racer> racers;
  racers.push_back({row, [&](std::size_t p) -> Result<double> {
                      const PromptQuery query = MakeQuery(hot[p].tokens);
                      const Stopwatch watch;
                      const Result<QueryAnswer> answer = MatchPrompt(rivals.index(), query);
                      const double ns = watch.ElapsedNs();
                      if (!answer) return tl::unexpected(answer.error());
                      CONDUCTOR_ASSIGN_OR_RETURN(auto depths, DepthsOf(*answer));
                      CONDUCTOR_RETURN_IF_ERROR(Check("ours", std::move(depths), expected));
                      return ns;
                    }});
  row.bar = 0;
  row.work = "H: " + what;
  racers.push_back({row, [&](std::size_t p) -> Result<double> {
                      const Stopwatch watch;
                      std::vector<Depth> depths = rivals.hash_map().Match(hot[p].tokens);
                      const double ns = watch.ElapsedNs();
                      CONDUCTOR_RETURN_IF_ERROR(Check("H", std::move(depths), expected));
                      return ns;
                    }});
  row.work = "T: " + what;
  racers.push_back({row, [&](std::size_t p) -> Result<double> {
                      std::vector<std::uint64_t> fingerprints(blocks);
                      const Stopwatch watch;
                      FingerprintTokens(hot[p].tokens, kBlockSize, fingerprints);
                      std::vector<Depth> depths = rivals.radix_tree().Match(fingerprints);
                      const double ns = watch.ElapsedNs();
                      CONDUCTOR_RETURN_IF_ERROR(Check("T", std::move(depths), expected));
                      return ns;
                    }});
  return RaceAndReport(settings, kHotPrompts, std::move(racers), report);
}

// A full cache of one instance: a prompt comes in, the oldest goes, last block first.
class ApplyRace {
 public:
  explicit ApplyRace(const Settings& settings)
      : source_(settings.seed),
        prompts_(std::max<std::size_t>(2, settings.blocks / kPromptBlocks)),
        next_(prompts_) {
    for (std::size_t p = 0; p < prompts_; ++p) {
      rivals_.Store(0, MakePrompt(source_, p, kPromptBlocks), 0, kPromptBlocks);
    }
    const char* const prefixes[] = {"", "H: ", "T: "};
    for (const char* prefix : prefixes) {
      const std::string name = prefix;
      stored_.push_back({{.work = name + "stored, 64-block events", .unit = "block"}, {}});
      removed_.push_back({{.work = name + "removed, LRU order", .unit = "block"}, {}});
    }
  }

  void RunOnce() {
    const std::size_t rounds = std::max<std::size_t>(1, prompts_ / 4);
    std::array<double, 3> store_ns{}, remove_ns{};
    for (std::size_t round = 0; round < rounds; ++round) {
      const Prompt in = MakePrompt(source_, next_++, kPromptBlocks);
      const Prompt out = MakePrompt(source_, oldest_++, kPromptBlocks);
      const std::vector<std::uint64_t> gone(out.names.rbegin(), out.names.rend());
      // In and out by each in turn.
      store_ns[0] += ApplyTimed(in, /*remove=*/false);
      remove_ns[0] += ApplyTimed(out, /*remove=*/true);
      store_ns[1] += Timed([&] { rivals_.hash_map().Store(0, in.names); });
      remove_ns[1] += Timed([&] { rivals_.hash_map().Remove(0, gone); });
      store_ns[2] +=
          Timed([&] { rivals_.radix_tree().Store(0, std::nullopt, in.names, in.fingerprints); });
      remove_ns[2] += Timed([&] { rivals_.radix_tree().Remove(0, gone); });
    }
    for (std::size_t k = 0; k < stored_.size(); ++k) {
      stored_[k].row.repeats.push_back(Per(store_ns[k], rounds * kPromptBlocks));
      removed_[k].row.repeats.push_back(Per(remove_ns[k], rounds * kPromptBlocks));
    }
  }

  // All three have what is left, and no more.
  Status Check() {
    const std::size_t left = prompts_ * kPromptBlocks;
    if (rivals_.index().blocks() != left || rivals_.hash_map().blocks() != left) {
      return Wrong("blocks left: " + std::to_string(rivals_.index().blocks()) + " ours, " +
                   std::to_string(rivals_.hash_map().blocks()) + " H, expected " +
                   std::to_string(left));
    }
    for (std::uint64_t p : {oldest_ - 1, oldest_, next_ - 1}) {
      const Prompt prompt = MakePrompt(source_, p, kPromptBlocks);
      const std::vector<Depth> depths = rivals_.radix_tree().Match(prompt.fingerprints);
      const std::size_t matched = depths.empty() ? 0 : depths[0].blocks;
      if (matched != (p < oldest_ ? 0 : kPromptBlocks)) return Wrong("T: blocks left");
      CONDUCTOR_ASSIGN_OR_RETURN(const auto walk, WalkReady(rivals_.index(), prompt));
      CONDUCTOR_ASSIGN_OR_RETURN(const auto ours, DepthsOf(walk.answer));
      if (SumOf(ours) != SumOf(depths)) return Wrong("ours: blocks left");
    }
    return {};
  }

  void AddRows(Report& report) {
    Checksum sum;
    AddDigest(sum, rivals_.ours().state().Digest());
    for (std::vector<Racer>* racers : {&stored_, &removed_}) {
      CompareWithFirst(*racers);
      for (Racer& racer : *racers) {
        racer.row.checksum = sum.value();
        report.Add(std::move(racer.row));
      }
    }
  }

 private:
  template <typename F>
  static double Timed(F&& f) {
    const Stopwatch watch;
    f();
    return watch.ElapsedNs();
  }

  // Ours takes records, which are made outside the clock.
  double ApplyTimed(const Prompt& prompt, bool remove) {
    std::vector<Record> records;
    for (std::size_t e = 0; e < kPromptBlocks / kEventBlocks; ++e) {
      const std::size_t at = remove ? kPromptBlocks - (e + 1) * kEventBlocks : e * kEventBlocks;
      const std::size_t end = at + kEventBlocks;
      records.push_back(rivals_.ours().Prepare(
          0, remove ? Event(RemovedOf(prompt, at, end)) : Event(StoredOf(prompt, at, end))));
    }
    return Timed([&] {
      for (const Record& record : records) rivals_.ours().Apply(record);
    });
  }

  PromptSource source_;
  std::size_t prompts_;
  Rivals rivals_{1};
  std::vector<Racer> stored_, removed_;  // ours, H, T
  std::uint64_t next_, oldest_ = 0;
};

Status RunApply(const Settings& settings, Report& report) {
  ApplyRace race(settings);
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) race.RunOnce();
  CONDUCTOR_RETURN_IF_ERROR(race.Check());
  race.AddRows(report);
  return {};
}

std::size_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Ours by the index's own gauge (`memory` compares it with the resident set), the baselines by the
// allocator. At one size, and so without a bar: what is required is an average over `growth`'s
// cycle.
Status RunMemory(const Settings& settings, std::size_t holders, Report& report) {
  const PromptSource source(settings.seed);
  const std::size_t prompts =
      settings.memory_blocks / kEventBlocks / (holders > kFewHolders ? 8 : 1);
  const auto blocks = static_cast<double>(prompts * kEventBlocks);
  std::vector<Racer> racers;
  Row row{.work = std::to_string(holders) + (holders == 1 ? " holder" : " holders") +
                  ", runs of 64: bytes",
          .unit = "block",
          .measure = Measure::kBytes};
  {
    StateRig rig(holders);
    const std::size_t before = rig.index().bytes();
    for (std::size_t p = 0; p < prompts; ++p) {
      const Prompt prompt = MakePrompt(source, p, kEventBlocks);
      for (std::size_t h = 0; h < holders; ++h) rig.Apply(h, StoredOf(prompt, 0, kEventBlocks));
    }
    if (rig.index().blocks() != prompts * kEventBlocks) return Wrong("memory: blocks missing");
    Row ours = row;
    ours.repeats = {static_cast<double>(rig.index().bytes() - before) / blocks};
    racers.push_back({std::move(ours), {}});
  }
  const auto grow = [&](const std::string& prefix, const auto& store) {
    const std::size_t before = AllocatedBytes();
    for (std::size_t p = 0; p < prompts; ++p) {
      const Prompt prompt = MakePrompt(source, p, kEventBlocks);
      for (std::size_t h = 0; h < holders; ++h) store(static_cast<Owner>(h), prompt);
    }
    Row grown = row;
    grown.work = prefix + row.work;
    grown.repeats = {static_cast<double>(AllocatedBytes() - before) / blocks};
    racers.push_back({std::move(grown), {}});
  };
  {
    HashMapBaseline hash_map(BenchProfile());
    grow("H: ", [&](Owner owner, const Prompt& p) { hash_map.Store(owner, p.names); });
    if (hash_map.blocks() != prompts * kEventBlocks) return Wrong("memory: H: blocks missing");
  }
  {
    RadixTreeBaseline tree(holders);
    grow("T: ", [&](Owner owner, const Prompt& p) {
      tree.Store(owner, std::nullopt, p.names, p.fingerprints);
    });
    const Prompt last = MakePrompt(source, prompts - 1, kEventBlocks);
    if (tree.Match(last.fingerprints).size() != holders) return Wrong("memory: T: blocks missing");
  }
  CompareWithFirst(racers);
  for (Racer& racer : racers) {
    racer.row.checksum = MixBits(prompts * kEventBlocks + holders);
    report.Add(std::move(racer.row));
  }
  return {};
}

}  // namespace

Status RunCompare(const Settings& settings, Report& report) {
  for (std::size_t holders : settings.holders) {
    CONDUCTOR_RETURN_IF_ERROR(RunMemory(settings, holders, report));
  }
  CONDUCTOR_RETURN_IF_ERROR(RunApply(settings, report));
  for (const QueryShape& shape : {QueryShape{8'192, 8, 12e3}, QueryShape{8'192, 64, 14e3},
                                  QueryShape{8'192, 256, 0}, QueryShape{131'072, 256, 150e3}}) {
    if (shape.instances > settings.instances.back()) continue;
    CONDUCTOR_RETURN_IF_ERROR(RunQueries(settings, shape, report));
  }
  return {};
}

}  // namespace conductor::bench
