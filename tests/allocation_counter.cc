#include "tests/allocation_counter.h"

#include <cstdlib>
#include <new>

#if CONDUCTOR_ALLOCATIONS_COUNTED

namespace {

thread_local std::size_t allocations = 0;

void* Allocate(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

namespace conductor {

std::size_t AllocationsOfThisThread() {
  return allocations;
}

}  // namespace conductor

// The others of the standard library call these two.
void* operator new(std::size_t bytes) {
  return Allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return Allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

#else

std::size_t conductor::AllocationsOfThisThread() {
  return 0;
}

#endif
