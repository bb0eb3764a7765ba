#include "src/hash/xxh3.h"

#include "src/hash/xxh3_kernel.h"

namespace conductor {
namespace {

const Xxh3Kernel& ChooseKernel() {
  if (const Xxh3Kernel* kernel = SupportedAvx512Xxh3Kernel()) return *kernel;
  if (const Xxh3Kernel* kernel = SupportedAvx2Xxh3Kernel()) return *kernel;
  return *PortableXxh3Kernel();
}

}  // namespace

const Xxh3Kernel* PortableXxh3Kernel() {
  static constexpr Xxh3Kernel kKernel{"portable", Hash, HashPieces};
  return &kKernel;
}

#if defined(__x86_64__)
const Xxh3Kernel* SupportedAvx2Xxh3Kernel() {
  return __builtin_cpu_supports("avx2") ? Avx2Xxh3Kernel() : nullptr;
}

const Xxh3Kernel* SupportedAvx512Xxh3Kernel() {
  return __builtin_cpu_supports("avx512f") ? Avx512Xxh3Kernel() : nullptr;
}
#else
const Xxh3Kernel* SupportedAvx2Xxh3Kernel() {
  return nullptr;
}

const Xxh3Kernel* SupportedAvx512Xxh3Kernel() {
  return nullptr;
}
#endif

const Xxh3Kernel& BestXxh3Kernel() {
  static const Xxh3Kernel& best = ChooseKernel();
  return best;
}

}  // namespace conductor
