// How often the calling thread has allocated. A binary that links allocation_counter.cc counts,
// unless a sanitizer has operator new for itself: then every count is 0.
#pragma once

#include <cstddef>

namespace conductor {

#ifdef CONDUCTOR_INSTRUMENTED
#define CONDUCTOR_ALLOCATIONS_COUNTED 0
#else
#define CONDUCTOR_ALLOCATIONS_COUNTED 1
#endif
inline constexpr bool kAllocationsAreCounted = CONDUCTOR_ALLOCATIONS_COUNTED != 0;

std::size_t AllocationsOfThisThread();

// Allocations of one call.
template <typename Work>
std::size_t CountAllocations(Work work) {
  const std::size_t before = AllocationsOfThisThread();
  work();
  return AllocationsOfThisThread() - before;
}

}  // namespace conductor
