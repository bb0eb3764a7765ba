// The real state against the reference model: random operations, the same questions to both, and
// the digest of a second state that is cleaned up at other moments and restarted from records.
//
// CONDUCTOR_SEED=N replays one seed, CONDUCTOR_SEEDS=N runs that many from the first one on, and
// CONDUCTOR_OPERATIONS=N sets the records of each. The default is a short run (40 seeds of 500);
// a change of the index deserves CONDUCTOR_SEEDS=300 CONDUCTOR_OPERATIONS=1000.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/model/state_pair.h"

namespace conductor::model {
namespace {

std::uint64_t EnvironmentNumber(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

void Compare(RandomOpsOptions options, std::uint64_t max_blocks = 0, bool images = false,
             std::uint64_t seeds_default = 40, std::uint64_t records_default = 500) {
  const std::uint64_t first = EnvironmentNumber("CONDUCTOR_SEED", 1);
  const bool one = std::getenv("CONDUCTOR_SEED") != nullptr;
  const std::uint64_t records = EnvironmentNumber("CONDUCTOR_OPERATIONS", records_default);
  const std::uint64_t seeds = one ? 1 : EnvironmentNumber("CONDUCTOR_SEEDS", seeds_default);
  const RealNames names;
  std::cout << "CONDUCTOR_SEED=" << first << ".." << first + seeds - 1 << "\n";
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    StatePair pair(seed, names, options);
    if (max_blocks != 0) pair.SetCap(max_blocks);
    if (images) pair.TakeImages();
    for (std::uint64_t i = 0; i < records; ++i) {
      ASSERT_EQ(pair.Step(), "") << "CONDUCTOR_SEED=" << seed;
    }
    ASSERT_EQ(pair.Restart(), "") << "CONDUCTOR_SEED=" << seed;
  }
}

TEST(DifferentialTest, PlausibleStreamsAgreeWithTheModel) {
  RandomOpsOptions options = RealOptions();
  options.forged_links = false;
  options.mixed_spellings = false;
  Compare(options);
}

TEST(DifferentialTest, ForgedStreamsAgreeWithTheModel) {
  Compare(RealOptions());
}

TEST(DifferentialTest, StreamsAboveTheCapAgreeWithTheModel) {
  Compare(RealOptions(), /*max_blocks=*/20);
}

TEST(DifferentialTest, StatesFromImagesAgreeWithTheModel) {
  RandomOpsOptions options = RealOptions();
  options.forged_links = false;
  options.mixed_spellings = false;
  Compare(options, 0, /*images=*/true);
}

TEST(DifferentialTest, ForgedStatesFromImagesAgreeWithTheModel) {
  Compare(RealOptions(), 0, /*images=*/true);
}

// Sets of many holders, tables of several chunks, rows in the thousands. Each question costs what
// the model needs for all of them, so there are few.
TEST(DifferentialTest, ThousandsOfPublishersAgreeWithTheModel) {
  RandomOpsOptions options = RealOptions();
  options.more_publishers = 2'000;
  Compare(options, 0, /*images=*/false, /*seeds_default=*/1, /*records_default=*/150);
}

}  // namespace
}  // namespace conductor::model
