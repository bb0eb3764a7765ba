// The memory of this process that the operating system has to keep. Thread-safe.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace conductor {

// In bytes; 0 where /proc is not mounted.
inline std::uint64_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  if (!(in >> total >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace conductor
