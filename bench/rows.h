// The groups of rows. Each measures, checks its own answers and adds rows to the report; an error
// is a wrong answer or a part that failed, never a slow machine.
//
// Issue 4's further rows (branching prompts, traces, pauses under load, front ends) are groups of
// their own: a function here, a file rows_<group>.cc, an entry in main.cc's table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "src/result.h"

namespace conductor::bench {

struct Settings {
  std::uint64_t seed = 1;
  std::size_t repeats = 3;
  std::size_t blocks = 1'000'000;  // of the index that queries and state changes meet
  std::vector<std::size_t> prompt_tokens = {1'024, 8'192, 32'768, 131'072};
  std::vector<std::size_t> instances = {1, 8, 64, 256};
  std::vector<std::size_t> holders = {1, 8, 64};  // of each block, in the memory rows
  double query_seconds = 0.4;                     // of one repeat of one query row
  std::size_t log_blocks = 256 * 1'024;           // through the log, and rebuilt from it
  std::size_t stream_blocks = 256 * 1'024;        // through ZMQ in prefill messages
  std::size_t memory_blocks = 250'000;
  std::size_t freshness_samples = 500;
  std::size_t growth_blocks = 2'000'000;  // the top of a growth cycle
  std::vector<std::size_t> scale_blocks = {1'024, 1'000'000};
  std::size_t threads = 2;  // readers, at most
  std::string trace;        // requests, Mooncake's format
  // Blocks of one trace id in the replay: 32 is the traced 512 tokens in blocks of 16.
  std::size_t replay_blocks_per_id = 4;
  std::size_t replay_instances = 8;
  std::string python;     // where the Python package is; empty: no rows of it
  std::string directory;  // where data directories are made and removed

  static Settings Quick();
};

Status RunState(const Settings& settings, Report& report);
Status RunQuery(const Settings& settings, Report& report);
Status RunLog(const Settings& settings, Report& report);
Status RunSnapshot(const Settings& settings, Report& report);
Status RunRetire(const Settings& settings, Report& report);
Status RunRebuild(const Settings& settings, Report& report);
Status RunStream(const Settings& settings, Report& report);
Status RunFreshness(const Settings& settings, Report& report);
Status RunMemory(const Settings& settings, Report& report);
Status RunCompare(const Settings& settings, Report& report);
Status RunNamed(const Settings& settings, Report& report);
Status RunTrace(const Settings& settings, Report& report);
Status RunReplay(const Settings& settings, Report& report);
Status RunContention(const Settings& settings, Report& report);
Status RunGrowth(const Settings& settings, Report& report);
Status RunFront(const Settings& settings, Report& report);
Status RunScale(const Settings& settings, Report& report);
Status RunWalk(const Settings& settings, Report& report);

}  // namespace conductor::bench
