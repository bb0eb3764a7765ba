// Every kernel the machine supports against the portable one, and that one against plain XXH3.
#include "src/hash/xxh3.h"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <random>
#include <vector>

#include "src/hash/fingerprint.h"

namespace conductor {
namespace {

constexpr std::size_t kTokensMax = 600;
constexpr std::size_t kBlocks = 5;

std::vector<const Xxh3Kernel*> Kernels() {
  std::vector<const Xxh3Kernel*> kernels = {PortableXxh3Kernel()};
  for (const Xxh3Kernel* kernel : {SupportedAvx2Xxh3Kernel(), SupportedAvx512Xxh3Kernel()}) {
    if (kernel != nullptr) kernels.push_back(kernel);
  }
  return kernels;
}

std::vector<std::int32_t> RandomTokens(std::size_t count) {
  std::mt19937 random(7);  // the same everywhere
  std::vector<std::int32_t> tokens(count);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random());
  return tokens;
}

const std::uint8_t* BytesAt(const std::vector<std::int32_t>& tokens, std::size_t i) {
  return reinterpret_cast<const std::uint8_t*>(tokens.data() + i);
}

TEST(Xxh3Test, EveryKernelHashesEveryLengthAlike) {
  const auto tokens = RandomTokens(kTokensMax + 1);
  for (const Xxh3Kernel* kernel : Kernels()) {
    for (std::size_t bytes = 0; bytes <= kTokensMax * sizeof(std::int32_t); ++bytes) {
      for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{bytes}, ~std::uint64_t{0}}) {
        const std::uint8_t* at = BytesAt(tokens, 0) + bytes % 4;  // not only aligned ones
        ASSERT_EQ(kernel->hash(at, bytes, seed), XXH3_64bits_withSeed(at, bytes, seed))
            << kernel->name << ", " << bytes << " bytes, seed " << seed;
      }
    }
  }
}

TEST(Xxh3Test, EveryKernelHashesPiecesAsOneByOne) {
  const auto tokens = RandomTokens(kTokensMax * kBlocks + 1);
  for (const Xxh3Kernel* kernel : Kernels()) {
    for (std::size_t length = 1; length <= kTokensMax; ++length) {
      for (const std::size_t overlap : {0, 1}) {
        const std::size_t bytes = (length + overlap) * sizeof(std::int32_t);
        const Xxh3Pieces pieces{BytesAt(tokens, 0), length * sizeof(std::int32_t), bytes};
        std::uint64_t hashes[kBlocks] = {};
        kernel->hash_pieces(pieces, length + overlap, kBlocks, hashes);
        for (std::size_t i = 0; i < kBlocks; ++i) {
          ASSERT_EQ(hashes[i],
                    XXH3_64bits_withSeed(BytesAt(tokens, i * length), bytes, length + overlap))
              << kernel->name << ", block " << i << " of " << length << " tokens, overlap "
              << overlap;
        }
      }
    }
  }
}

// What the index and the log see: in bulk and one by one, over every length.
TEST(Xxh3Test, FingerprintsInBulkAreThoseOneByOne) {
  const auto tokens = RandomTokens(kTokensMax * kBlocks + 1);
  for (std::uint32_t length = 1; length <= kTokensMax; ++length) {
    for (const std::uint32_t overlap : {0u, 1u}) {
      std::uint64_t hashes[kBlocks] = {};
      FingerprintTokens(tokens, length, hashes, overlap);
      for (std::size_t i = 0; i < kBlocks; ++i) {
        const auto block = std::span(tokens).subspan(i * length, length + overlap);
        ASSERT_EQ(hashes[i], FingerprintV1(block, {}));
        ASSERT_EQ(hashes[i], XXH3_64bits_withSeed(block.data(), block.size_bytes(), block.size()));
      }
    }
  }
}

TEST(Xxh3Test, TheBestKernelIsOneTheMachineSupports) {
  const auto kernels = Kernels();
  EXPECT_EQ(&BestXxh3Kernel(), kernels.back());
}

}  // namespace
}  // namespace conductor
