#include "tools/trace_driver.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace conductor::enginesim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStopSlice{200};  // how soon a pause notices `stop`

void PauseUntil(Clock::time_point due, const std::atomic<bool>& stop) {
  for (auto now = Clock::now(); now < due && !stop.load(std::memory_order_relaxed);
       now = Clock::now()) {
    std::this_thread::sleep_until(std::min(due, now + kStopSlice));
  }
}

}  // namespace

Result<TraceSummary> RunTrace(Fleet& fleet, TraceReader& reader, const TraceRunOptions& options,
                              const std::atomic<bool>& stop) {
  if (fleet.HasStores()) {
    return MakeError(ErrorCode::kInvalidArgument, "trace: a store serves no prompts");
  }
  TraceSummary summary;
  const auto begin = Clock::now();
  std::optional<std::uint64_t> first_ms;
  while (!stop.load(std::memory_order_relaxed) &&
         (options.requests_max == 0 || summary.requests < options.requests_max)) {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::optional<TraceRequest> request, reader.Next());
    if (!request) break;
    if (!first_ms) first_ms = request->timestamp_ms;
    if (options.speed > 0 && request->timestamp_ms > *first_ms) {
      const double wait_ms = static_cast<double>(request->timestamp_ms - *first_ms) / options.speed;
      PauseUntil(begin + std::chrono::milliseconds(static_cast<std::int64_t>(wait_ms)), stop);
    }
    PromptRequest prompt;
    prompt.tokens = ExpandTrace(*request, options.trace_block);
    prompt.dp_rank = static_cast<std::uint32_t>(summary.requests / fleet.size() %
                                                fleet.options().engine.dp_ranks);
    EngineSim& engine = fleet.engine(summary.requests % fleet.size());
    CONDUCTOR_ASSIGN_OR_RETURN(const PromptOutcome outcome, engine.Prompt(prompt));
    ++summary.requests;
    summary.prompt_tokens += prompt.tokens.size();
    summary.hit_tokens += outcome.hit_tokens;
    summary.stored_blocks += outcome.stored_blocks;
    summary.removed_blocks += outcome.removed_blocks;
    summary.batches += outcome.seq.has_value() ? 1 : 0;
  }
  summary.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return summary;
}

std::string ToJson(const TraceSummary& summary) {
  const nlohmann::ordered_json json{{"trace_requests", summary.requests},
                                    {"prompt_tokens", summary.prompt_tokens},
                                    {"hit_tokens", summary.hit_tokens},
                                    {"stored_blocks", summary.stored_blocks},
                                    {"removed_blocks", summary.removed_blocks},
                                    {"batches", summary.batches},
                                    {"seconds", summary.seconds}};
  return json.dump();
}

}  // namespace conductor::enginesim
