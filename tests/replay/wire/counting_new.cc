#include "tests/replay/wire/counting_new.h"

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t allocated_bytes = 0;
}  // namespace

namespace conductor::wire_test {
std::size_t AllocatedBytes() {
  return allocated_bytes;
}
}  // namespace conductor::wire_test

void* operator new(std::size_t size) {
  allocated_bytes += size;
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
