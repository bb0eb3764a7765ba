// Contention: 8k-token queries while blocks come and go at half the highest rate, beside the same
// queries on an idle index. First the index alone, frames applied on one thread, queries on another
// (a core each); then the whole pipeline, ZMQ messages through the log, on all cores.
#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "bench/rows.h"
#include "bench/state_rig.h"
#include "bench/stream_rig.h"
#include "src/index/walk.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kInstances = 8;
constexpr std::size_t kBlocks = 512;
constexpr std::size_t kHotPrompts = 8;
constexpr std::uint64_t kHotPrompt = std::uint64_t{1} << 32;
constexpr std::size_t kSamplesMin = 200;
constexpr double kShare = 0.5;        // of the highest rate
constexpr double kAppliedMin = 0.99;  // of what was due while the queries ran
// The pipeline is watched so much longer than its rate is measured: a hundredth of it must be more
// than what is on its way when it ends.
constexpr std::size_t kLonger = 4;

using Ask = std::function<Result<QueryAnswer>(std::size_t prompt)>;

struct Latency {
  double p50 = 0, p99 = 0;
  double window_ns = 0;  // in which it was asked
};

// Asks until `seconds` are over and enough samples are there; every answer is the right one.
Result<Latency> AskFor(const Ask& ask, std::uint64_t expected, double seconds) {
  std::vector<double> samples;
  const Stopwatch total;
  while (samples.size() < kSamplesMin || total.ElapsedNs() < seconds * 1e9) {
    const Stopwatch watch;
    const Result<QueryAnswer> answer = ask(samples.size() % kHotPrompts);
    samples.push_back(watch.ElapsedNs());
    if (!answer) return tl::unexpected(answer.error());
    if (SumOf(*answer) != expected) return Wrong("contention: a wrong answer");
  }
  const double window_ns = total.ElapsedNs();
  return Latency{Quantile(samples, 0.5), Quantile(samples, 0.99), window_ns};
}

std::uint64_t RightAnswer(std::size_t instances) {
  QueryAnswer right;
  const std::uint64_t tokens = kBlocks * kBlockSize;
  for (std::size_t i = 0; i < instances; ++i) {
    InstanceHits& hits = right.instances.emplace_back();
    hits.instance_id = InstanceName(i);
    hits.best = {tokens, tokens, tokens, tokens};
  }
  return SumOf(right);
}

// A repeat in which less was applied than was due says nothing about queries beside that rate: its
// ratio counts as infinite.
struct Rows {
  Row idle, busy, ratio, applied;
  std::size_t behind = 0;
  explicit Rows(const std::string& what, double bar) {
    idle = {.work = what + ": idle", .unit = "query"};
    busy = {.work = what + ": ingesting at half the maximum", .unit = "query"};
    ratio = {.work = what + ": p99 busy : idle",
             .unit = "query",
             .measure = Measure::kTimes,
             .bar = bar,
             .by_median = true};
    applied = {.work = what + ": due : applied meanwhile",
               .unit = "record",
               .measure = Measure::kTimes,
               .bar = 1 / kAppliedMin,
               .by_median = true};
  }
  // `share`: of what was due while the loud queries ran, how much was applied.
  void Add(const Latency& quiet, const Latency& loud, double share) {
    idle.repeats.push_back(quiet.p50);
    idle.p99.push_back(quiet.p99);
    busy.repeats.push_back(loud.p50);
    busy.p99.push_back(loud.p99);
    const bool kept_up = share >= kAppliedMin;
    if (!kept_up) ++behind;
    ratio.repeats.push_back(kept_up ? loud.p99 / quiet.p99
                                    : std::numeric_limits<double>::infinity());
    applied.repeats.push_back(1 / share);
  }
  void Finish(std::uint64_t checksum, Report& report) {
    if (behind > 0) {
      report.Note(busy.work + ": less than 99 % of it in " + std::to_string(behind) + " of " +
                  std::to_string(busy.repeats.size()) + " repeats, which count as infinite");
    }
    for (Row* row : {&idle, &busy, &ratio, &applied}) {
      row->checksum = checksum;
      report.Add(std::move(*row));
    }
  }
};

// Prompts that come in, each pushing the oldest out.
class Churn {
 public:
  Churn(StateRig& rig, const PromptSource& source, std::size_t prompts)
      : rig_(rig), source_(source), next_(prompts) {}

  std::vector<Record> Prepare(std::size_t prompts) {
    std::vector<Record> records;
    for (std::size_t p = 0; p < prompts; ++p, ++next_, ++oldest_) {
      for (std::size_t at = 0; at < kPromptBlocks; at += kEventBlocks) {
        records.push_back(
            rig_.Prepare(next_ % kInstances, source_.StoredEvent(next_, at, kEventBlocks)));
      }
      for (std::size_t end = kPromptBlocks; end > 0; end -= kEventBlocks) {
        records.push_back(rig_.Prepare(
            oldest_ % kInstances, source_.RemovedEvent(oldest_, end - kEventBlocks, kEventBlocks)));
      }
    }
    return records;
  }

 private:
  StateRig& rig_;
  const PromptSource& source_;
  std::uint64_t next_, oldest_ = 0;
};

Status RunIndex(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  StateRig rig(kInstances);
  std::vector<std::vector<std::int32_t>> hot;
  for (std::uint64_t p = 0; p < kHotPrompts; ++p) {
    for (std::size_t i = 0; i < kInstances; ++i)
      rig.StorePrompt(source, i, kHotPrompt + p, kBlocks);
    hot.push_back(source.Tokens(kHotPrompt + p, kBlocks));
  }
  const std::size_t prompts = std::max<std::size_t>(32, settings.blocks / kPromptBlocks);
  for (std::uint64_t p = 0; p < prompts; ++p) {
    rig.StorePrompt(source, p % kInstances, p, kPromptBlocks);
  }
  const std::uint64_t blocks = rig.index().blocks();
  Churn churn(rig, source, prompts);
  const std::uint64_t expected = RightAnswer(kInstances);
  const Ask ask = [&](std::size_t p) { return MatchPrompt(rig.index(), MakeQuery(hot[p])); };

  Rows rows("index, no log", 1.5);
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    const std::vector<Record> burst = churn.Prepare(prompts / 8);
    const Stopwatch fastest;
    for (const Record& record : burst) rig.Apply(record);
    const double record_ns = Per(fastest.ElapsedNs(), burst.size()) / kShare;
    CONDUCTOR_ASSIGN_OR_RETURN(const Latency idle, AskFor(ask, expected, settings.query_seconds));
    const auto needed = static_cast<std::size_t>(settings.query_seconds * 1e9 / record_ns);
    const std::vector<Record> records = churn.Prepare(needed / 8 + 1);
    std::atomic<bool> end{false};
    std::size_t applied = 0;  // by the writer; ours when it has ended
    Result<Latency> busy = Latency{};
    {
      // Paced while the queries run; the rest is applied afterwards, so that every run ends alike.
      const std::jthread writer([&] {
        const Stopwatch watch;
        for (; applied < records.size() && !end; ++applied) {
          WaitUntilDue(watch, static_cast<double>(applied) * record_ns);
          rig.Apply(records[applied]);
        }
      });
      busy = AskFor(ask, expected, settings.query_seconds);
      end = true;
    }
    CONDUCTOR_RETURN_IF_ERROR(busy);
    const double share = static_cast<double>(applied) * record_ns / busy->window_ns;
    for (; applied < records.size(); ++applied) rig.Apply(records[applied]);
    rows.Add(idle, *busy, share);
    if (rig.index().blocks() != blocks) return Wrong("contention: blocks missing");
  }
  rows.Finish(MixBits(expected ^ blocks), report);
  return {};
}

// The number of the last message that was applied, of the only stream.
Result<std::uint64_t> LastApplied(const ServiceRig& rig) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto views, rig.service().ListServices());
  if (views.size() != 1 || !views[0].last_seq) return Wrong("contention: nothing was applied");
  return *views[0].last_seq;
}

// The rate at which messages become visible when all of them are there at once; ns of a message.
Result<double> FastestMessage(const Settings& settings, const PromptSource& source,
                              const Messages& messages) {
  CONDUCTOR_ASSIGN_OR_RETURN(const StreamRig rig, StartStreamRig(settings.directory));
  std::vector<std::string> payloads = messages.payloads;
  const Stopwatch watch;
  for (std::string& payload : payloads) rig.publisher->Publish(std::move(payload));
  for (std::uint64_t name : messages.last_names) {
    CONDUCTOR_RETURN_IF_ERROR(rig.service->WaitForBlock(name, Poll::kPause));
  }
  const double ns = Per(watch.ElapsedNs(), messages.payloads.size());
  CONDUCTOR_RETURN_IF_ERROR(CheckStream(source, 0, messages, *rig.service));
  return ns;
}

Status RunPipeline(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  const std::size_t blocks = kLonger * settings.stream_blocks;
  const Messages messages = MakeMessages(source, 0, {blocks, 1, 64, blocks / kPromptBlocks});
  const Messages hot =
      MakeMessages(source, kHotPrompt, {kHotPrompts * kBlocks, 1, 64, kHotPrompts});
  std::vector<std::vector<std::int32_t>> tokens;
  for (std::uint64_t p = 0; p < kHotPrompts; ++p) {
    tokens.push_back(source.Tokens(kHotPrompt + p, kBlocks));
  }
  const std::uint64_t expected = RightAnswer(1);
  Rows rows("whole pipeline, log on", 5);
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const double fastest_ns, FastestMessage(settings, source, messages));
    CONDUCTOR_ASSIGN_OR_RETURN(const StreamRig rig, StartStreamRig(settings.directory));
    for (std::string payload : hot.payloads) rig.publisher->Publish(std::move(payload));
    for (std::uint64_t name : hot.last_names) {
      CONDUCTOR_RETURN_IF_ERROR(rig.service->WaitForBlock(name, Poll::kPause));
    }
    const Ask ask = [&](std::size_t p) {
      return rig.service->service().Query(MakeQuery(tokens[p]));
    };
    const double message_ns = fastest_ns / kShare;
    const double seconds = message_ns * static_cast<double>(messages.payloads.size()) / 1e9;
    CONDUCTOR_ASSIGN_OR_RETURN(const Latency idle, AskFor(ask, expected, seconds));
    CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t before, LastApplied(*rig.service));
    std::uint64_t after = before;
    Result<Latency> busy = Latency{};
    {
      const std::jthread publishing([&] {
        const Stopwatch watch;
        for (std::size_t i = 0; i < messages.payloads.size(); ++i) {
          std::string payload = messages.payloads[i];
          WaitUntilDue(watch, static_cast<double>(i) * message_ns);
          rig.publisher->Publish(std::move(payload));
        }
      });
      busy = AskFor(ask, expected, seconds);
      CONDUCTOR_ASSIGN_OR_RETURN(after, LastApplied(*rig.service));
    }
    CONDUCTOR_RETURN_IF_ERROR(busy);
    const double due =
        std::min(busy->window_ns / message_ns, static_cast<double>(messages.payloads.size()));
    rows.Add(idle, *busy, static_cast<double>(after - before) / due);
    for (std::uint64_t name : messages.last_names) {
      CONDUCTOR_RETURN_IF_ERROR(rig.service->WaitForBlock(name, Poll::kPause));
    }
    CONDUCTOR_ASSIGN_OR_RETURN(const StatusView view, rig.service->service().GetStatus());
    if (view.blocks != messages.blocks() + hot.blocks()) return Wrong("contention: blocks missing");
  }
  rows.Finish(MixBits(expected ^ messages.blocks()), report);
  return {};
}

}  // namespace

Status RunContention(const Settings& settings, Report& report) {
  CONDUCTOR_RETURN_IF_ERROR(RunIndex(settings, report));
  return RunPipeline(settings, report);
}

}  // namespace conductor::bench
