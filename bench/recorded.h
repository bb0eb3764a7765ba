// The ratios that CI watches: what the same work costs our own baselines (baseline_hash_map.h,
// baseline_radix_tree.h), in multiples of what it costs us, in one interleaved run of
// `conductor-bench compare walk trace --quick --ratios`. A change that makes us slower by more than
// 30 % against them fails `bench_ratio`; a change that makes us faster brings the new lines along:
// the same with `-o recorded` prints them. Taken with little else on the machine. H's stored and
// removed are not among them: an allocation for each block, they change threefold with what the
// neighbours leave in the caches.
#pragma once

#include <string_view>

namespace conductor::bench {

struct Recorded {
  std::string_view group, work;
  double times_ours;
};

inline constexpr Recorded kRecordedRatios[] = {
    {"compare", "H: 1 holder, runs of 64: bytes", 0.502},
    {"compare", "T: 1 holder, runs of 64: bytes", 0.409},
    {"compare", "H: 8 holders, runs of 64: bytes", 0.592},
    {"compare", "T: 8 holders, runs of 64: bytes", 2.51},
    {"compare", "H: 64 holders, runs of 64: bytes", 0.248},
    {"compare", "T: 64 holders, runs of 64: bytes", 2.53},
    {"compare", "T: stored, 64-block events", 0.739},
    {"compare", "T: removed, LRU order", 0.386},
    {"compare", "H: hit, 8192 tokens, 8 instances", 20},
    {"compare", "T: hit, 8192 tokens, 8 instances", 0.532},
    {"compare", "H: hit, 8192 tokens, 64 instances", 18},
    {"compare", "T: hit, 8192 tokens, 64 instances", 0.394},
    {"walk", "T: 2048 blocks, 8 instances", 0.943},
    {"walk", "T: 2048 blocks, 256 instances", 0.522},
    {"walk", "T: every 4th block branches, shuffled", 12},
    {"walk", "T: the same, branches evicted, shuffled", 15},
    {"trace", "T: 8 instances, all", 0.176},
    {"trace", "T: 1000 instances, all", 2.38},
    {"trace", "T: 7000 instances, all", 2.95},
};

}  // namespace conductor::bench
