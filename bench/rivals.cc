#include "bench/rivals.h"

#include <charconv>

#include "src/hash/fingerprint.h"
#include "src/index/walk.h"

namespace conductor::bench {
namespace {

// The service's own slice.
constexpr std::size_t kSliceEntries = 2'048;

// The number of an instance of ours.
Result<Owner> OwnerOf(std::string_view instance_id, std::uint64_t tokens) {
  Owner owner = 0;
  const std::size_t dash = instance_id.find('-');
  if (dash == instance_id.npos ||
      std::from_chars(instance_id.data() + dash + 1, instance_id.data() + instance_id.size(), owner)
              .ec != std::errc() ||
      tokens % kBlockSize != 0) {
    return Wrong("an answer about " + std::string(instance_id));
  }
  return owner;
}

}  // namespace

void Rivals::Store(std::size_t instance, const Prompt& prompt, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end; at += kEventBlocks) {
    const std::size_t count = std::min(kEventBlocks, end - at);
    const auto owner = static_cast<Owner>(instance);
    const std::span names = std::span(prompt.names).subspan(at, count);
    ours_.Apply(instance, StoredOf(prompt, at, at + count));
    hash_map_.Store(owner, names);
    radix_tree_.Store(owner, prompt.ParentOf(at), names,
                      std::span(prompt.fingerprints).subspan(at, count));
  }
}

void Rivals::Remove(std::size_t instance, const Prompt& prompt, std::size_t begin,
                    std::size_t end) {
  const std::vector<std::uint64_t> names(prompt.names.rend() - static_cast<std::ptrdiff_t>(end),
                                         prompt.names.rend() - static_cast<std::ptrdiff_t>(begin));
  const auto owner = static_cast<Owner>(instance);
  ours_.Apply(instance, RemovedOf(prompt, begin, end));
  hash_map_.Remove(owner, names);
  radix_tree_.Remove(owner, names);
}

void Rivals::CleanUp() {
  while (ours_.state().CleanupSlice(kSliceEntries)) {
  }
}

Result<std::vector<Depth>> DepthsOf(const QueryAnswer& answer) {
  std::vector<Depth> depths;
  for (const InstanceHits& hits : answer.instances) {
    if (hits.best.disk == 0) continue;
    CONDUCTOR_ASSIGN_OR_RETURN(const Owner owner, OwnerOf(hits.instance_id, hits.best.disk));
    depths.push_back({owner, hits.best.disk / kBlockSize});
  }
  return depths;
}

std::uint64_t SumOf(const std::vector<Depth>& depths) {
  Checksum sum;
  sum.Add(depths.size());
  for (const Depth& depth : depths) {
    sum.Add(depth.owner);
    sum.Add(depth.blocks);
  }
  return sum.value();
}

double WalkRadixTree(const RadixTreeBaseline& tree, const Prompt& prompt,
                     std::vector<Depth>* depths) {
  const std::vector<std::uint64_t> ready(prompt.fingerprints);
  const Stopwatch watch;
  *depths = tree.Match(ready);
  return watch.ElapsedNs();
}

Result<TimedWalk> WalkReady(const PrefixIndex& index, const Prompt& prompt,
                            const QueryOptions& options) {
  TimedWalk walk;
  // Ready means: just computed.
  const std::vector<std::uint64_t> ready(prompt.fingerprints);
  const FingerprintQuery query{BenchContext(), ready, options};
  const Stopwatch watch;
  QueryAnswer answer = MatchFingerprints(index, query);
  walk.ns = watch.ElapsedNs();
  walk.answer = std::move(answer);
  return walk;
}

Result<TimedDepths> WalkRows(const PrefixIndex& index, const Prompt& prompt) {
  TimedDepths walk;
  const std::vector<std::uint64_t> ready(prompt.fingerprints);
  const FingerprintQuery query{BenchContext(), ready, {}};
  thread_local RowMatches matches;
  const Stopwatch watch;
  EpochGuard guard;  // a query pins, and so does this
  MatchFingerprints(index, query, &matches);
  walk.ns = watch.ElapsedNs();
  for (std::size_t i = 0; i < matches.size(); ++i) {
    const std::uint64_t tokens = matches.CountsAt(i).disk;
    CONDUCTOR_ASSIGN_OR_RETURN(const Owner owner, OwnerOf(matches.InstanceAt(i), tokens));
    walk.depths.push_back({owner, tokens / kBlockSize});
  }
  return walk;
}

}  // namespace conductor::bench
