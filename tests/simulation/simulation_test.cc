// The whole chain in one thread: model publishers speak real vLLM payloads over lossy channels to
// the real trackers, translators, log writer and state, which are killed and rebuilt at random,
// from snapshots that are taken, fail and rot at random.
//
// One seed gives one run. CONDUCTOR_SEED=N replays it; CONDUCTOR_SEEDS=N runs that many of each
// kind, from CONDUCTOR_SEED (or 1) on. scripts/simulate.sh runs many of every kind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/simulation/world.h"

namespace conductor::simulation {
namespace {

std::uint64_t EnvironmentNumber(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

void Simulate(const Conditions& conditions) {
  constexpr std::uint64_t kSeedsDefault = 20;
  const std::uint64_t first = EnvironmentNumber("CONDUCTOR_SEED", 1);
  const bool one = std::getenv("CONDUCTOR_SEED") != nullptr;
  const std::uint64_t seeds = EnvironmentNumber("CONDUCTOR_SEEDS", one ? 1 : kSeedsDefault);
  std::cout << "CONDUCTOR_SEED=" << first << ".." << first + seeds - 1 << "\n";
  const bool many = std::getenv("CONDUCTOR_SEEDS") != nullptr;
  World::Tally tally;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("CONDUCTOR_SEED=" + std::to_string(seed));
    // At once: what ends the process says no seed.
    if (many) std::cout << "runs CONDUCTOR_SEED=" << seed << std::endl;
    World world(seed, conditions);
    world.Run(1'500);
    if (::testing::Test::HasFailure()) return;
    tally.Add(world.tally());
  }
  std::cout << "frames " << tally.frames << " crashes " << tally.crashes << " rebuilds "
            << tally.rebuilds << " publisher_restarts " << tally.restarts << " lives "
            << tally.lives << " lost " << tally.numbers_lost << " digests " << tally.digests
            << " exact " << tally.exact << " blocks " << tally.blocks_believed << " snapshots "
            << tally.snapshots << " failed " << tally.snapshots_failed << " damaged "
            << tally.snapshots_damaged << " checked " << tally.images_checked << " late "
            << tally.late << "\n";
  // A few seeds may be quiet ones.
  if (seeds >= kSeedsDefault) {
    EXPECT_GT(tally.frames, 100 * seeds);
    EXPECT_GT(tally.blocks_believed, seeds);
    EXPECT_GT(tally.crashes, 0u);
    EXPECT_GT(tally.digests, seeds);
    EXPECT_GT(tally.lives, 0u);
    if (conditions.replay) {
      EXPECT_GT(tally.exact, 0u);
    }
    EXPECT_GT(tally.snapshots, seeds);
    EXPECT_GT(tally.snapshots_failed, 0u);
    EXPECT_GT(tally.snapshots_damaged, 0u);
    EXPECT_GT(tally.images_checked, seeds);
    EXPECT_GT(tally.late, 0u);
  }
}

// In the kind in which everything happens, also what the replay endpoint does wrong.
TEST(SeedTest, ReplaysExactly) {
  constexpr std::uint64_t kSeeds = 3;
  const std::uint64_t first = EnvironmentNumber("CONDUCTOR_SEED", 1);
  std::cout << "CONDUCTOR_SEED=" << first << ".." << first + kSeeds - 1 << "\n";
  Conditions conditions;
  conditions.honest_replies = false;
  std::string digest_before;
  for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
    SCOPED_TRACE("CONDUCTOR_SEED=" + std::to_string(seed));
    World once(seed, conditions), again(seed, conditions);
    once.Run(1'500);
    again.Run(1'500);
    if (::testing::Test::HasFailure()) return;
    EXPECT_GT(once.tally().frames, 0u);
    EXPECT_GT(once.Records().size(), 0u);
    EXPECT_EQ(once.Records(), again.Records());
    EXPECT_EQ(once.Digest(), again.Digest());
    EXPECT_TRUE(once.tally() == again.tally());
    // And no seed is the one before.
    EXPECT_NE(once.Digest(), digest_before);
    digest_before = once.Digest();
  }
}

TEST(SimulationTest, NothingIsLostWhenRingAndReplaySuffice) {
  Simulate({});
}

TEST(SimulationTest, DroppedHoldersAreFetchedAgain) {
  Conditions conditions;
  conditions.disconnected_drop_ms = 300;
  conditions.bounce_permille = 10;
  Simulate(conditions);
}

TEST(SimulationTest, SmallRingsLoseOnlyWhatTheySay) {
  Conditions conditions;
  conditions.ring_max = 5;
  conditions.drop_percent = 20;
  Simulate(conditions);
}

TEST(SimulationTest, UnreliableRepliesInventNothing) {
  Conditions conditions;
  conditions.honest_replies = false;
  conditions.restart_permille = 6;
  Simulate(conditions);
}

TEST(SimulationTest, WithoutReplayNothingIsInvented) {
  Conditions conditions;
  conditions.replay = false;
  conditions.drop_percent = 1;
  conditions.restart_permille = 1;
  conditions.reconnect_permille = 1;
  Simulate(conditions);
}

TEST(SimulationTest, HoldersDroppedOnLossStaySaid) {
  Conditions conditions;
  conditions.ring_max = 5;
  conditions.drop_percent = 20;
  conditions.drop_on_lost_events = true;
  Simulate(conditions);
}

}  // namespace
}  // namespace conductor::simulation
