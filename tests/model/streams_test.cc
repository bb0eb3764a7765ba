// Streams, tiers, pools and contexts, one rule a test, computed by hand.
#include <gtest/gtest.h>

#include "tests/model/world.h"

namespace conductor::model {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

StoreOptions Equal(Tier tier = Tier::kDevice) {
  StoreOptions options;
  options.check = HashCheck::kEqual;
  options.tier = tier;
  return options;
}

class StreamsTest : public ::testing::Test {
 protected:
  StreamsTest() : p1_(world_.Register("p1")), p2_(world_.Register("p2")) {}
  void TearDown() override { EXPECT_EQ(world_.broken, ""); }
  const Stream& Of(StreamId id) { return world_.model.streams().at(id); }

  // A pool object of the context, cpu unless said otherwise.
  StoreObject Object(std::uint64_t name, const std::string& part = "",
                     Tier tier = Tier::kCpuShare) const {
    StoreObject object;
    object.tier = tier;
    object.backend_id = "b1";
    object.tenant_id = "default";
    object.model_name = "m";
    object.block_size = kTestBlockSize;
    object.name = Name(name);
    object.part = part;
    return object;
  }
  static GoneObject Gone(const StoreObject& object) { return {object}; }

  World world_;
  StreamId p1_, p2_;
};

TEST_F(StreamsTest, TheCursorPassesTheTiersInOrderAndNeverGoesBack) {
  const std::vector<BlockName> names{Name(1), Name(2), Name(3), Name(4)};
  const std::vector<int> contents{kA, kB, kC, kD};
  world_.Store(p1_, names, std::nullopt, contents, Equal());
  world_.Remove(p1_, {Name(2), Name(3)});
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, Equal(Tier::kCpuLocal));
  world_.Store(p1_, {Name(3)}, Name(2), {kC}, Equal(Tier::kDisk));
  // Block 4 is on the device, which the cursor has left.
  EXPECT_EQ(world_.Ask("p1", world_.Prompt(contents)), (TierCounts{4, 8, 8, 12}));
  EXPECT_EQ(world_.Ask("p2", world_.Prompt(contents)), (TierCounts{0, 0, 0, 0}));
}

TEST_F(StreamsTest, AnEnginesExternalBlocksCountForEveryone) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal(Tier::kCpuShare));
  EXPECT_EQ(world_.Ask("p2", world_.Prompt({kA})), (TierCounts{0, 0, 4, 4}));
  world_.Apply(p1_, Cleared{/*all_tiers=*/false});
  EXPECT_EQ(world_.Ask("p2", world_.Prompt({kA})).disk, 4u);
  world_.Apply(p1_, Cleared{/*all_tiers=*/true});
  EXPECT_EQ(world_.Ask("p2", world_.Prompt({kA})).disk, 0u);
}

TEST_F(StreamsTest, AnSglangClearTakesEveryTier) {
  const StreamId sglang = world_.Register("s", 0, PublisherType::kSglang);
  world_.Store(sglang, {Name(1)}, std::nullopt, {kA}, Equal(Tier::kCpuLocal));
  world_.Apply(sglang, Cleared{});
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 0u);
}

TEST_F(StreamsTest, AdaptersAreContextsThatComeAndGo) {
  StoreOptions adapter = Equal();
  adapter.lora_name = "ad";
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal());
  world_.Store(p1_, {Name(2), Name(3)}, std::nullopt, {kA, kB}, adapter);
  PromptSpec prompt = world_.Prompt({kA, kB});
  EXPECT_EQ(world_.Ask("p1", prompt).disk, 4u);
  prompt.context = world_.Key("ad");
  EXPECT_EQ(world_.model.Query(prompt).size(), 1u);  // p2 never stored into it
  EXPECT_EQ(world_.Ask("p1", prompt).disk, 8u);
  world_.Remove(p1_, {Name(2), Name(3)});
  EXPECT_FALSE(world_.model.contexts().contains(world_.Key("ad")));
  EXPECT_EQ(world_.CountersOf(p1_).remove_unknown, 0u);
  EXPECT_EQ(world_.Ask("p1", world_.Prompt({kA})).disk, 4u);
}

TEST_F(StreamsTest, SaltsAreRootsOfTheirOwn) {
  StoreOptions salted = Equal();
  salted.salt = SaltDigest{1};
  world_.Store(p1_, {Name(61)}, std::nullopt, {kA}, salted);
  salted.salt = SaltDigest{2};
  world_.Store(p1_, {Name(62)}, std::nullopt, {kA}, salted);
  world_.Remove(p1_, {Name(61)});
  PromptSpec prompt = world_.Prompt({kA});
  EXPECT_EQ(world_.Ask("p1", prompt).disk, 0u);
  prompt.salt = SaltDigest{1};
  EXPECT_EQ(world_.Ask("p1", prompt).disk, 0u);
  prompt.salt = SaltDigest{2};
  EXPECT_EQ(world_.Ask("p1", prompt).disk, 4u);
}

TEST_F(StreamsTest, ANewLifeForgetsEverythingOfTheOldOne) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal(Tier::kDisk));
  world_.ApplyFact(CountingGroup{p1_, 3});
  world_.ApplyFact(HistoryStart{p1_, 7});
  world_.ApplyFact(Lost{p1_, 8, 9});
  EXPECT_TRUE(Of(p1_).ever_verified);
  EXPECT_EQ(Of(p1_).cursor, 9u);
  world_.ApplyFact(NewEpoch{p1_, UnverifiedBlocks::kNameOnly});
  EXPECT_EQ(Of(p1_).epoch, 2u);
  EXPECT_FALSE(Of(p1_).cursor || Of(p1_).history_from || Of(p1_).counting_group);
  EXPECT_TRUE(Of(p1_).lost_ranges.empty() && Of(p1_).recent.empty());
  EXPECT_FALSE(Of(p1_).ever_verified);
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 0u);
}

TEST_F(StreamsTest, AnOperatorsDropForgetsThePlaceALossDoesNot) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal());
  world_.ApplyFact(Lost{p1_, 8, 9});
  world_.ApplyFact(Dropped{p1_, DropReason::kLostEvents});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
  EXPECT_EQ(Of(p1_).cursor, 9u);
  EXPECT_EQ(Of(p1_).lost_ranges, (Ranges{{8, 9}}));
  world_.ApplyFact(Dropped{p1_, DropReason::kOperator});
  EXPECT_FALSE(Of(p1_).cursor);
  EXPECT_TRUE(Of(p1_).lost_ranges.empty());
}

TEST_F(StreamsTest, LostRangesMergeAndEndWithAClearThatLeavesNothing) {
  world_.ApplyFact(Lost{p1_, 3, 4});
  world_.ApplyFact(Lost{p1_, 5, 6});
  world_.ApplyFact(Lost{p1_, 9, 9});
  EXPECT_EQ(Of(p1_).lost_ranges, (Ranges{{3, 6}, {9, 9}}));
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal(Tier::kCpuLocal));
  world_.Apply(p1_, Cleared{});
  EXPECT_FALSE(Of(p1_).lost_ranges.empty());
  world_.Remove(p1_, {Name(1)}, Tier::kCpuLocal);
  world_.Apply(p1_, Cleared{});
  EXPECT_TRUE(Of(p1_).lost_ranges.empty());
  for (std::uint64_t i = 0; i < kLostRangesPerStreamMax + 2; ++i) {
    world_.ApplyFact(Lost{p1_, 100 + 10 * i, 100 + 10 * i});
  }
  EXPECT_EQ(Of(p1_).lost_ranges.size(), kLostRangesPerStreamMax);
  EXPECT_EQ(Of(p1_).lost_ranges.front(), (Ranges::value_type{100, 120}));
}

TEST_F(StreamsTest, RegisteringAgainIsAnotherStream) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal());
  world_.ApplyFact(Unregistered{{"p1", "default", 0}});
  EXPECT_EQ(world_.Register("p1"), 3u);
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
  Frame late;
  late.stream = p1_;
  late.events.push_back(Cleared{});
  world_.ApplyFact(late);  // of a stream that is no more
  EXPECT_EQ(world_.model.streams().size(), 2u);
  for (const char* id : {"p1", "p2"}) world_.ApplyFact(Unregistered{{id, "default", 0}});
  EXPECT_TRUE(world_.model.contexts().empty());
}

TEST_F(StreamsTest, AnEvictionTakesAllCopies) {
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal());
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal());
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, Equal(Tier::kDisk));
  world_.ApplyFact(Evicted{p1_, Tier::kDevice, "", Name(1), "", "", 0});
  EXPECT_EQ(world_.Ask("p1", world_.Prompt({kA})), (TierCounts{0, 0, 0, 4}));
}

TEST_F(StreamsTest, PoolObjectsCountForEveryoneWhileAPartIsThere) {
  const StreamId pool = world_.Register("pool", 0, PublisherType::kMooncake);
  world_.Apply(pool, Object(1, "k"));
  world_.Apply(pool, Object(1, "k"));
  world_.Apply(pool, Object(1, "v"));
  EXPECT_EQ(world_.model.PrefixCount(world_.Key()), 1u);
  const PromptSpec prompt = world_.Prompt({kA}, {1});
  EXPECT_EQ(world_.Ask("p1", prompt), (TierCounts{0, 0, 4, 4}));
  EXPECT_FALSE(world_.model.Query(prompt).contains("pool"));
  world_.Apply(pool, Gone(Object(1, "k")));
  EXPECT_EQ(world_.Ask("p2", prompt).disk, 4u);
  world_.Apply(pool, Gone(Object(1, "v")));
  EXPECT_EQ(world_.Ask("p2", prompt).disk, 0u);
  world_.Apply(pool, Gone(Object(1, "v")));
  EXPECT_EQ(world_.CountersOf(pool).remove_unknown, 1u);
}

TEST_F(StreamsTest, APoolNameIsFoundByWhateverHasItNow) {
  const StreamId pool = world_.Register("pool", 0, PublisherType::kMooncake);
  world_.Apply(pool, Object(2, "", Tier::kDisk));
  StoreOptions own;
  own.check = HashCheck::kDiffers;
  world_.Store(p1_, {Name(1), Name(2)}, std::nullopt, {kA, kB}, own);
  const PromptSpec prompt = world_.Prompt({kA, kB});  // its exact names are others
  world_.Remove(p1_, {Name(2)});
  EXPECT_EQ(world_.Ask("p1", prompt), (TierCounts{4, 4, 4, 4}));
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, own);
  world_.Remove(p1_, {Name(1)});
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, own);
  EXPECT_EQ(world_.Ask("p2", prompt).disk, 0u);  // nobody shares the first block
  world_.Store(p2_, {Name(2)}, std::nullopt, {kC}, Equal());
  EXPECT_EQ(world_.Ask("p1", world_.Prompt({kC})), (TierCounts{0, 0, 0, 4}));  // now it is that one
  world_.Apply(pool, PoolCleared{"b1", "default"});
  EXPECT_EQ(world_.Ask("p1", world_.Prompt({kC})).disk, 0u);
}

TEST_F(StreamsTest, APoolNameOfOwnContentIsWhereThatContentIs) {
  const StreamId pool = world_.Register("pool", 0, PublisherType::kMooncake);
  StoreOptions own;
  own.check = HashCheck::kDiffers;
  own.tier = Tier::kCpuShare;
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, own);
  own.tier = Tier::kDevice;
  world_.Store(p1_, {Name(2)}, Name(1), {kB}, own);
  const PromptSpec prompt = world_.Prompt({kA, kB});
  EXPECT_EQ(world_.Ask("p2", prompt), (TierCounts{0, 0, 4, 4}));
  world_.Apply(pool, Object(2, "", Tier::kDisk));
  EXPECT_EQ(world_.Ask("p2", prompt), (TierCounts{0, 0, 4, 8}));
}

TEST_F(StreamsTest, AnotherPublishersOwnNameIsNoParent) {
  StoreOptions own;
  own.check = HashCheck::kDiffers;
  own.tier = Tier::kCpuShare;  // counts for p2 too
  world_.Store(p1_, {Name(1)}, std::nullopt, {kA}, own);
  own.tier = Tier::kDisk;
  world_.Store(p2_, {Name(2)}, Name(1), {kB}, own);
  EXPECT_EQ(world_.Ask("p2", world_.Prompt({kA, kB})), (TierCounts{0, 0, 4, 4}));
}

TEST_F(StreamsTest, ByHashCountsKnownNamesOfAnyScope) {
  const StreamId pool = world_.Register("pool", 0, PublisherType::kMooncake);
  StoreOptions own;
  own.check = HashCheck::kDiffers;
  world_.Store(p1_, {DigestName(1, 9), Name(2)}, std::nullopt, {kA, kB}, own);
  world_.Apply(pool, Object(3));
  Stored tail;
  tail.block_length = 3;
  tail.extra_keys_on_wire = true;
  tail.parent = Name(2);
  tail.blocks = {{Name(4), 1, HashCheck::kDiffers}};
  world_.Apply(p1_, tail);
  const auto ask = [&](std::vector<std::uint64_t> hashes) {
    return world_.model.QueryByHash({world_.Key(), std::move(hashes)})["p1"][0];
  };
  EXPECT_EQ(ask({1, 2, 3}), (TierCounts{8, 8, 12, 12}));
  EXPECT_EQ(ask({2, 4}), (TierCounts{7, 7, 7, 7}));
  EXPECT_EQ(ask({5, 1}), (TierCounts{0, 0, 0, 0}));
}

TEST_F(StreamsTest, CopiesSaturate) {
  Stored many;
  many.extra_keys_on_wire = true;
  many.block_length = kTestBlockSize;
  many.blocks = {{Name(1), 1000 + kA, HashCheck::kEqual}};
  Frame frame;
  frame.stream = p1_;
  frame.events.assign(kCopiesMax + 10, many);
  world_.ApplyFact(frame);
  world_.Remove(p1_, std::vector<BlockName>(kCopiesMax - 1, Name(1)));
  EXPECT_EQ(world_.Longest("p1", {kA}), 4u);
  world_.Remove(p1_, {Name(1)});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
}

}  // namespace
}  // namespace conductor::model
