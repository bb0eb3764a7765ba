// The replay's plan: what a fleet of engines with LRU caches asks and publishes for the requests of
// a trace, made ahead. A block operation is one requested, stored or removed hash.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/rows.h"
#include "bench/trace_prompts.h"
#include "src/fact.h"

namespace conductor::bench {

struct ReplayStep {
  double due = 0;                    // of the whole duration, in [0, 1]
  std::vector<std::uint64_t> asked;  // names, in prompt order
  std::vector<Frame> frames;         // what the engine publishes for it; may be empty
};

struct ReplayPlan {
  std::vector<ReplayStep> steps;  // in order of `due`
  std::size_t instances = 0;
  std::size_t asked = 0, stored = 0, removed = 0;
  // Requests at the end of the plan, and how many of their leading blocks each instance has then.
  struct Final {
    std::vector<std::uint64_t> names;
    std::vector<std::size_t> depths;
  };
  std::vector<Final> finals;
  std::uint64_t blocks_left = 0;  // distinct ones, in all caches together

  std::size_t operations() const { return asked + stored + removed; }
};

// Request i goes to instance i modulo their number. Each cache holds half of what its instance
// would store if nothing were evicted.
ReplayPlan MakeReplayPlan(const Settings& settings,
                          const std::vector<enginesim::TraceRequest>& requests);

}  // namespace conductor::bench
