// A publisher's own snapshot: names in place of what the log said of its device.
#include <gtest/gtest.h>

#include "src/hex.h"
#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

class PublisherSnapshotTest : public ::testing::Test {
 protected:
  PublisherSnapshotTest() {
    world_.profile = model::RealNames::Profile(HashStrategy::kSglang, "0");
    stream_ = world_.Register("s1", 0, PublisherType::kSglang);
    names_ = ExactNames({kA, kB, kC, kD});
  }
  void TearDown() override {
    const Sum128 before = world_.state->Digest();
    EXPECT_EQ(Hex128(before), Hex128(world_.DigestOfReplay()));
    world_.CleanUp();
    EXPECT_EQ(Hex128(world_.state->Digest()), Hex128(before));
  }

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
  // A chain of `names` that goes on at `resume`.
  PublisherSnapshot Snapshot(const std::vector<BlockName>& names, std::uint64_t resume) const {
    PublisherSnapshot snapshot{stream_, resume, "a1", {}};
    std::optional<BlockName> parent;
    for (const BlockName& name : names) {
      snapshot.links.emplace_back(parent, name);
      parent = name;
    }
    return snapshot;
  }
  std::uint64_t DeviceBlocks() const {
    return world_.state->index().BlocksOf(stream_, Tier::kDevice);
  }
  const StreamFacts& Facts() const { return world_.Facts(stream_); }

  StateWorld world_;
  StreamId stream_ = 0;
  std::vector<BlockName> names_;
};

TEST_F(PublisherSnapshotTest, NamesAloneAreFoundByTheirChain) {
  world_.Apply(Snapshot(names_, 7));
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC, kD}), 16u);
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kD, kD}), 8u);
  EXPECT_EQ(world_.state->index().fragments(), 4u);
  EXPECT_EQ(world_.PrefixCount(), 4u);
}

TEST_F(PublisherSnapshotTest, ReplacesWhatTheLogSaid) {
  StoreExact(stream_, {kA, kB, kC});
  StoreExact(stream_, {kD});
  world_.Apply(Snapshot({names_[0], names_[1], names_[2], names_[3]}, 7));
  EXPECT_EQ(DeviceBlocks(), 4u);  // Without the lone kD.
  EXPECT_EQ(world_.Longest("s1", {kD}), 0u);
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC, kD}), 16u);
  world_.Apply(Snapshot({names_[0]}, 9));
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC, kD}), 4u);
  EXPECT_EQ(DeviceBlocks(), 1u);
}

// Content that is known is kept: only what the snapshot adds is a fragment.
TEST_F(PublisherSnapshotTest, KnownBlocksKeepTheirPlace) {
  StoreExact(stream_, {kA, kB});
  world_.Apply(Snapshot(names_, 7));
  EXPECT_EQ(world_.state->index().fragments(), 2u);
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC, kD}), 16u);
}

TEST_F(PublisherSnapshotTest, BlocksOfOthersAreJoined) {
  const StreamId other = world_.Register("s2", 0, PublisherType::kSglang);
  StoreExact(other, {kA, kB, kC, kD});
  world_.Apply(Snapshot(names_, 7));
  EXPECT_EQ(world_.state->index().fragments(), 0u);
  EXPECT_EQ(world_.PrefixCount(), 4u);
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC, kD}), 16u);
  world_.Apply(Snapshot({}, 8));
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC, kD}), 0u);
  EXPECT_EQ(world_.Longest("s2", {kA, kB, kC, kD}), 16u);
}

TEST_F(PublisherSnapshotTest, AWrongProfileKeepsItsHitsToo) {
  const std::vector<BlockName> own = NamesFrom(501, 3);
  world_.Store(stream_, own, std::nullopt, {kA, kB, kC}, {HashCheck::kDiffers, true});
  world_.Apply(Snapshot({own[0], own[1]}, 7));
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC}), 8u);
  EXPECT_EQ(world_.state->index().fragments(), 0u);
}

TEST_F(PublisherSnapshotTest, ANewLifeKeepsNothing) {
  const std::vector<BlockName> own = NamesFrom(501, 2);
  world_.Store(stream_, own, std::nullopt, {kA, kB}, {HashCheck::kDiffers, true});
  world_.Apply(NewEpoch{stream_, UnverifiedBlocks::kContent});
  world_.Apply(Snapshot(own, 3));
  EXPECT_EQ(DeviceBlocks(), 2u);
  EXPECT_EQ(world_.Longest("s1", {kA, kB}), 0u);  // Names without content, and no chain of ours.
}

TEST_F(PublisherSnapshotTest, OtherTiersStay) {
  world_.Store(stream_, names_, std::nullopt, {kA, kB, kC, kD},
               {HashCheck::kEqual, true, Tier::kCpuLocal});
  StoreExact(stream_, {kA, kB});
  world_.Apply(Snapshot({names_[0]}, 7));
  const TierCounts hits = world_.Ask("s1", {kA, kB, kC, kD});
  EXPECT_EQ(hits.device, 4u);
  EXPECT_EQ(hits.cpu_local, 16u);
}

// However often the snapshot or the log before it said so: one removal ends it.
TEST_F(PublisherSnapshotTest, EachNameCountsOnce) {
  StoreExact(stream_, {kA});
  StoreExact(stream_, {kA});
  PublisherSnapshot snapshot = Snapshot({names_[0]}, 7);
  snapshot.links.push_back(snapshot.links[0]);
  world_.Apply(snapshot);
  world_.Remove(stream_, {names_[0]});
  EXPECT_EQ(DeviceBlocks(), 0u);
  EXPECT_EQ(Facts().remove_unknown, 0u);
}

TEST_F(PublisherSnapshotTest, EventsGoOnFromIt) {
  world_.Apply(Snapshot({names_[0], names_[1]}, 7));
  // The publisher's next blocks; their digests could not be computed below a mere name.
  world_.Store(stream_, {names_[2], names_[3]}, names_[1], {kC, kD},
               {HashCheck::kNotComputed, true, Tier::kDevice});
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC, kD}), 16u);
  world_.Remove(stream_, {names_[1]});
  EXPECT_EQ(world_.Longest("s1", {kA, kB, kC, kD}), 4u);
}

TEST_F(PublisherSnapshotTest, LossesEndAndTheCursorMoves) {
  world_.Apply(HistoryStart{stream_, 3});
  world_.Apply(Lost{stream_, 4, 6});
  world_.Apply(Snapshot(names_, 21));
  EXPECT_EQ(Facts().cursor, 20u);
  EXPECT_TRUE(Facts().lost.empty());
  EXPECT_FALSE(Facts().history_from);
  EXPECT_EQ(Facts().publisher_epoch, "a1");
  EXPECT_EQ(Facts().Seed().publisher_epoch, "a1");
  EXPECT_EQ(Facts().snapshots, 1u);
  EXPECT_EQ(Facts().numbers_lost, 3u);  // That it happened is still told.
  world_.Apply(Snapshot({}, 0));
  EXPECT_FALSE(Facts().cursor);
  world_.Apply(NewEpoch{stream_, UnverifiedBlocks::kContent});
  EXPECT_EQ(Facts().publisher_epoch, "");
}

TEST_F(PublisherSnapshotTest, OfAStreamThatIsGoneItIsNothing) {
  world_.Unregister("s1");
  const Sum128 before = world_.state->Digest();
  world_.Apply(Snapshot(names_, 7));
  EXPECT_EQ(Hex128(world_.state->Digest()), Hex128(before));
}

}  // namespace
}  // namespace conductor
