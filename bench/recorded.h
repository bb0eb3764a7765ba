// The ratios that CI watches: what the same work costs our own baselines (baseline_hash_map.h,
// baseline_radix_tree.h), in multiples of what it costs us, in one interleaved run of
// `conductor-bench all --quick`. A change that makes us slower by more than 30 % against them
// fails `bench_ratio`; a change that makes us faster brings the new lines along:
// `conductor-bench compare walk --quick -o recorded` prints them.
#pragma once

#include <string_view>

namespace conductor::bench {

struct Recorded {
  std::string_view group, work;
  double times_ours;
};

inline constexpr Recorded kRecordedRatios[] = {
    {"compare", "H: hit, 8192 tokens, 8 instances", 1},
};

}  // namespace conductor::bench
