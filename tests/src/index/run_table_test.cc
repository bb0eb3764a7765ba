// Where runs are: what a visitor of all of them sees while they come and go.
#include "src/index/run_table.h"

#include <gtest/gtest.h>

namespace conductor {
namespace {

// A visitor that is half-way meets every run that was there when it began, and none twice.
TEST(RunTableTest, ASuperblockThatWasMadeAnewIsNotVisitedAgain) {
  RetireList retired;
  RunTable runs(retired);
  const RunTable::View first = runs.Allocate(1);
  std::uint32_t position = 0;
  RunTable::View visited;
  ASSERT_TRUE(runs.NextRun(&position, &visited));
  EXPECT_EQ(visited.base, first.base);

  // The superblock goes with its only run; in its place comes one of longer runs.
  runs.Retire(first);
  retired.FreeAll();
  const RunTable::View longer = runs.Allocate(16);
  ASSERT_EQ(longer.base, first.base);
  EXPECT_FALSE(runs.NextRun(&position, &visited)) << visited.base;

  position = 1;
  const RunTable::View behind = runs.Allocate(16);
  ASSERT_TRUE(runs.NextRun(&position, &visited));
  EXPECT_EQ(visited.base, behind.base);
  EXPECT_FALSE(runs.NextRun(&position, &visited)) << visited.base;
}

// Prompts that come block by block pass through every size: each would make and free a superblock.
TEST(RunTableTest, AnEmptySuperblockStaysWhileOthersAreInUse) {
  RetireList retired;
  RunTable runs(retired);
  const RunTable::View other = runs.Allocate(64);
  const RunTable::View first = runs.Allocate(1);
  const std::size_t bytes = runs.bytes();
  runs.Retire(first);
  retired.FreeAll();
  EXPECT_EQ(runs.bytes(), bytes);
  EXPECT_EQ(runs.Allocate(1).base, first.base);
  EXPECT_EQ(runs.bytes(), bytes);

  runs.Retire(first);
  runs.Retire(other);
  retired.FreeAll();
  EXPECT_EQ(runs.bytes(), 0u);
}

}  // namespace
}  // namespace conductor
