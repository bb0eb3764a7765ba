// The apply thread below the caps of the index: evictions are logged and applied like everything.
#include "src/service/service_impl.h"

namespace conductor {
namespace {

// About what an eviction takes in the log.
constexpr std::size_t kEvictedBytes = 32;
// At the cap evictions never end: a line now and then says so.
constexpr std::int64_t kReportEveryMs = 60'000;

}  // namespace

// One slice when something is to be given up; more only while there are more blocks than there may
// be. Registrations wait for one slice, frames for as many as they made necessary.
bool ConductorService::Impl::StayBelowCaps() {
  do {
    if (writer_.failed()) return true;
    const std::uint64_t before = state().index().blocks();
    const auto record = std::make_shared<const Record>(cap_.NextSlice(state()));
    if (!record->facts.empty()) {
      bool applied = false;
      if (!CommitEvictions(record, &applied)) return false;
      const std::uint64_t after = state().index().blocks();
      if (applied && after >= before) cap_.GiveUp();
      if (applied && after < before) evicted_.fetch_add(before - after, std::memory_order_relaxed);
    }
    ReportEvictions();
    auto commands = queue_.TakeCommands();
    if (!commands.empty()) RunCommands(std::move(commands));
  } while (cap_.IsOver(state()) && !queue_.stopping());
  return true;
}

bool ConductorService::Impl::CommitEvictions(const std::shared_ptr<const Record>& record,
                                             bool* applied) {
  auto seq = writer_.Write(record, record->facts.size() * kEvictedBytes);
  if (seq) {
    Apply(*record, *seq);
    *applied = true;
    return true;
  }
  if (seq.error().code == ErrorCode::kInvalidArgument) {
    Log(LogLevel::kError, "event=evictions_refused_by_log error=\"" + seq.error().message + "\"");
    cap_.GiveUp();
    return true;
  }
  switch (RecoverLog(/*after_write=*/true)) {
    case Recovered::kStopping:
      return false;
    case Recovered::kPresent:
      Apply(*record, writer_.appended());
      *applied = true;
      return true;
    case Recovered::kRebuilt:
    case Recovered::kRetry:  // what goes is chosen again
      break;
  }
  return true;
}

void ConductorService::Impl::ReportEvictions() {
  const std::uint64_t evicted = evicted_.load(std::memory_order_relaxed);
  if (evicted == evictions_reported_ && !cap_.exhausted()) return;
  const std::int64_t now_ms = clock_.MonotonicMs();
  const bool reported = evictions_reported_ms_ != 0;
  if (reported && now_ms - evictions_reported_ms_ < kReportEveryMs) return;
  const PrefixIndex& index = state().index();
  Log(LogLevel::kWarn, std::string(cap_.exhausted() ? "event=nothing_to_evict" : "event=evicting") +
                           " blocks=" + std::to_string(index.blocks()) +
                           " max_blocks=" + std::to_string(options_.limits.max_blocks) +
                           " index_bytes=" + std::to_string(index.bytes()) +
                           " max_bytes=" + std::to_string(options_.limits.max_bytes) +
                           " evicted_blocks_total=" + std::to_string(evicted));
  evictions_reported_ms_ = now_ms;
  evictions_reported_ = evicted;
}

}  // namespace conductor
