#include "cli/spare_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "src/resident_memory.h"

namespace conductor::cli {
namespace {

constexpr std::uint64_t kMib = 1u << 20;

// A process of which `free` bytes can be given back.
struct FakeProcess {
  std::uint64_t used = 0, free = 0;
  int given_back = 0;

  SpareMemory Memory() {
    return SpareMemory({[this] { return used + free; },
                        [this] {
                          free = 0;
                          ++given_back;
                        }});
  }
};

TEST(SpareMemoryTest, WhatTheIndexAccountsForIsLeftAlone) {
  FakeProcess process{900 * kMib, 200 * kMib};
  SpareMemory memory = process.Memory();
  EXPECT_EQ(memory.Look(900 * kMib, 0), std::nullopt);
  EXPECT_EQ(process.given_back, 0);
  EXPECT_FALSE(memory.IsDue(kSpareLookMs - 1));
  EXPECT_TRUE(memory.IsDue(kSpareLookMs));
}

TEST(SpareMemoryTest, WhatABurstLeftIsGivenBack) {
  FakeProcess process{100 * kMib, 900 * kMib};
  SpareMemory memory = process.Memory();
  EXPECT_EQ(memory.Look(40 * kMib, 0), 900 * kMib);
  EXPECT_EQ(memory.Look(40 * kMib, kSpareLookMs), std::nullopt);
  EXPECT_EQ(process.given_back, 1);
}

TEST(SpareMemoryTest, WhereNothingIsToBeHadItIsTriedEverMoreSeldom) {
  FakeProcess process{1'000 * kMib, 0};
  SpareMemory memory = process.Memory();
  std::int64_t now_ms = 0;
  for (std::int64_t wait_ms = 2 * kSpareLookMs; wait_ms < 4 * kSpareLookMsMax; wait_ms *= 2) {
    EXPECT_EQ(memory.Look(0, now_ms), 0u);
    now_ms += std::min(wait_ms, kSpareLookMsMax);
    EXPECT_FALSE(memory.IsDue(now_ms - 1)) << wait_ms;
    EXPECT_TRUE(memory.IsDue(now_ms)) << wait_ms;
  }
  process.free = 500 * kMib;
  EXPECT_EQ(memory.Look(0, now_ms), 500 * kMib);
  EXPECT_TRUE(memory.IsDue(now_ms + kSpareLookMs));
}

// An instrumented process keeps its memory for other reasons.
#ifndef CONDUCTOR_INSTRUMENTED
TEST(SpareMemoryTest, ThisProcessGivesBackWhatAThreadFreed) {
  constexpr std::size_t kPieces = 512 * 1'024, kPieceBytes = 1'024;
  std::unique_ptr<char[]> last;
  std::thread([&last] {
    std::vector<std::unique_ptr<char[]>> pieces;
    for (std::size_t i = 0; i < kPieces; ++i) {
      pieces.push_back(std::make_unique<char[]>(kPieceBytes));  // written: resident
    }
    // Above them all something stays: the heap cannot shrink from its end.
    last = std::move(pieces.back());
  }).join();
  SpareMemory memory;
  const std::uint64_t before = ResidentBytes();
  ASSERT_GT(before, kSpareBytesMax);
  const auto given_back = memory.Look(0, 0);
  ASSERT_TRUE(given_back);
  EXPECT_GT(*given_back, 400 * kMib);
  EXPECT_LE(ResidentBytes(), before - 400 * kMib);
}
#endif

}  // namespace
}  // namespace conductor::cli
