// The field's bug log and the design's three probes, computed by hand against the reference model.
// The cases that name blocks arbitrarily run once for each way in which content is indexed.
#include <gtest/gtest.h>

#include "tests/model/world.h"

namespace conductor::model {
namespace {

TierCounts Counts(std::uint64_t device, std::uint64_t local, std::uint64_t share,
                  std::uint64_t disk) {
  return {device, local, share, disk};
}

struct Indexing {
  const char* label;
  HashCheck check;
  bool keys_on_wire;
};

class FieldCaseTest : public ::testing::TestWithParam<Indexing> {
 protected:
  void TearDown() override { EXPECT_EQ(world_.broken, ""); }
  StoreOptions Options(Tier tier = Tier::kDevice) const {
    StoreOptions options;
    options.check = GetParam().check;
    options.keys_on_wire = GetParam().keys_on_wire;
    options.tier = tier;
    return options;
  }
  World world_;
};

INSTANTIATE_TEST_SUITE_P(Indexing, FieldCaseTest,
                         ::testing::Values(Indexing{"Verified", HashCheck::kEqual, true},
                                           Indexing{"OwnContent", HashCheck::kDiffers, true},
                                           Indexing{"Unproven", HashCheck::kDiffers, false}),
                         [](const auto& info) { return std::string(info.param.label); });

TEST_P(FieldCaseTest, Bl16RemoveFindsTheIntegerHoweverItWasSpelled) {
  const StreamId p1 = world_.Register("p1");
  world_.Store(p1, {Name(15760518052499183552u)}, std::nullopt, {kA}, Options());
  EXPECT_EQ(world_.Longest("p1", {kA}), 4u);
  world_.Remove(p1, {Name(static_cast<std::uint64_t>(-2686226021210368064))});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
}

TEST_P(FieldCaseTest, Bl18CyclesAreRejectedAndRepeatedContentMatchesOnlyAsOftenAsStored) {
  const StreamId p1 = world_.Register("p1");
  StoreOptions waiting = Options();
  waiting.check = HashCheck::kNotComputed;
  world_.Store(p1, {Name(7)}, Name(7), {kA}, Options());
  EXPECT_EQ(world_.CountersOf(p1).rejected_blocks, 1u);
  world_.Store(p1, {Name(8)}, Name(9), {kB}, waiting);
  EXPECT_EQ(world_.model.OrphanCount(), 1u);
  world_.Store(p1, {Name(9)}, Name(8), {kC}, waiting);
  EXPECT_EQ(world_.CountersOf(p1).rejected_blocks, 3u);
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 0u);

  world_.Store(p1, {Name(21), Name(22), Name(23)}, std::nullopt, {kA, kA, kA}, Options());
  EXPECT_EQ(world_.Longest("p1", {kA, kA, kA}), 12u);
  world_.Store(p1, {Name(5), Name(5)}, std::nullopt, {kA, kA}, Options());
  EXPECT_EQ(world_.CountersOf(p1).rejected_blocks, 4u);
  EXPECT_EQ(world_.Longest("p1", {kA, kA, kA, kA, kA}), 12u);
}

TEST_P(FieldCaseTest, Bl18TheSecondOfTwoEqualNamesInOneEventIsRejected) {
  const StreamId p1 = world_.Register("p1");
  world_.Store(p1, {Name(5), Name(5), Name(6)}, std::nullopt, {kA, kA, kA}, Options());
  EXPECT_EQ(world_.CountersOf(p1).rejected_blocks, 2u);
  EXPECT_EQ(world_.Longest("p1", {kA, kA, kA}), 4u);
}

TEST_P(FieldCaseTest, Bl25ClearTakesTheDeviceOfThatRankOnly) {
  const StreamId p1 = world_.Register("p1");
  const StreamId p2 = world_.Register("p2");
  for (StreamId stream : {p1, p2}) {
    world_.Store(stream, {Name(1), Name(2)}, std::nullopt, {kA, kB}, Options());
  }
  world_.Apply(p1, Cleared{});
  EXPECT_EQ(world_.Longest("p1", {kA, kB}), 0u);
  EXPECT_EQ(world_.Longest("p2", {kA, kB}), 8u);
  world_.Apply(p1, Cleared{});
  world_.Store(p1, {Name(1)}, std::nullopt, {kA}, Options());
  EXPECT_EQ(world_.Longest("p1", {kA, kB}), 4u);
  EXPECT_EQ(world_.Longest("p2", {kA, kB}), 8u);
  EXPECT_EQ(world_.CountersOf(p1).remove_unknown, 0u);
}

TEST_P(FieldCaseTest, Bl27EachTierIsRemovedAlone) {
  const StreamId p1 = world_.Register("p1");
  for (Tier tier : {Tier::kDevice, Tier::kCpuLocal, Tier::kDisk}) {
    world_.Store(p1, {Name(1)}, std::nullopt, {kA}, Options(tier));
  }
  const PromptSpec prompt = world_.Prompt({kA});
  EXPECT_EQ(world_.Ask("p1", prompt), Counts(4, 4, 4, 4));
  world_.Remove(p1, {Name(1)}, Tier::kDevice);
  EXPECT_EQ(world_.Ask("p1", prompt), Counts(0, 4, 4, 4));
  world_.Remove(p1, {Name(1)}, Tier::kCpuLocal);
  EXPECT_EQ(world_.Ask("p1", prompt), Counts(0, 0, 0, 4));
  world_.Remove(p1, {Name(1)}, Tier::kDisk);
  EXPECT_EQ(world_.Ask("p1", prompt), Counts(0, 0, 0, 0));

  world_.Store(p1, {Name(2)}, std::nullopt, {kB}, Options());
  world_.Remove(p1, {Name(2)}, Tier::kCpuLocal);
  EXPECT_EQ(world_.Ask("p1", world_.Prompt({kB})), Counts(4, 4, 4, 4));
  EXPECT_EQ(world_.CountersOf(p1).remove_unknown, 1u);
}

TEST_P(FieldCaseTest, Bl28CopiesAreCounted) {
  const StreamId p1 = world_.Register("p1");
  const auto longest = [&] { return world_.Longest("p1", {kA, kB, kC}); };
  world_.Store(p1, {Name(71), Name(72), Name(73)}, std::nullopt, {kA, kB, kC}, Options());
  world_.Store(p1, {Name(73)}, Name(72), {kC}, Options());
  world_.Remove(p1, {Name(73)});
  EXPECT_EQ(longest(), 12u);
  world_.Remove(p1, {Name(73)});
  EXPECT_EQ(longest(), 8u);
  world_.Remove(p1, {Name(73)});
  EXPECT_EQ(world_.CountersOf(p1).remove_unknown, 1u);
  world_.Store(p1, {Name(73)}, Name(72), {kC}, Options());
  EXPECT_EQ(longest(), 12u);

  // A clear between the two stores resets the count.
  world_.Store(p1, {Name(73)}, Name(72), {kC}, Options());
  world_.Apply(p1, Cleared{});
  world_.Store(p1, {Name(71), Name(72), Name(73)}, std::nullopt, {kA, kB, kC}, Options());
  world_.Remove(p1, {Name(73)});
  EXPECT_EQ(longest(), 8u);
}

TEST_P(FieldCaseTest, Bl30AnUnknownNameDoesNotStopTheRemoval) {
  const StreamId p1 = world_.Register("p1");
  world_.Store(p1, {Name(81), Name(82), Name(83)}, std::nullopt, {kA, kB, kC}, Options());
  world_.Remove(p1, {Name(81), Name(999), Name(83)});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 0u);
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 1u);
  EXPECT_EQ(world_.CountersOf(p1).remove_unknown, 1u);
  world_.Store(p1, {Name(81)}, std::nullopt, {kA}, Options());
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 8u);
}

TEST_P(FieldCaseTest, Bl32ChildrenWaitForTheirParent) {
  for (bool computed : {false, true}) {
    World world;
    const StreamId p1 = world.Register("p1");
    StoreOptions late = Options();
    if (!computed) late.check = HashCheck::kNotComputed;
    // With hidden keys `not_computed` below a verified block stays name-only: other cases.
    if (!computed && GetParam().check == HashCheck::kEqual) late.keys_on_wire = true;
    world.Store(p1, {Name(12)}, Name(11), {kB}, late);
    world.Store(p1, {Name(13)}, Name(12), {kC}, late);
    EXPECT_EQ(world.Longest("p1", {kA, kB, kC}), 0u);
    EXPECT_EQ(world.Longest("p1", {kB, kC}), 0u);
    EXPECT_EQ(world.model.OrphanCount(), computed ? 0u : 2u);
    world.Store(p1, {Name(11)}, std::nullopt, {kA}, Options());
    EXPECT_EQ(world.Longest("p1", {kA, kB, kC}), 12u);
    EXPECT_EQ(world.Longest("p1", {kB, kC}), 0u);
    EXPECT_EQ(world.model.OrphanCount(), 0u);
    EXPECT_EQ(world.broken, "");
  }
}

TEST_P(FieldCaseTest, Bl32OrphansAreBounded) {
  World world(/*fragments_max=*/3);
  const StreamId p1 = world.Register("p1");
  StoreOptions orphan = Options();
  orphan.check = HashCheck::kNotComputed;
  for (std::uint64_t i = 0; i < 5; ++i) world.Store(p1, {Name(100 + i)}, Name(i + 1), {kB}, orphan);
  EXPECT_EQ(world.model.FragmentCount(), 3u);
  EXPECT_EQ(world.CountersOf(p1).fragments_rejected, 2u);
  EXPECT_EQ(world.CountersOf(p1).rejected_blocks, 0u);
}

TEST_P(FieldCaseTest, Bl33RanksAreHoldersOfTheirOwn) {
  const StreamId dp0 = world_.Register("i1", 0);
  const StreamId dp1 = world_.Register("i1", 1);
  world_.Store(dp0, {Name(1), Name(2)}, std::nullopt, {kA, kB}, Options());
  world_.Store(dp1, {Name(1), Name(2), Name(3)}, std::nullopt, {kA, kB, kC}, Options());
  const PromptSpec prompt = world_.Prompt({kA, kB, kC});
  EXPECT_EQ(world_.Ask("i1", prompt, 0).device, 8u);
  EXPECT_EQ(world_.Ask("i1", prompt, 1).device, 12u);
  world_.Remove(dp0, {Name(2)});
  EXPECT_EQ(world_.Ask("i1", prompt, 0).device, 4u);
  EXPECT_EQ(world_.Ask("i1", prompt, 1).device, 12u);
  world_.ApplyFact(Unregistered{{"i1", "default", 1}});
  const Hits hits = world_.model.Query(prompt);
  ASSERT_EQ(hits.at("i1").size(), 1u);
  EXPECT_EQ(hits.at("i1").at(0).device, 4u);
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 1u);
}

// Shared names tie name and content, so that these hold for names of a publisher's own only.
class OwnNameTest : public FieldCaseTest {};
INSTANTIATE_TEST_SUITE_P(Indexing, OwnNameTest,
                         ::testing::Values(Indexing{"OwnContent", HashCheck::kDiffers, true},
                                           Indexing{"Unproven", HashCheck::kDiffers, false}),
                         [](const auto& info) { return std::string(info.param.label); });

TEST_P(OwnNameTest, Bl16DigestsOfOwnNamesAreComparedWhole) {
  const StreamId p1 = world_.Register("p1");
  const BlockName first = DigestName(42, 0), second = DigestName(42, 1);
  world_.Store(p1, {first}, std::nullopt, {kA}, Options());
  world_.Store(p1, {second}, std::nullopt, {kB}, Options());
  world_.Remove(p1, {first});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
  EXPECT_EQ(world_.Longest("p1", {kB}), 4u);
}

TEST_P(OwnNameTest, Bl16NamesOfDifferentPublishersNeverMix) {
  const StreamId p1 = world_.Register("p1");
  const StreamId p2 = world_.Register("p2");
  world_.Store(p1, {Name(7)}, std::nullopt, {kA}, Options());
  world_.Store(p2, {Name(7)}, std::nullopt, {kB}, Options());
  EXPECT_EQ(world_.Longest("p1", {kA}), 4u);
  EXPECT_EQ(world_.Longest("p2", {kA}), 0u);
  EXPECT_EQ(world_.Longest("p2", {kB}), 4u);
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 2u);
}

// --- The three probes ----------------------------------------------------------------------------

std::vector<BlockName> NamesFrom(std::uint64_t first, std::size_t count) {
  std::vector<BlockName> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(Name(first + i));
  return names;
}
std::vector<int> Contents(std::size_t begin, std::size_t count) {
  std::vector<int> contents;
  for (std::size_t i = 0; i < count; ++i) contents.push_back(static_cast<int>(10 + begin + i));
  return contents;
}

TEST_P(FieldCaseTest, ProbeOneDifferingBlockInTheMiddleOf256) {
  const StreamId p1 = world_.Register("p1");
  std::vector<int> contents = Contents(0, 256);
  world_.Store(p1, NamesFrom(5000, 256), std::nullopt, contents, Options());
  EXPECT_EQ(world_.Longest("p1", contents), 1024u);
  contents[128] = kA;
  EXPECT_EQ(world_.Longest("p1", contents), 512u);
}

TEST_P(FieldCaseTest, ProbeBlocksWithoutTheFirstOneAreNoPrefix) {
  const StreamId a = world_.Register("a");
  const StreamId b = world_.Register("b");
  world_.Store(a, NamesFrom(5000, 11), std::nullopt, Contents(0, 11), Options());
  world_.Store(b, NamesFrom(5001, 128), Name(5000), Contents(1, 128), Options());
  EXPECT_EQ(world_.Longest("a", Contents(0, 129)), 44u);
  EXPECT_EQ(world_.Longest("b", Contents(0, 129)), 0u);
}

TEST_P(FieldCaseTest, ProbeFirstBlockEvictedAndStoredAgain) {
  const StreamId p1 = world_.Register("p1");
  world_.Store(p1, NamesFrom(5000, 128), std::nullopt, Contents(0, 128), Options());
  world_.Remove(p1, {Name(5000)});
  EXPECT_EQ(world_.Longest("p1", Contents(0, 128)), 0u);
  world_.Store(p1, {Name(5000)}, std::nullopt, Contents(0, 1), Options());
  EXPECT_EQ(world_.Longest("p1", Contents(0, 128)), 512u);
  // Its name is free meanwhile: another content may take it, and the children follow the name.
  world_.Remove(p1, {Name(5000)});
  world_.Store(p1, {Name(5000)}, std::nullopt, {kA}, Options());
  EXPECT_EQ(world_.CountersOf(p1).rejected_blocks, 0u);
  EXPECT_EQ(world_.Longest("p1", Contents(0, 128)), 0u);
}

}  // namespace
}  // namespace conductor::model
