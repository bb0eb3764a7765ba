// SpareMemory: gives freed memory back to the operating system.
//
// The allocator keeps what was freed, for each thread that allocated. After a burst of frames (a
// thousand engines are replayed) that is as much as the queues may hold, several times the index of
// a small fleet; operators and the kernel take it for used. So when much more is resident than the
// index accounts for, what is free is given back. That holds up the threads that allocate at that
// moment for as long as the kernel needs (up to some hundred milliseconds for a gigabyte), so it is
// done for much only, and ever more seldom while there is nothing to be had.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace conductor::cli {

// Resident beyond what is accounted for, and left in peace: the code, RocksDB's caches, queues.
inline constexpr std::uint64_t kSpareBytesMax = 256u << 20;
inline constexpr std::int64_t kSpareLookMs = 5'000;
inline constexpr std::int64_t kSpareLookMsMax = 600'000;

class SpareMemory {
 public:
  // The process's memory, or a test's.
  struct Process {
    std::function<std::uint64_t()> resident_bytes;
    std::function<void()> give_back;
  };
  SpareMemory();
  explicit SpareMemory(Process process) : process_(std::move(process)) {}

  bool IsDue(std::int64_t now_ms) const { return now_ms >= due_ms_; }
  // When it is due: looks, and maybe gives back. Returns how many bytes are resident no more, if it
  // tried. `accounted_bytes`: known to be in use.
  std::optional<std::uint64_t> Look(std::uint64_t accounted_bytes, std::int64_t now_ms);

 private:
  Process process_;
  std::int64_t due_ms_ = 0;
  std::int64_t wait_ms_ = kSpareLookMs;
};

}  // namespace conductor::cli
