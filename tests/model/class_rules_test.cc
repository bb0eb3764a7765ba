// The classes of blocks and what moves between them, one rule a test, computed by hand.
#include <gtest/gtest.h>

#include "tests/model/world.h"

namespace conductor::model {
namespace {

using Check = HashCheck;

StoreOptions Wire(Check check) {
  return {.check = check, .keys_on_wire = true, .tier = Tier::kDevice, .lora_name = {}, .salt = {}};
}
StoreOptions Hidden(Check check) {
  return {
      .check = check, .keys_on_wire = false, .tier = Tier::kDevice, .lora_name = {}, .salt = {}};
}

class ClassRulesTest : public ::testing::Test {
 protected:
  ClassRulesTest() : p1_(world_.Register("p1")), p2_(world_.Register("p2")) {}
  void TearDown() override { EXPECT_EQ(world_.broken, ""); }

  const std::map<EntryKey, Entry>& Entries() {
    return world_.model.contexts().at(world_.Key()).entries;
  }
  bool Has(StreamId scope, std::uint64_t name) { return Entries().contains({scope, Name(name)}); }
  BlockClass ClassOf(StreamId scope, std::uint64_t name) {
    return Entries().at({scope, Name(name)}).block_class;
  }

  World world_;
  StreamId p1_, p2_;
};

TEST_F(ClassRulesTest, VerifiedBlocksAreSharedByAllPublishers) {
  world_.Store(p1_, {Name(1), Name(2)}, std::nullopt, {kA, kB}, Wire(Check::kEqual));
  world_.Store(p2_, {DigestName(1, 7)}, std::nullopt, {kA}, Wire(Check::kEqual));
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 2u);
  EXPECT_EQ(world_.Longest("p1", {kA, kB}), 8u);
  EXPECT_EQ(world_.Longest("p2", {kA, kB}), 4u);
}

TEST_F(ClassRulesTest, NotComputedBelowSharedNeedsTheKeysOnTheWire) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kEqual));
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Wire(Check::kNotComputed));
  world_.Store(p1_, {Name(3)}, Name(1), {kC}, Hidden(Check::kNotComputed));
  world_.Store(p1_, {Name(4)}, Name(3), {kD}, Wire(Check::kNotComputed));
  EXPECT_EQ(ClassOf(0, 2), BlockClass::kShared);
  EXPECT_EQ(ClassOf(p1_, 3), BlockClass::kNameOnly);
  EXPECT_EQ(ClassOf(p1_, 4), BlockClass::kNameOnly);
  // Equal placeholders must not match by content, the exact chain does.
  EXPECT_EQ(world_.Longest("p1", {kA, kC}), 4u);
  EXPECT_EQ(world_.Longest("p1", {kA, kC}, {1, 3}), 8u);
  EXPECT_EQ(world_.Longest("p1", {kA, kC, kD}, {1, 3, 4}), 12u);
}

TEST_F(ClassRulesTest, NotComputedBelowOwnContentIsOwnContent) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kDiffers));
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Hidden(Check::kNotComputed));
  EXPECT_EQ(ClassOf(p1_, 2), BlockClass::kOwn);
  EXPECT_EQ(world_.Longest("p1", {kA, kB}), 8u);
  EXPECT_EQ(world_.Longest("p2", {kA, kB}), 0u);
}

TEST_F(ClassRulesTest, TheFirstVerifiedBlockForgetsWhatWasUnproven) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Hidden(Check::kDiffers));
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Hidden(Check::kNotComputed));
  EXPECT_EQ(world_.Longest("p1", {kA, kB}), 8u);
  world_.Store(p1_, {Name(3)}, std::nullopt, {kC}, Hidden(Check::kEqual));
  EXPECT_EQ(world_.Longest("p1", {kA, kB}), 0u);
  EXPECT_EQ(world_.Longest("p1", {kC}), 4u);
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 1u);
  world_.Remove(p1_, {Name(1), Name(2)});
  EXPECT_EQ(world_.CountersOf(p1_).remove_unknown, 2u);
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Hidden(Check::kDiffers));
  EXPECT_EQ(ClassOf(p1_, 1), BlockClass::kNameOnly);
  // A new life may be content again.
  world_.ApplyFact(NewEpoch{p1_, UnverifiedBlocks::kContent});
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 0u);
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Hidden(Check::kDiffers));
  EXPECT_EQ(ClassOf(p1_, 1), BlockClass::kOwnUnproven);
}

TEST_F(ClassRulesTest, AnUnprovenBlockIsForgottenWithTheCopiesItHadBefore) {
  world_.StoreNames(p1_, {Name(1)}, Tier::kCpuLocal);
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Hidden(Check::kDiffers));
  world_.StoreNames(p1_, {Name(1)}, Tier::kDisk);
  EXPECT_EQ(ClassOf(p1_, 1), BlockClass::kOwnUnproven);
  world_.Store(p1_, {Name(3)}, std::nullopt, {kC}, Hidden(Check::kEqual));
  EXPECT_FALSE(Has(p1_, 1));
  EXPECT_EQ(world_.Ask("p1", world_.Prompt({kA}, {1})), (TierCounts{0, 0, 0, 0}));
}

TEST_F(ClassRulesTest, ANameOnlyBlockIsSharedWhenItsParentsSharedNameArrives) {
  world_.StoreNames(p1_, {Name(1)});
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Wire(Check::kNotComputed));
  world_.Remove(p1_, {Name(1)});
  world_.Store(p1_, {Name(1)}, std::nullopt, {kC}, Wire(Check::kDiffers));
  EXPECT_EQ(ClassOf(p1_, 2), BlockClass::kNameOnly);
  world_.Store(p2_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kEqual));
  EXPECT_EQ(ClassOf(0, 2), BlockClass::kShared);
}

TEST_F(ClassRulesTest, TheExactChainEndsWithTheFirstNameThatDoesNotMatch) {
  world_.Store(p1_, {Name(11), Name(12)}, std::nullopt, {kA, kB}, Wire(Check::kDiffers));
  world_.StoreNames(p1_, {Name(2), Name(3)});
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}, {99, 2, 3}), 8u);
  EXPECT_EQ(world_.Longest("p1", {kD, kB, kC}, {99, 2, 3}), 0u);
}

TEST_F(ClassRulesTest, TheStrictModeIsNameOnlyFromTheStart) {
  const StreamId strict =
      world_.Register("strict", 0, PublisherType::kVllm, UnverifiedBlocks::kNameOnly);
  world_.Store(strict, {Name(1)}, std::nullopt, {kA}, Hidden(Check::kDiffers));
  world_.Store(strict, {Name(2)}, std::nullopt, {kB}, Wire(Check::kDiffers));
  EXPECT_EQ(ClassOf(strict, 1), BlockClass::kNameOnly);
  EXPECT_EQ(ClassOf(strict, 2), BlockClass::kOwn);
}

TEST_F(ClassRulesTest, OrphansTakeTheirClassRecursively) {
  world_.Store(p1_, {Name(3)}, Name(2), {kC}, Wire(Check::kNotComputed));
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Wire(Check::kNotComputed));
  EXPECT_EQ(world_.model.OrphanCount(), 2u);
  world_.Store(p2_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kEqual));
  EXPECT_EQ(ClassOf(0, 2), BlockClass::kShared);
  EXPECT_EQ(ClassOf(0, 3), BlockClass::kShared);
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 0u);
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kEqual));
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 12u);
}

TEST_F(ClassRulesTest, OrphansBelowAnUnprovenParentAreForgottenWithIt) {
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Hidden(Check::kNotComputed));
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Hidden(Check::kDiffers));
  EXPECT_EQ(ClassOf(p1_, 2), BlockClass::kOwnUnproven);
  world_.Store(p1_, {Name(9)}, std::nullopt, {kC}, Hidden(Check::kEqual));
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 1u);
}

TEST_F(ClassRulesTest, AnOrphanOfAnotherStreamIsNoParent) {
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Wire(Check::kNotComputed));
  world_.Store(p2_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kDiffers));
  EXPECT_EQ(ClassOf(p1_, 2), BlockClass::kOrphan);
}

TEST_F(ClassRulesTest, FragmentsJoinTheSharedBlockInEitherOrder) {
  world_.StoreNames(p1_, {Name(1)});
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Wire(Check::kNotComputed));
  EXPECT_EQ(ClassOf(p1_, 2), BlockClass::kNameOnly);
  world_.Store(p2_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kEqual));
  EXPECT_FALSE(Has(p1_, 1));
  EXPECT_EQ(ClassOf(0, 2), BlockClass::kShared);
  EXPECT_EQ(world_.Longest("p1", {kA, kB}), 8u);
  world_.StoreNames(p1_, {Name(1)});
  EXPECT_EQ(Entries().at({0, Name(1)}).copies.at({p1_, Tier::kDevice, false}), 2u);
  EXPECT_EQ(world_.model.FragmentCount(), 0u);
}

TEST_F(ClassRulesTest, AContradictingFragmentLosesItsHolders) {
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Hidden(Check::kNotComputed));
  world_.Store(p2_, {Name(2)}, std::nullopt, {kC}, Wire(Check::kEqual));
  EXPECT_FALSE(Has(p1_, 2));
  EXPECT_EQ(world_.CountersOf(p1_).rejected_blocks, 1u);
  EXPECT_EQ(world_.Longest("p1", {kC}), 0u);
  EXPECT_EQ(world_.Longest("p2", {kC}), 4u);
  // Arriving while the shared block lives, it is rejected with the rest of its event.
  world_.Store(p1_, {Name(2), Name(3)}, Name(1), {kB, kC}, Hidden(Check::kNotComputed));
  EXPECT_EQ(world_.CountersOf(p1_).rejected_blocks, 3u);
}

TEST_F(ClassRulesTest, AHiddenSaltDoesNotStopAJoin) {
  StoreOptions salted = Wire(Check::kEqual);
  salted.salt = SaltDigest{1};
  world_.Store(p2_, {Name(5)}, std::nullopt, {kB}, Hidden(Check::kEqual));
  world_.Store(p2_, {Name(1)}, std::nullopt, {kA}, Hidden(Check::kDiffers));
  EXPECT_EQ(ClassOf(p2_, 1), BlockClass::kNameOnly);
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, salted);
  PromptSpec prompt = world_.Prompt({kA});
  EXPECT_EQ(world_.Ask("p2", prompt).disk, 0u);
  prompt.salt = SaltDigest{1};
  EXPECT_EQ(world_.Ask("p2", prompt).disk, 4u);
}

TEST_F(ClassRulesTest, ANameStoredAgainWithOtherContentIsRejectedFromThereOn) {
  world_.Store(p1_, {Name(1), Name(2)}, std::nullopt, {kA, kB}, Wire(Check::kDiffers));
  world_.Store(p1_, {Name(1), Name(2), Name(3)}, std::nullopt, {kA, kC, kD}, Wire(Check::kDiffers));
  EXPECT_EQ(world_.CountersOf(p1_).rejected_blocks, 2u);
  EXPECT_EQ(Entries().at({p1_, Name(1)}).copies.at({p1_, Tier::kDevice, false}), 2u);
  EXPECT_FALSE(Has(p1_, 3));
  world_.Store(p1_, {Name(2)}, std::nullopt, {kB}, Wire(Check::kDiffers));  // another parent
  StoreOptions salted = Wire(Check::kDiffers);
  salted.salt = SaltDigest{1};
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, salted);  // another root
  EXPECT_EQ(world_.CountersOf(p1_).rejected_blocks, 4u);
}

TEST_F(ClassRulesTest, ATokenLessBlockLearnsItsLink) {
  world_.StoreNames(p1_, {Name(1)});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kDiffers));
  EXPECT_EQ(world_.Longest("p1", {kA}), 4u);
  EXPECT_EQ(world_.model.FragmentCount(), 0u);
  world_.Store(p1_, {Name(1)}, std::nullopt, {kB}, Wire(Check::kDiffers));
  EXPECT_EQ(world_.CountersOf(p1_).rejected_blocks, 1u);
}

TEST_F(ClassRulesTest, WaitingOrphansOfACycleAreDroppedAndOthersStay) {
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Wire(Check::kNotComputed));
  world_.Store(p1_, {Name(3)}, Name(2), {kC}, Wire(Check::kNotComputed));
  world_.Store(p1_, {Name(4)}, Name(2), {kD}, Wire(Check::kNotComputed));  // beside the cycle
  world_.Store(p1_, {Name(1), Name(5)}, Name(3), {kA, kA}, Wire(Check::kNotComputed));
  EXPECT_EQ(world_.CountersOf(p1_).rejected_blocks, 4u);
  EXPECT_EQ(Entries().size(), 1u);
  EXPECT_EQ(ClassOf(p1_, 4), BlockClass::kOrphan);
}

TEST_F(ClassRulesTest, AnOrphanThatWouldCloseASharedCycleIsDropped) {
  world_.Store(p1_, {Name(8)}, Name(9), {kB}, Wire(Check::kNotComputed));
  world_.Store(p2_, {Name(9)}, Name(8), {kC}, Wire(Check::kEqual));
  EXPECT_EQ(Entries().size(), 1u);
  EXPECT_EQ(world_.CountersOf(p1_).rejected_blocks, 1u);
  EXPECT_EQ(world_.CountersOf(p2_).rejected_blocks, 0u);
}

TEST_F(ClassRulesTest, RemovalsLookInTheOwnScopeFirst) {
  world_.Store(p2_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kEqual));
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kEqual));
  world_.Store(p1_, {Name(1)}, std::nullopt, {kB}, Wire(Check::kDiffers));
  world_.Remove(p1_, {Name(1)});
  EXPECT_FALSE(Has(p1_, 1));
  EXPECT_EQ(world_.Longest("p1", {kA}), 4u);
  world_.Remove(p1_, {Name(1)});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
  EXPECT_EQ(world_.Longest("p2", {kA}), 4u);
  world_.Remove(p1_, {Name(1)});
  EXPECT_EQ(world_.CountersOf(p1_).remove_unknown, 1u);
}

TEST_F(ClassRulesTest, OneStreamMaySpellANameBothWays) {
  world_.Store(p1_, {DigestName(1, 1)}, std::nullopt, {kA}, Wire(Check::kDiffers));
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Wire(Check::kNotComputed));
  EXPECT_EQ(world_.Longest("p1", {kA, kB}), 8u);
  world_.Remove(p1_, {Name(1)});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
}

TEST_F(ClassRulesTest, TheWalkReturnsToContentBelowAMatchedName) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Wire(Check::kEqual));
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Hidden(Check::kDiffers));  // name-only: verified life
  world_.Store(p1_, {Name(3)}, Name(2), {kC}, Wire(Check::kDiffers));    // own content below it
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 4u);
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}, {1, 2}), 12u);
  EXPECT_EQ(world_.Longest("p1", {kD, kB, kC}, {99, 2}), 0u);  // it never jumps
}

}  // namespace
}  // namespace conductor::model
