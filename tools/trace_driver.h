// Drives a fleet from a request trace: request i goes to engine i modulo their number (and to
// rank i / engines modulo the ranks), at its time in the trace divided by `speed`.
//
// Runs on the caller's thread until the trace ends or `stop` is set.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "src/result.h"
#include "tools/fleet.h"
#include "tools/trace.h"

namespace conductor::enginesim {

struct TraceRunOptions {
  double speed = 1.0;              // 0: as fast as possible
  std::uint64_t requests_max = 0;  // 0: all
  std::uint32_t trace_block = kTraceBlockTokens;
};

struct TraceSummary {
  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0, hit_tokens = 0;
  std::uint64_t stored_blocks = 0, removed_blocks = 0, batches = 0;
  double seconds = 0;
};

// Errors are those of the trace, with its line.
Result<TraceSummary> RunTrace(Fleet& fleet, TraceReader& reader, const TraceRunOptions& options,
                              const std::atomic<bool>& stop);

std::string ToJson(const TraceSummary& summary);  // one line

}  // namespace conductor::enginesim
