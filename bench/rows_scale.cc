// Scale: what changes with the number of reading threads, and with the size of the index. Queries
// of 8k tokens, 8 instances that have the whole prompt, which stays in the processor's caches; and
// of 4k tokens, one instance, any prompt of the whole index, which does not.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "bench/prompts.h"
#include "bench/rows.h"
#include "bench/state_rig.h"
#include "src/index/walk.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kInstances = 8;
constexpr std::size_t kBlocks = 512;
constexpr std::size_t kPrompts = 2;  // that fit in an index of 1k blocks
constexpr std::uint64_t kFillerPrompt = std::uint64_t{1} << 32;
constexpr std::size_t kChurnedPrompts = 256;
constexpr double kMemoryShareMax = 0.8;  // of what is available

struct Hot {
  std::vector<std::vector<std::int32_t>> tokens;
  std::uint64_t expected = 0;
};

Hot StoreHot(StateRig& rig, const PromptSource& source) {
  Hot hot;
  QueryAnswer right;
  const std::uint64_t tokens = kBlocks * kBlockSize;
  for (std::size_t i = 0; i < kInstances; ++i) {
    InstanceHits& hits = right.instances.emplace_back();
    hits.instance_id = InstanceName(i);
    hits.best = {tokens, tokens, tokens, tokens};
  }
  hot.expected = SumOf(right);
  for (std::uint64_t p = 0; p < kPrompts; ++p) {
    for (std::size_t i = 0; i < kInstances; ++i) rig.StorePrompt(source, i, p, kBlocks);
    hot.tokens.push_back(source.Tokens(p, kBlocks));
  }
  return hot;
}

// Right answers of one thread until `end` says so, at least one. Nothing when one was wrong.
std::optional<std::size_t> AskUntil(const StateRig& rig, const Hot& hot, std::size_t first,
                                    const std::atomic<bool>& end) {
  std::size_t count = 0;
  do {
    const auto answer =
        MatchPrompt(rig.index(), MakeQuery(hot.tokens[(first + count) % hot.tokens.size()]));
    if (!answer || SumOf(*answer) != hot.expected) return std::nullopt;
    ++count;
  } while (!end.load(std::memory_order_relaxed));
  return count;
}

Status RunThreads(const Settings& settings, StateRig& rig, const Hot& hot, Report& report) {
  for (std::size_t threads = 1; threads <= settings.threads; ++threads) {
    Row row{.work = std::to_string(threads) + (threads == 1 ? " reader" : " readers"),
            .unit = "query",
            .checksum = hot.expected};
    for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
      std::atomic<bool> end{false}, wrong{false};
      std::atomic<std::size_t> total{0};
      std::vector<std::jthread> readers;
      const Stopwatch watch;
      for (std::size_t t = 0; t < threads; ++t) {
        readers.emplace_back([&, t] {
          const auto count = AskUntil(rig, hot, t, end);
          if (!count) wrong = true;
          total += count.value_or(0);
        });
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(settings.query_seconds));
      end = true;
      readers.clear();
      const double ns = watch.ElapsedNs();
      if (wrong) return Wrong(row.work + ": a wrong answer");
      row.repeats.push_back(ns / static_cast<double>(total));
    }
    report.Add(std::move(row));
  }
  return {};
}

std::uint64_t AvailableBytes() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) return std::stoull(line.substr(13)) << 10;
  }
  return 0;
}

// Whole prompts after the hot ones, numbered from kFillerPrompt: those in [oldest, next) are there.
struct Fillers {
  std::uint64_t oldest = 0, next = 0;
  std::uint64_t size() const { return next - oldest; }
};

void FillTo(StateRig& rig, const PromptSource& source, std::size_t blocks, Fillers& fillers) {
  for (; rig.index().blocks() + kPromptBlocks <= blocks; ++fillers.next) {
    rig.StorePrompt(source, fillers.next % kInstances, kFillerPrompt + fillers.next, kPromptBlocks);
  }
}

// Any prompt of the index, another one each time.
Status AskAnywhere(const Settings& settings, const StateRig& rig, const Fillers& fillers,
                   Row& row) {
  const PromptSource source(settings.seed);
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    std::vector<double> samples;
    const Stopwatch total;
    while (samples.size() < 50 || total.ElapsedNs() < settings.query_seconds * 1e9) {
      const std::uint64_t p =
          fillers.oldest + MixBits(samples.size() + (repeat << 32)) % fillers.size();
      const auto tokens = source.Tokens(kFillerPrompt + p, kPromptBlocks);
      PromptQuery query = MakeQuery(tokens);
      const Stopwatch watch;
      const auto answer = MatchPrompt(rig.index(), query);
      samples.push_back(watch.ElapsedNs());
      if (!answer || answer->instances.empty() ||
          answer->instances[0].instance_id != InstanceName(p % kInstances) ||
          answer->instances[0].best.disk != kPromptBlocks * kBlockSize) {
        return Wrong(row.work + ": a wrong answer");
      }
    }
    row.repeats.push_back(Quantile(samples, 0.5));
    row.p99.push_back(Quantile(samples, 0.99));
  }
  row.checksum = MixBits(fillers.size());
  return {};
}

// A prompt comes in and the oldest goes, last block first. (In the smallest index, where the hot
// prompts leave no room, the oldest is the one that just came.)
Status RunSize(const Settings& settings, const std::string& what, StateRig& rig, const Hot& hot,
               Fillers& fillers, Report& report) {
  const PromptSource source(settings.seed);
  const std::uint64_t blocks = rig.index().blocks();
  Row query{.work = what + ": hit, 8192 tokens", .unit = "query", .checksum = hot.expected};
  Row stored{.work = what + ": stored", .unit = "block"};
  Row removed{.work = what + ": removed, LRU order", .unit = "block"};
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    std::vector<double> samples;
    const Stopwatch total;
    while (samples.size() < 50 || total.ElapsedNs() < settings.query_seconds * 1e9) {
      const PromptQuery ask = MakeQuery(hot.tokens[samples.size() % hot.tokens.size()]);
      const Stopwatch watch;
      const auto answer = MatchPrompt(rig.index(), ask);
      samples.push_back(watch.ElapsedNs());
      if (!answer || SumOf(*answer) != hot.expected) return Wrong(what + ": a wrong answer");
    }
    query.repeats.push_back(Quantile(samples, 0.5));
    query.p99.push_back(Quantile(samples, 0.99));
    double store_ns = 0, remove_ns = 0;
    for (std::size_t p = 0; p < kChurnedPrompts; ++p) {
      const std::uint64_t young = fillers.next++, old = fillers.oldest++;
      std::vector<Record> in, out;
      for (std::size_t at = 0; at < kPromptBlocks; at += kEventBlocks) {
        in.push_back(rig.Prepare(young % kInstances,
                                 source.StoredEvent(kFillerPrompt + young, at, kEventBlocks)));
      }
      for (std::size_t end = kPromptBlocks; end > 0; end -= kEventBlocks) {
        out.push_back(rig.Prepare(
            old % kInstances,
            source.RemovedEvent(kFillerPrompt + old, end - kEventBlocks, kEventBlocks)));
      }
      const Stopwatch store;
      for (const Record& record : in) rig.Apply(record);
      store_ns += store.ElapsedNs();
      const Stopwatch remove;
      for (const Record& record : out) rig.Apply(record);
      remove_ns += remove.ElapsedNs();
    }
    stored.repeats.push_back(Per(store_ns, kChurnedPrompts * kPromptBlocks));
    removed.repeats.push_back(Per(remove_ns, kChurnedPrompts * kPromptBlocks));
  }
  if (rig.index().blocks() != blocks) return Wrong(what + ": blocks missing");
  stored.checksum = removed.checksum = MixBits(blocks);
  for (Row* row : {&query, &stored, &removed}) report.Add(std::move(*row));
  return {};
}

}  // namespace

Status RunScale(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  {
    StateRig rig(kInstances);
    const Hot hot = StoreHot(rig, source);
    Fillers fillers;
    FillTo(rig, source, settings.blocks, fillers);
    CONDUCTOR_RETURN_IF_ERROR(RunThreads(settings, rig, hot, report));
  }
  StateRig rig(kInstances);
  const Hot hot = StoreHot(rig, source);
  Fillers fillers;
  for (std::size_t blocks : settings.scale_blocks) {
    // A table that doubles needs old and new at once.
    const double needed = 2.0 * static_cast<double>(rig.index().bytes()) /
                          static_cast<double>(rig.index().blocks()) * static_cast<double>(blocks);
    if (needed > kMemoryShareMax * static_cast<double>(AvailableBytes())) {
      report.Note(std::to_string(blocks) + " blocks do not fit in this machine's memory");
      continue;
    }
    FillTo(rig, source, blocks, fillers);
    const std::string what = std::to_string(blocks / 1'000) + "k blocks";
    CONDUCTOR_RETURN_IF_ERROR(RunSize(settings, what, rig, hot, fillers, report));
    if (fillers.size() == 0) continue;
    Row anywhere{.work = what + ": hit, 4096 tokens, anywhere", .unit = "query"};
    CONDUCTOR_RETURN_IF_ERROR(AskAnywhere(settings, rig, fillers, anywhere));
    report.Add(std::move(anywhere));
  }
  return {};
}

}  // namespace conductor::bench
