#include "replay/descriptor_limit.h"

#include <sys/resource.h>

#include <string>

namespace conductor {

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

Status CheckDescriptorLimit(std::size_t streams, std::size_t replays) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const std::size_t needed =
      streams * kDescriptorsPerStream + replays * kDescriptorsPerReplay + kDescriptorsReserved;
  if (needed <= limit.rlim_cur) return {};
  return MakeError(ErrorCode::kResourceExhausted,
                   "stream " + std::to_string(streams) + ": expected at least " +
                       std::to_string(needed) + " descriptors, the process may open " +
                       std::to_string(limit.rlim_cur) + " (RLIMIT_NOFILE, ulimit -n)");
}

}  // namespace conductor
