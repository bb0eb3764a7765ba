// XXH3-64 of more than a few hundred bytes, at the width of the machine: one kernel per instruction
// set (portable, AVX2, AVX-512), chosen once, when the first hash is asked for. All kernels give
// the same results, so nothing that is kept depends on the machine. Up to kXxh3ShortBytes XXH3 has
// no vector path and is inlined where it is needed.
//
// The kernels are units of their own, because each is compiled for its instruction set; they share
// no inline function with the rest of the program. Pure functions; any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace conductor {

inline constexpr std::size_t kXxh3ShortBytes = 240;

// Where equal, perhaps overlapping pieces of one array lie.
struct Xxh3Pieces {
  const std::uint8_t* first = nullptr;
  std::size_t stride = 0;  // bytes from the begin of one to the begin of the next
  std::size_t bytes = 0;   // of each
};

struct Xxh3Kernel {
  const char* name;
  std::uint64_t (*hash)(const std::uint8_t* bytes, std::size_t size, std::uint64_t seed);
  // `count` pieces under one seed.
  void (*hash_pieces)(const Xxh3Pieces& pieces, std::uint64_t seed, std::size_t count,
                      std::uint64_t* out);
};

// The best of what this machine supports.
const Xxh3Kernel& BestXxh3Kernel();

inline std::uint64_t Xxh3(std::span<const std::uint8_t> bytes, std::uint64_t seed = 0) {
  return BestXxh3Kernel().hash(bytes.data(), bytes.size(), seed);
}

// Null: not built for this architecture. Whether the machine supports it is another question.
const Xxh3Kernel* PortableXxh3Kernel();
const Xxh3Kernel* Avx2Xxh3Kernel();
const Xxh3Kernel* Avx512Xxh3Kernel();
// The same, and null also when the machine does not support it.
const Xxh3Kernel* SupportedAvx2Xxh3Kernel();
const Xxh3Kernel* SupportedAvx512Xxh3Kernel();

}  // namespace conductor
