// Compiled for its instruction set (src/CMakeLists.txt); empty for another architecture.
#include "src/hash/xxh3.h"

#if defined(__AVX512F__)
#include "src/hash/xxh3_kernel.h"
static_assert(XXH_VECTOR == XXH_AVX512);

namespace conductor {

const Xxh3Kernel* Avx512Xxh3Kernel() {
  static constexpr Xxh3Kernel kKernel{"avx512", Hash, HashPieces};
  return &kKernel;
}

}  // namespace conductor
#else
namespace conductor {

const Xxh3Kernel* Avx512Xxh3Kernel() {
  return nullptr;
}

}  // namespace conductor
#endif
