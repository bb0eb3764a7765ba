#include "cli/spare_memory.h"

#include <malloc.h>

#include <algorithm>

#include "src/resident_memory.h"

namespace conductor::cli {

SpareMemory::SpareMemory() : SpareMemory({ResidentBytes, [] { malloc_trim(0); }}) {}

std::optional<std::uint64_t> SpareMemory::Look(std::uint64_t accounted_bytes, std::int64_t now_ms) {
  const std::uint64_t before = process_.resident_bytes();
  if (before <= accounted_bytes + kSpareBytesMax) {
    due_ms_ = now_ms + kSpareLookMs;
    wait_ms_ = kSpareLookMs;
    return std::nullopt;
  }
  process_.give_back();
  const std::uint64_t after = std::min(before, process_.resident_bytes());
  const bool worth_it = before - after >= kSpareBytesMax / 4;
  wait_ms_ = worth_it ? kSpareLookMs : std::min(2 * wait_ms_, kSpareLookMsMax);
  due_ms_ = now_ms + wait_ms_;
  return before - after;
}

}  // namespace conductor::cli
