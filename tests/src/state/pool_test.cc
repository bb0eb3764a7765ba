// Pools: objects belong to names, and count for every instance of the context.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/hex.h"
#include "src/limits.h"
#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PoolTest : public ::testing::Test {
 protected:
  void TearDown() override {
    const Sum128 before = world_.state->Digest();
    EXPECT_EQ(Hex128(before), Hex128(world_.DigestOfReplay()));
    world_.CleanUp();
    EXPECT_EQ(Hex128(world_.state->Digest()), Hex128(before));
  }

  StreamId Pool(PoolParts parts = {}) {
    return world_.Register("pool", 0, PublisherType::kMooncake, std::move(parts));
  }
  static StoreObject Object(const BlockName& name, const std::string& part = "",
                            Tier tier = Tier::kCpuShare) {
    StoreObject object;
    object.tier = tier;
    object.backend_id = "b1";
    object.tenant_id = "default";
    object.model_name = "m";
    object.block_size = kTestBlockSize;
    object.name = name;
    object.part = part;
    return object;
  }
  static GoneObject Gone(const StoreObject& object) { return {object}; }
  // The names a right engine publishes for the contents.
  std::vector<BlockName> ExactNames(const std::vector<int>& contents) const {
    const BlockHasher hasher(world_.profile);
    std::vector<BlockName> names;
    const auto digests = hasher.HashPrompt(TokensOf(contents), kTestBlockSize, "", "");
    for (const Digest& digest : *digests) names.push_back(Name(hasher.Project(digest)));
    return names;
  }
  void StoreExact(StreamId stream, const std::vector<int>& contents) {
    world_.Store(stream, ExactNames(contents), std::nullopt, contents,
                 {HashCheck::kEqual, true, Tier::kDevice});
  }

  StateWorld world_;
};

TEST_F(PoolTest, ObjectsCountForEveryInstanceBehindItsOwnTiers) {
  const StreamId a = world_.Register("a");
  world_.Register("b");
  const StreamId pool = Pool();
  const std::vector<BlockName> names = ExactNames({kA, kB, kC});
  StoreExact(a, {kA});
  for (const BlockName& name : names) world_.Apply(pool, Object(name));
  world_.Apply(pool, Object(names[0], "", Tier::kDisk));
  EXPECT_EQ(world_.Ask("a", {kA, kB, kC}), (TierCounts{4, 4, 12, 12}));
  EXPECT_EQ(world_.Ask("b", {kA, kB, kC}), (TierCounts{0, 0, 12, 12}));
  EXPECT_EQ(world_.Answer({kA}).instances.size(), 2u) << "a pool is no row";
  EXPECT_EQ(world_.PrefixCount(), 3u);
}

TEST_F(PoolTest, ObjectsBeforeAnyEngineCountAsSoonAsThereIsOne) {
  const StreamId pool = Pool();
  for (const BlockName& name : ExactNames({kA, kB})) world_.Apply(pool, Object(name));
  EXPECT_EQ(world_.state->index().fragments(), 2u);
  EXPECT_THAT(world_.Answer({kA, kB}).instances, IsEmpty());
  world_.Register("a");
  EXPECT_EQ(world_.Longest("a", {kA, kB}), 8u);
}

TEST_F(PoolTest, TheFirstEngineSaysHowItsContextIsHashed) {
  const StreamId pool = Pool();  // seed 0
  world_.Apply(pool, Object(Name(1)));
  world_.profile = model::RealNames::Profile(HashStrategy::kVllmV1, "7");
  world_.Register("a");
  for (const BlockName& name : ExactNames({kA})) world_.Apply(pool, Object(name));
  EXPECT_EQ(world_.Longest("a", {kA}), 4u);
  Registration other = world_.Facts(pool + 1).registration;
  other.instance_id = "b";
  other.endpoint = "tcp://other:1";
  other.hash_profile = model::RealNames::Profile(HashStrategy::kVllmV1, "0");
  EXPECT_FALSE(world_.state->CheckRegister(other)) << "the engine's profile binds";
}

TEST_F(PoolTest, ABlockOutlivesItsEngineInThePool) {
  const StreamId a = world_.Register("a");
  world_.Register("b");
  const StreamId pool = Pool();
  const std::vector<BlockName> names = ExactNames({kA, kB});
  StoreExact(a, {kA, kB});
  for (const BlockName& name : names) world_.Apply(pool, Object(name));
  EXPECT_EQ(world_.state->index().fragments(), 0u);
  world_.Apply(a, Cleared{});
  EXPECT_EQ(world_.Ask("b", {kA, kB}), (TierCounts{0, 0, 8, 8}));
  EXPECT_EQ(world_.PrefixCount(), 2u);
  EXPECT_EQ(world_.state->index().fragments(), 2u);
  // To engines the name is free: another content may take it.
  world_.Store(a, {names[0]}, std::nullopt, {kC}, {HashCheck::kDiffers, true, Tier::kDevice});
  EXPECT_EQ(world_.Facts(a).blocks_rejected, 0u);
}

TEST_F(PoolTest, OrderOfArrivalDoesNotMatter) {
  const std::vector<BlockName> names = ExactNames({kA, kB});
  std::vector<std::string> digests;
  for (const bool pool_first : {false, true}) {
    StateWorld world;
    const StreamId a = world.Register("a");
    const StreamId pool = world.Register("pool", 0, PublisherType::kMooncake);
    for (int step = 0; step < 2; ++step) {
      if ((step == 0) == pool_first) {
        for (const BlockName& name : names) world.Apply(pool, Object(name));
      } else {
        world.Store(a, names, std::nullopt, {kA, kB}, {HashCheck::kEqual, true, Tier::kDevice});
        world.Remove(a, {names[1]});
      }
    }
    // The frames' numbers and order are facts too; only the holders are compared.
    digests.push_back(Hex128(world.state->index().HoldersDigest([](StreamId id) { return id; })));
    EXPECT_EQ(world.Ask("a", {kA, kB}), (TierCounts{4, 4, 8, 8}));
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_F(PoolTest, OnePartIsEnough) {
  world_.Register("a");
  const StreamId pool = Pool();
  const BlockName name = ExactNames({kA})[0];
  world_.Apply(pool, Object(name, "tp=0@kv=k|"));
  world_.Apply(pool, Object(name, "tp=0@kv=v|"));
  world_.Apply(pool, Object(name, "tp=0@kv=v|"));
  world_.Apply(pool, Gone(Object(name, "tp=0@kv=k|")));
  EXPECT_EQ(world_.Longest("a", {kA}), 4u);
  world_.Apply(pool, Gone(Object(name, "tp=0@kv=v|")));
  EXPECT_EQ(world_.Longest("a", {kA}), 0u) << "announced twice, it is still one part";
  world_.Apply(pool, Gone(Object(name, "tp=0@kv=v|")));
  EXPECT_EQ(world_.Facts(pool).remove_unknown, 1u);
  EXPECT_EQ(world_.PrefixCount(), 0u);
}

TEST_F(PoolTest, TotalsDemandAllParts) {
  world_.Register("a");
  const StreamId pool = Pool({{"tp", 2}, {"kv", 2}, {"layers", 0}});
  const BlockName name = ExactNames({kA})[0];
  for (const char* part : {"tp=0@kv=k|", "tp=0@kv=v|", "tp=1@kv=k|"})
    world_.Apply(pool, Object(name, part));
  EXPECT_EQ(world_.Longest("a", {kA}), 0u);
  EXPECT_EQ(world_.PrefixCount(), 0u);
  const Sum128 incomplete = world_.state->Digest();
  world_.Apply(pool, Object(name, "tp=1@kv=v|"));
  EXPECT_EQ(world_.Longest("a", {kA}), 4u);
  EXPECT_EQ(world_.PrefixCount(), 1u);
  EXPECT_NE(Hex128(world_.state->Digest()), Hex128(incomplete));
  world_.Apply(pool, Gone(Object(name, "tp=0@kv=k|")));
  EXPECT_EQ(world_.Longest("a", {kA}), 0u);
  EXPECT_EQ(world_.Facts(pool).remove_unknown, 0u);
}

TEST_F(PoolTest, TotalsCountWhatTheyTellApart) {
  world_.Register("a");
  const StreamId pool = Pool({{"tp", 2}, {"layers", 0}});
  const BlockName name = ExactNames({kA})[0];
  for (const char* part :
       {"tp=0@layers=0|", "tp=0@layers=1|", "tp=2@layers=0|", "layers=0|", "|"}) {
    world_.Apply(pool, Object(name, part));
  }
  EXPECT_EQ(world_.Longest("a", {kA}), 0u) << "rank 0 alone, however many layers; rank 2 is none";
  world_.Apply(pool, Object(name, "tp=1@layers=7|"));
  EXPECT_EQ(world_.Longest("a", {kA}), 4u);
  world_.Apply(pool, Gone(Object(name, "tp=0@layers=0|")));
  EXPECT_EQ(world_.Longest("a", {kA}), 4u);
  world_.Apply(pool, Gone(Object(name, "tp=0@layers=1|")));
  EXPECT_EQ(world_.Longest("a", {kA}), 0u);
}

TEST_F(PoolTest, AClearConcernsOneBackendAndTenant) {
  world_.Register("a");
  const StreamId pool = Pool();
  const std::vector<BlockName> names = ExactNames({kA, kB});
  StoreObject other_backend = Object(names[0], "", Tier::kDisk);
  other_backend.backend_id = "b2";
  world_.Apply(pool, other_backend);
  world_.Apply(pool, Object(names[0]));
  world_.Apply(pool, Object(names[1], "", Tier::kDisk));
  world_.Apply(pool, PoolCleared{"b1", "other"});
  EXPECT_EQ(world_.Ask("a", {kA, kB}), (TierCounts{0, 0, 4, 8}));
  world_.Apply(pool, PoolCleared{"b1", "default"});
  EXPECT_EQ(world_.Ask("a", {kA, kB}), (TierCounts{0, 0, 0, 4})) << "every medium of it";
  EXPECT_EQ(world_.Facts(pool).clears, 2u);
}

TEST_F(PoolTest, AClearThatLeavesNothingEndsTheLoss) {
  world_.Register("a");
  const StreamId pool = Pool();
  world_.Apply(pool, Object(ExactNames({kA})[0]));
  world_.Apply(Lost{pool, 100, 102});
  world_.Apply(pool, PoolCleared{"b2", "default"});
  EXPECT_EQ(world_.Facts(pool).lost.size(), 1u);
  world_.Apply(pool, PoolCleared{"b1", "default"});
  EXPECT_THAT(world_.Facts(pool).lost, IsEmpty());
}

TEST_F(PoolTest, ANameIsTheOwnBlockOfAnEngineWithAWrongProfile) {
  const StreamId a = world_.Register("a");
  world_.Register("b");
  const StreamId pool = Pool();
  world_.Apply(pool, Object(Name(77)));
  world_.Store(a, {Name(77)}, std::nullopt, {kA}, {HashCheck::kDiffers, true, Tier::kDevice});
  EXPECT_EQ(world_.Ask("a", {kA}), (TierCounts{4, 4, 4, 4}));
  EXPECT_EQ(world_.Ask("b", {kA}), (TierCounts{0, 0, 4, 4}));
  world_.Remove(a, {Name(77)});
  EXPECT_EQ(world_.Longest("b", {kA}), 0u) << "nothing says any more what the name means";
}

TEST_F(PoolTest, SaltedSglangObjectsHaveAChainOfTheirOwn) {
  world_.profile = model::RealNames::Profile(HashStrategy::kSglang, "0");
  const StreamId a = world_.Register("a", 0, PublisherType::kSglang);
  const StreamId pool = Pool();
  const BlockHasher hasher(world_.profile);
  const std::vector<std::int32_t> tokens = TokensOf({kA, kB, kC});
  const Digest event_seed = *hasher.SaltSeed("s");
  const Digest object_seed = *SglangStorageSeed(std::nullopt, "s");
  const auto events = *hasher.HashPages(&event_seed, tokens, kTestBlockSize);
  const auto objects = *hasher.HashPages(&object_seed, tokens, kTestBlockSize);
  Stored stored;
  stored.extra_keys_on_wire = true;
  stored.block_length = kTestBlockSize;
  stored.salt = DigestSalt("s");
  stored.blocks = {
      {Name(hasher.Project(events[0])), FingerprintV1(TokensOf({kA}), {}), HashCheck::kEqual}};
  world_.Apply(a, stored);
  for (const Digest& digest : objects) world_.Apply(pool, Object(Name(hasher.Project(digest))));
  const auto hits = world_.Answer({kA, kB, kC}, "s").instances;
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].best, (TierCounts{4, 4, 12, 12}));
  EXPECT_EQ(world_.Longest("a", {kA, kB, kC}), 0u) << "without the salt it is another prompt";
}

// Seed 844 of the comparison with the reference model.
TEST_F(PoolTest, TheChainOfASaltedPromptEndsWhereNobodyHasItsName) {
  world_.profile = model::RealNames::Profile(HashStrategy::kSglang, "0");
  const StreamId a = world_.Register("a", 0, PublisherType::kSglang);
  const StreamId pool = Pool();
  const BlockHasher hasher(world_.profile);
  const Digest seed = *hasher.SaltSeed("s");
  const auto names = *hasher.HashPages(&seed, TokensOf({kA, kB}), kTestBlockSize);
  world_.Apply(pool, Object(Name(1)));  // something is known by name only
  Stored first;
  first.extra_keys_on_wire = true;
  first.block_length = kTestBlockSize;
  first.salt = DigestSalt("s");
  first.blocks = {{Name(4), FingerprintV1(TokensOf({kA}), {}), HashCheck::kDiffers}};
  world_.Apply(a, first);
  Stored second = first;
  second.salt.reset();
  second.parent = Name(hasher.Project(names[0]));
  second.blocks = {
      {Name(hasher.Project(names[1])), FingerprintV1(TokensOf({kB}), {}), HashCheck::kEqual}};
  world_.Apply(a, second);
  const auto hits = world_.Answer({kA, kB}, "s").instances;
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].best.device, 4u) << "block 4 is not the one that the second hangs below";
}

TEST_F(PoolTest, AnAnswerIsDegradedOnlyWhereItRestsOnTheDegradedPoolAlone) {
  const StreamId a = world_.Register("a");
  world_.Register("b");
  const StreamId pool = Pool();
  for (StreamId id = 1; id <= pool; ++id) world_.state->SetStreamState(id, StreamState::kLive);
  const std::vector<BlockName> names = ExactNames({kA, kB});
  StoreExact(a, {kA});
  world_.Apply(pool, Object(names[0]));
  world_.Apply(pool, Object(names[1]));
  EXPECT_THAT(world_.Answer({kA, kB}).degraded, IsEmpty());
  world_.Apply(Lost{pool, 100, 100});
  EXPECT_THAT(world_.Answer({kA}).degraded, ElementsAre("b")) << "a has the block itself";
  EXPECT_THAT(world_.Answer({kA, kB}).degraded, ElementsAre("a", "b"));
  EXPECT_THAT(world_.Answer({kC}).degraded, IsEmpty());
  const StreamId second = world_.Register("pool2", 0, PublisherType::kMooncake);
  world_.state->SetStreamState(second, StreamState::kLive);
  for (const BlockName& name : names) world_.Apply(second, Object(name));
  EXPECT_THAT(world_.Answer({kA, kB}).degraded, IsEmpty()) << "a live pool has them too";
}

TEST_F(PoolTest, PartsOfOneBlockAreBounded) {
  const StreamId pool = Pool();
  for (std::size_t i = 0; i <= kPartsPerBlockMax; ++i) {
    world_.Apply(pool, Object(Name(1), std::to_string(i)));
  }
  EXPECT_EQ(world_.Facts(pool).blocks_stored, kPartsPerBlockMax);
  EXPECT_EQ(world_.Facts(pool).fragments_rejected, 1u);
}

TEST_F(PoolTest, UnregisteringForgetsAllPools) {
  world_.Register("a");
  const StreamId pool = Pool({{"kv", 2}});
  const std::vector<BlockName> names = ExactNames({kA, kB});
  for (const char* part : {"kv=k|", "kv=v|"}) world_.Apply(pool, Object(names[0], part));
  world_.Apply(pool, Object(names[1], "kv=k|"));
  world_.Unregister("pool");
  EXPECT_EQ(world_.Longest("a", {kA, kB}), 0u);
  EXPECT_EQ(world_.state->index().blocks(), 0u);
  world_.CleanUp();
  EXPECT_EQ(world_.state->index().entries_in_memory(), 0u);
}

}  // namespace
}  // namespace conductor
