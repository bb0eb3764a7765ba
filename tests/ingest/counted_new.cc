#include "tests/ingest/counted_new.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t allocations = 0;

void* Counted(void* memory) {
  ++allocations;
  if (memory == nullptr) std::abort();  // no test runs out of memory
  return memory;
}

}  // namespace

// The forms of new[], and those that do not throw, call these.
void* operator new(std::size_t size) {
  return Counted(std::malloc(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return Counted(std::aligned_alloc(align, (size + align - 1) / align * align));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace conductor::ingest_test {

std::size_t Allocations() {
  return allocations;
}

}  // namespace conductor::ingest_test
