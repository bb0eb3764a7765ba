// Ours and both baselines, fed with the same blocks in the same order.
#pragma once

#include "bench/baseline_hash_map.h"
#include "bench/baseline_radix_tree.h"
#include "bench/prompts.h"
#include "bench/state_rig.h"
#include "src/query.h"

namespace conductor::bench {

class Rivals {
 public:
  explicit Rivals(std::size_t instances)
      : ours_(instances), hash_map_(BenchProfile()), radix_tree_(instances) {}

  StateRig& ours() { return ours_; }
  HashMapBaseline& hash_map() { return hash_map_; }
  RadixTreeBaseline& radix_tree() { return radix_tree_; }
  const PrefixIndex& index() const { return ours_.index(); }
  std::size_t instances() const { return ours_.instances(); }

  // In events of kEventBlocks.
  void Store(std::size_t instance, const Prompt& prompt, std::size_t begin, std::size_t end);
  void Remove(std::size_t instance, const Prompt& prompt, std::size_t begin, std::size_t end);
  // Until nothing of ours is left to clean up or merge.
  void CleanUp();

 private:
  StateRig ours_;
  HashMapBaseline hash_map_;
  RadixTreeBaseline radix_tree_;
};

// Owners with at least one block, in order. kInternal when the answer is not about whole blocks of
// instances of ours.
Result<std::vector<Depth>> DepthsOf(const QueryAnswer& answer);
std::uint64_t SumOf(const std::vector<Depth>& depths);
// The walk itself, with fingerprints that are ready, and how long it took.
struct TimedWalk {
  QueryAnswer answer;
  double ns = 0;
};
Result<TimedWalk> WalkReady(const PrefixIndex& index, const Prompt& prompt,
                            const QueryOptions& options = {});
// The same, of which only what T's answer has is wanted: who, and how many blocks.
struct TimedDepths {
  std::vector<Depth> depths;
  double ns = 0;
};
Result<TimedDepths> WalkRows(const PrefixIndex& index, const Prompt& prompt);
// The same for T; returns nanoseconds.
double WalkRadixTree(const RadixTreeBaseline& tree, const Prompt& prompt,
                     std::vector<Depth>* depths);

}  // namespace conductor::bench
