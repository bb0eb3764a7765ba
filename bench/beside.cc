#include "bench/beside.h"

#include <atomic>
#include <thread>
#include <utility>

namespace conductor::bench {
namespace {

constexpr std::uint64_t kPassingPrompt = std::uint64_t{1} << 32;

}  // namespace

Status ComeAndGo(const PromptSource& source, ServiceRig& rig, std::uint64_t& number,
                 const std::function<bool(std::size_t samples)>& more, Beside& beside) {
  const std::vector<std::int32_t> tokens = source.Tokens(0, kPromptBlocks);
  const std::uint64_t name = source.Name(kPassingPrompt, kEventBlocks - 1).projected;
  while (more(beside.visible.size())) {
    for (const bool stored : {true, false}) {
      Frame frame = MakeFrame(1, number++,
                              stored ? Event(source.StoredEvent(kPassingPrompt, 0, kEventBlocks))
                                     : Event(source.RemovedEvent(kPassingPrompt, 0, kEventBlocks)));
      const Stopwatch watch;
      CONDUCTOR_RETURN_IF_ERROR(rig.Offer(1, std::move(frame)));
      CONDUCTOR_RETURN_IF_ERROR(
          WaitUntil("an event is visible", Poll::kSpin, [&] { return rig.Has(name) == stored; }));
      beside.visible.push_back(watch.ElapsedNs());
    }
    const PromptQuery query = MakeQuery(tokens);
    const Stopwatch watch;
    const Result<QueryAnswer> answer = rig.service().Query(query);
    beside.query.push_back(watch.ElapsedNs());
    if (!answer) return tl::unexpected(answer.error());
    if (answer->instances.empty() || answer->instances[0].best.disk != kPromptBlocks * kBlockSize) {
      return Wrong("a wrong answer beside something large");
    }
  }
  return {};
}

Status ComeAndGoBeside(const PromptSource& source, ServiceRig& rig, std::uint64_t& number,
                       const std::function<Status()>& work, Beside& beside) {
  std::atomic<bool> done{false};
  Status worked, came;
  {
    const std::jthread working([&] {
      worked = work();
      done = true;
    });
    came = ComeAndGo(
        source, rig, number, [&](std::size_t) { return !done; }, beside);
  }
  CONDUCTOR_RETURN_IF_ERROR(worked);
  CONDUCTOR_RETURN_IF_ERROR(came);
  if (beside.visible.empty()) return Wrong("nothing came and went beside it");
  return {};
}

BesideRows::BesideRows(const std::string& of)
    : visible_{.work = of + ": offer to visible", .unit = "event"},
      longest_{.work = of + ": the longest of these", .unit = "pause", .by_median = true},
      query_{.work = of + ": 4096 tokens", .unit = "query"} {}

void BesideRows::Add(const Beside& beside) {
  visible_.repeats.push_back(Quantile(beside.visible, 0.5));
  visible_.p99.push_back(Quantile(beside.visible, 0.99));
  longest_.repeats.push_back(Quantile(beside.visible, 1));
  query_.repeats.push_back(Quantile(beside.query, 0.5));
  query_.p99.push_back(Quantile(beside.query, 0.99));
}

}  // namespace conductor::bench
