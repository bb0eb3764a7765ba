#include "bench/replay_plan.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "tools/block_cache.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kFinals = 32;
constexpr std::size_t kCacheBlocksMin = 64;

// How many blocks each instance would store without evictions.
std::vector<std::size_t> DistinctBlocks(const std::vector<Prompt>& prompts, std::size_t instances) {
  std::vector<std::unordered_set<std::uint64_t>> seen(instances);
  for (std::size_t r = 0; r < prompts.size(); ++r) {
    seen[r % instances].insert(prompts[r].names.begin(), prompts[r].names.end());
  }
  std::vector<std::size_t> counts;
  for (const auto& names : seen) counts.push_back(names.size());
  return counts;
}

Removed RemovedBlocks(const BlockHasher& hasher, const std::vector<Digest>& digests) {
  Removed event;
  event.names.reserve(digests.size());
  for (const Digest& digest : digests) event.names.push_back({hasher.Project(digest), {}});
  return event;
}

}  // namespace

ReplayPlan MakeReplayPlan(const Settings& settings,
                          const std::vector<enginesim::TraceRequest>& requests) {
  const PromptSource source(settings.seed);
  const BlockHasher hasher(BenchProfile());
  ReplayPlan plan;
  plan.instances = settings.replay_instances;
  std::vector<Prompt> prompts;
  for (const auto& request : requests) {
    prompts.push_back(TracePrompt(source, request, settings.replay_blocks_per_id));
  }
  std::vector<std::unique_ptr<enginesim::BlockCache>> caches;
  for (std::size_t blocks : DistinctBlocks(prompts, plan.instances)) {
    caches.push_back(
        std::make_unique<enginesim::BlockCache>(std::max(kCacheBlocksMin, blocks / 2)));
  }
  const auto last_ms =
      static_cast<double>(std::max<std::uint64_t>(1, requests.back().timestamp_ms));
  std::vector<std::uint64_t> numbers(plan.instances);
  for (std::size_t r = 0; r < prompts.size(); ++r) {
    const std::size_t instance = r % plan.instances;
    const Prompt& prompt = prompts[r];
    ReplayStep& step = plan.steps.emplace_back();
    step.due = static_cast<double>(requests[r].timestamp_ms) / last_ms;
    step.asked = prompt.names;
    plan.asked += step.asked.size();
    const enginesim::CacheChange change = caches[instance]->Admit(prompt.digests);
    Frame frame;
    if (!change.removed.empty()) {
      frame = MakeFrame(instance + 1, 0, RemovedBlocks(hasher, change.removed));
      plan.removed += change.removed.size();
    }
    if (change.stored_blocks > 0) {
      const std::size_t end = change.hit_blocks + change.stored_blocks;
      frame.events.emplace_back(StoredOf(prompt, change.hit_blocks, end));
      plan.stored += change.stored_blocks;
    }
    if (frame.events.empty()) continue;
    frame.stream = instance + 1;
    frame.number = numbers[instance]++;
    frame.fingerprint = MixBits(MixBits(frame.stream) ^ frame.number);
    step.frames.push_back(std::move(frame));
  }

  for (std::size_t r = prompts.size() - std::min(kFinals, prompts.size()); r < prompts.size();
       ++r) {
    ReplayPlan::Final& final = plan.finals.emplace_back();
    final.names = prompts[r].names;
    for (const auto& cache : caches) final.depths.push_back(cache->CountHits(prompts[r].digests));
  }
  std::unordered_set<std::uint64_t> left;
  for (const Prompt& prompt : prompts) {
    for (std::size_t i = 0; i < prompt.blocks(); ++i) {
      if (left.count(prompt.names[i]) != 0) continue;
      // CountHits of one block says whether the cache has it.
      const std::span<const Digest> one(&prompt.digests[i], 1);
      if (std::any_of(caches.begin(), caches.end(),
                      [&](const auto& cache) { return cache->CountHits(one) == 1; })) {
        left.insert(prompt.names[i]);
      }
    }
  }
  plan.blocks_left = left.size();
  return plan;
}

}  // namespace conductor::bench
