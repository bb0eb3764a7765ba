// Replay: the requests of a trace with open-loop deadlines. Each request asks for its blocks by
// hash, and its engine publishes what that changes in its cache, both at the request's time in the
// trace, compressed to the offered rate; nobody waits for anybody, so whoever is late stays late.
// The clock stops when the last frame is visible and the last answer is there (the drain is timed).
// A rate is sustained when at least 99 % of it was achieved. One thread asks, one hands frames
// over.
//
// Closed loop: everything is due at once. The highest sustained rate is searched below that.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include "bench/replay_plan.h"
#include "bench/rows.h"
#include "bench/service_rig.h"
#include "bench/state_rig.h"
#include "src/index/walk.h"

namespace conductor::bench {
namespace {

constexpr double kSustained = 0.99;
constexpr int kHalvingsMax = 8;
constexpr int kTries = 2;  // of one rate: a machine that did something else is asked again
constexpr int kBisections = 5;

// What is replayed against. Ingest is called by one thread, Ask by another.
class ReplayTarget {
 public:
  virtual ~ReplayTarget() = default;
  virtual Status Ingest(Frame frame) = 0;
  virtual Result<QueryAnswer> Ask(std::span<const std::uint64_t> names) = 0;
  // Until all that was ingested is visible.
  virtual Status Drain() = 0;
  virtual std::uint64_t blocks() = 0;
};

// The index alone: Apply on the ingesting thread.
class StateTarget final : public ReplayTarget {
 public:
  explicit StateTarget(std::size_t instances) : rig_(instances) {}

  Status Ingest(Frame frame) override {
    Record record;
    record.facts.emplace_back(std::move(frame));
    rig_.Apply(record);
    return {};
  }
  Result<QueryAnswer> Ask(std::span<const std::uint64_t> names) override {
    HashQuery query;
    query.context = BenchContext();
    query.hashes = names;
    return MatchHashes(rig_.index(), query);
  }
  Status Drain() override { return {}; }
  std::uint64_t blocks() override { return rig_.index().blocks(); }

 private:
  StateRig rig_;
};

// The service with its log, `interval` sync; frames through its queue.
class ServiceTarget final : public ReplayTarget {
 public:
  static Result<std::unique_ptr<ReplayTarget>> Make(const Settings& settings,
                                                    std::size_t instances) {
    std::unique_ptr<ServiceTarget> target(new ServiceTarget);
    CONDUCTOR_ASSIGN_OR_RETURN(target->scratch_, ScratchDirectory::Make(settings.directory));
    CONDUCTOR_ASSIGN_OR_RETURN(
        target->rig_, ServiceRig::Start(target->scratch_->data_dir(), ServiceRig::Streams::kNone));
    for (std::size_t i = 0; i < instances; ++i) {
      CONDUCTOR_RETURN_IF_ERROR(
          target->rig_->Register(i, "tcp://10.0.0.1:" + std::to_string(10'000 + i)));
    }
    return std::unique_ptr<ReplayTarget>(std::move(target));
  }

  Status Ingest(Frame frame) override {
    last_[frame.stream] = frame.number;
    return rig_->Offer(frame.stream, std::move(frame));
  }
  Result<QueryAnswer> Ask(std::span<const std::uint64_t> names) override {
    HashQuery query;
    query.context = BenchContext();
    query.hashes = names;
    return rig_->service().QueryByHash(query);
  }
  Status Drain() override {
    return WaitUntil("the last frames are visible", Poll::kPause, [&] {
      const auto views = rig_->service().ListServices();
      return views && std::all_of(views->begin(), views->end(), [&](const ServiceView& view) {
               const auto last = last_.find(view.stream);
               return last == last_.end() || view.last_seq == last->second;
             });
    });
  }
  std::uint64_t blocks() override {
    const auto view = rig_->service().GetStatus();
    return view ? view->blocks : 0;
  }

 private:
  ServiceTarget() = default;
  std::unique_ptr<ScratchDirectory> scratch_;
  std::unique_ptr<ServiceRig> rig_;
  std::map<StreamId, std::uint64_t> last_;  // number of the last frame handed over
};

using MakeTarget = std::function<Result<std::unique_ptr<ReplayTarget>>()>;

// Every instance has of the last requests what its cache has.
Status CheckFinals(const ReplayPlan& plan, ReplayTarget& target) {
  if (target.blocks() != plan.blocks_left) {
    return Wrong("replay: " + std::to_string(target.blocks()) + " blocks, expected " +
                 std::to_string(plan.blocks_left));
  }
  for (const ReplayPlan::Final& final : plan.finals) {
    CONDUCTOR_ASSIGN_OR_RETURN(const QueryAnswer answer, target.Ask(final.names));
    for (std::size_t i = 0; i < plan.instances; ++i) {
      const auto hits =
          std::find_if(answer.instances.begin(), answer.instances.end(),
                       [&](const InstanceHits& h) { return h.instance_id == InstanceName(i); });
      const std::uint64_t blocks =
          hits == answer.instances.end() ? 0 : hits->best.disk / kBlockSize;
      if (blocks != final.depths[i]) return Wrong("replay: a wrong answer at the end");
    }
  }
  return {};
}

// Nanoseconds of the whole, with the drain. `duration_ns`: of the offered rate; 0: all is due now.
Result<double> ReplayOnce(const ReplayPlan& plan, const MakeTarget& make, double duration_ns) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto target, make());
  std::vector<std::vector<Frame>> frames;
  for (const ReplayStep& step : plan.steps) frames.push_back(step.frames);
  Status ingested, asked;
  const Stopwatch watch;
  {
    const std::jthread asking([&] {
      for (const ReplayStep& step : plan.steps) {
        WaitUntilDue(watch, step.due * duration_ns);
        if (const auto answer = target->Ask(step.asked); !answer) {
          asked = tl::unexpected(answer.error());
          return;
        }
      }
    });
    for (std::size_t s = 0; s < plan.steps.size() && ingested; ++s) {
      WaitUntilDue(watch, plan.steps[s].due * duration_ns);
      for (Frame& frame : frames[s]) {
        if (ingested) ingested = target->Ingest(std::move(frame));
      }
    }
    if (ingested) ingested = target->Drain();
  }
  const double ns = watch.ElapsedNs();
  CONDUCTOR_RETURN_IF_ERROR(ingested);
  CONDUCTOR_RETURN_IF_ERROR(asked);
  CONDUCTOR_RETURN_IF_ERROR(CheckFinals(plan, *target));
  return ns;
}

// The shortest duration that was sustained, from the closed loop's on; infinite when none was, down
// to the slowest rate that is offered.
Result<double> SearchSustained(const ReplayPlan& plan, const MakeTarget& make, double closed_ns) {
  const auto sustains = [&](double duration_ns) -> Result<bool> {
    for (int attempt = 0; attempt < kTries; ++attempt) {
      CONDUCTOR_ASSIGN_OR_RETURN(const double ns, ReplayOnce(plan, make, duration_ns));
      if (duration_ns / ns >= kSustained) return true;
    }
    return false;
  };
  double failed = closed_ns / 1.25, duration = closed_ns;
  for (int halving = 0;; ++halving) {
    CONDUCTOR_ASSIGN_OR_RETURN(const bool good, sustains(duration));
    if (good) break;
    if (halving == kHalvingsMax) return std::numeric_limits<double>::infinity();
    failed = duration;
    duration *= 2;
  }
  for (int step = 0; step < kBisections; ++step) {
    const double middle = (failed + duration) / 2;
    CONDUCTOR_ASSIGN_OR_RETURN(const bool good, sustains(middle));
    (good ? duration : failed) = middle;
  }
  return duration;
}

Status RunTarget(const Settings& settings, const ReplayPlan& plan, const std::string& what,
                 const MakeTarget& make, Report& report) {
  Row closed{.work = what + ": closed loop", .unit = "block op"};
  Row open{.work = what + ": highest sustained", .unit = "block op"};
  std::size_t unsustained = 0;
  Checksum sum;
  sum.Add(plan.operations());
  sum.Add(plan.blocks_left);
  for (const auto& final : plan.finals) {
    for (std::size_t depth : final.depths) sum.Add(depth);
  }
  closed.checksum = open.checksum = sum.value();
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const double closed_ns, ReplayOnce(plan, make, 0));
    CONDUCTOR_ASSIGN_OR_RETURN(const double open_ns, SearchSustained(plan, make, closed_ns));
    closed.repeats.push_back(Per(closed_ns, plan.operations()));
    open.repeats.push_back(Per(open_ns, plan.operations()));
    if (std::isinf(open_ns)) ++unsustained;
  }
  report.Add(std::move(closed));
  report.Add(std::move(open));
  if (unsustained > 0) {
    report.Note(what + ": no offered rate was sustained in " + std::to_string(unsustained) +
                " of the repeats, which count as infinite");
  }
  return {};
}

}  // namespace

Status RunReplay(const Settings& settings, Report& report) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto requests, ReadTrace(settings.trace));
  const ReplayPlan plan = MakeReplayPlan(settings, requests);
  CONDUCTOR_RETURN_IF_ERROR(RunTarget(
      settings, plan, "index, no log",
      [&]() -> Result<std::unique_ptr<ReplayTarget>> {
        return std::make_unique<StateTarget>(plan.instances);
      },
      report));
  CONDUCTOR_RETURN_IF_ERROR(RunTarget(
      settings, plan, "service, log on",
      [&] { return ServiceTarget::Make(settings, plan.instances); }, report));
  report.Note(std::to_string(requests.size()) + " requests, " + std::to_string(plan.asked) +
              " requested, " + std::to_string(plan.stored) + " stored, " +
              std::to_string(plan.removed) +
              " removed: " + settings.trace.substr(settings.trace.rfind('/') + 1));
  return {};
}

}  // namespace conductor::bench
