// The kernels that compare fingerprints in bulk: whatever the machine chooses, each of them finds
// the first difference, and nothing behind it matters.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <vector>

#include "src/index/run_walk.h"
#include "tests/model/random_source.h"

namespace conductor {
namespace {

using model::RandomSource;

std::uint64_t Seed() {
  const char* text = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  std::cout << "CONDUCTOR_SEED=" << seed << "\n";
  return seed;
}

// MatchLength itself, and each kernel that runs here: the portable one always does.
std::vector<MatchKernel> Kernels() {
  std::vector<MatchKernel> kernels = {MatchLength, PortableMatchKernel()};
  if (SupportedAvx2MatchKernel() != nullptr) kernels.push_back(SupportedAvx2MatchKernel());
  return kernels;
}

TEST(MatchLengthTest, IsTheFirstDifference) {
  RandomSource random(Seed());
  for (std::size_t size = 0; size <= 70; ++size) {
    std::vector<std::uint64_t> a(size), b;
    for (std::uint64_t& value : a) value = random.Next();
    b = a;
    for (const MatchKernel kernel : Kernels()) EXPECT_EQ(kernel(a.data(), b.data(), size), size);
    for (std::size_t at = 0; at < size; ++at) {
      b[at] ^= std::uint64_t{1} << (at % 64);
      for (const MatchKernel kernel : Kernels()) EXPECT_EQ(kernel(a.data(), b.data(), size), at);
      b[at] = a[at];
    }
  }
}

// Slots of a run and fingerprints of a prompt begin anywhere, and differ in as many places as they
// like.
TEST(MatchLengthTest, KernelsAgreeOnRandomStretches) {
  RandomSource random(Seed());
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t size = random.Below(300), skip_a = random.Below(8), skip_b = random.Below(8);
    std::vector<std::uint64_t> a(skip_a + size), b(skip_b + size);
    for (std::size_t i = 0; i < size; ++i) a[skip_a + i] = b[skip_b + i] = random.Next();
    for (std::uint64_t changes = random.Below(4); changes > 0 && size > 0; --changes) {
      b[skip_b + random.Below(size)] ^= std::uint64_t{1} << random.Below(64);
    }
    std::size_t expected = 0;
    while (expected < size && a[skip_a + expected] == b[skip_b + expected]) ++expected;
    for (const MatchKernel kernel : Kernels()) {
      ASSERT_EQ(kernel(a.data() + skip_a, b.data() + skip_b, size), expected)
          << "round " << round << ", " << size << " values";
    }
  }
}

}  // namespace
}  // namespace conductor
