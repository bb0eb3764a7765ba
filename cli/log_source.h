// Records as text, from the daemon or from a data directory (also one that a daemon writes to).
// One thread.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/ctl.h"
#include "src/service.h"

namespace conductor::cli {

class LogSource {
 public:
  struct Range {
    Seq first = 0, last = 0;  // first > last: empty
  };
  virtual ~LogSource() = default;
  // What the log has now.
  virtual Result<Range> GetRange() = 0;
  // As Service::InspectLog. `from` behind the last record: no lines, `next` stays there.
  virtual Result<Service::LogLines> Read(Seq from, std::uint32_t count_max, StreamId stream) = 0;
};

// Of the directory with --data-dir, else of the daemon.
Result<std::unique_ptr<LogSource>> OpenLogSource(Ctl& ctl);

}  // namespace conductor::cli
