// The design's three probes and the field cases of the index, against the real state: once for each
// way in which content is indexed, and at the end the same answers from a replay of the records.
#include <gtest/gtest.h>

#include "src/hex.h"
#include "src/limits.h"
#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

struct Indexing {
  const char* label;
  HashCheck check;
  bool keys_on_wire;
};

class StateProbeTest : public ::testing::TestWithParam<Indexing> {
 protected:
  void TearDown() override {
    EXPECT_EQ(Hex128(world_.state->Digest()), Hex128(world_.DigestOfReplay()));
    const Sum128 before = world_.state->Digest();
    world_.CleanUp();
    EXPECT_EQ(Hex128(world_.state->Digest()), Hex128(before));
  }
  StateWorld::StoreOptions Options(Tier tier = Tier::kDevice) const {
    return {GetParam().check, GetParam().keys_on_wire, tier};
  }
  // As the decoder writes a block whose parent's digest it does not have.
  StateWorld::StoreOptions Orphan() const { return {HashCheck::kNotComputed, true, Tier::kDevice}; }
  StateWorld world_;
};

INSTANTIATE_TEST_SUITE_P(Indexing, StateProbeTest,
                         ::testing::Values(Indexing{"Verified", HashCheck::kEqual, true},
                                           Indexing{"OwnContent", HashCheck::kDiffers, true},
                                           Indexing{"Unproven", HashCheck::kDiffers, false}),
                         [](const auto& info) { return std::string(info.param.label); });

// --- the three probes ----------------------------------------------------------------------------

TEST_P(StateProbeTest, OneDifferingBlockInTheMiddleOf256) {
  const StreamId p1 = world_.Register("p1");
  std::vector<int> contents = ContentsFrom(10, 256);
  world_.Store(p1, NamesFrom(5'000, 256), std::nullopt, contents, Options());
  EXPECT_EQ(world_.Longest("p1", contents), 1'024u);
  contents[128] = kA;
  EXPECT_EQ(world_.Longest("p1", contents), 512u);
}

TEST_P(StateProbeTest, BlocksWithoutTheFirstOneAreNoPrefix) {
  const StreamId a = world_.Register("a");
  const StreamId b = world_.Register("b");
  world_.Store(a, NamesFrom(5'000, 11), std::nullopt, ContentsFrom(10, 11), Options());
  world_.Store(b, NamesFrom(5'001, 128), Name(5'000), ContentsFrom(11, 128), Options());
  EXPECT_EQ(world_.Longest("a", ContentsFrom(10, 129)), 44u);
  EXPECT_EQ(world_.Longest("b", ContentsFrom(10, 129)), 0u);
}

TEST_P(StateProbeTest, TheFirstBlockEvictedAndStoredAgainBringsTheWholePrefixBack) {
  const StreamId p1 = world_.Register("p1");
  const std::vector<int> contents = ContentsFrom(10, 128);
  world_.Store(p1, NamesFrom(5'000, 128), std::nullopt, contents, Options());
  world_.Remove(p1, {Name(5'000)});
  EXPECT_EQ(world_.Longest("p1", contents), 0u);
  world_.Store(p1, {Name(5'000)}, std::nullopt, {10}, Options());
  EXPECT_EQ(world_.Longest("p1", contents), 512u);
  // The name is free meanwhile: another content may take it, and the children follow the name.
  world_.Remove(p1, {Name(5'000)});
  world_.Store(p1, {Name(5'000)}, std::nullopt, {kA}, Options());
  EXPECT_EQ(world_.Facts(p1).blocks_rejected, 0u);
  EXPECT_EQ(world_.Longest("p1", contents), 0u);
  std::vector<int> other = contents;
  other[0] = kA;
  EXPECT_EQ(world_.Longest("p1", other), 512u);
}

// --- field cases ---------------------------------------------------------------------------------

TEST_P(StateProbeTest, Bl28CopiesAreCounted) {
  const StreamId p1 = world_.Register("p1");
  const auto longest = [&] { return world_.Longest("p1", {kA, kB, kC}); };
  world_.Store(p1, NamesFrom(71, 3), std::nullopt, {kA, kB, kC}, Options());
  world_.Store(p1, {Name(73)}, Name(72), {kC}, Options());
  world_.Remove(p1, {Name(73)});
  EXPECT_EQ(longest(), 12u);
  world_.Remove(p1, {Name(73)});
  EXPECT_EQ(longest(), 8u);
  world_.Remove(p1, {Name(73)});
  EXPECT_EQ(world_.Facts(p1).remove_unknown, 1u);
  world_.Store(p1, {Name(73)}, Name(72), {kC}, Options());
  EXPECT_EQ(longest(), 12u);

  // A clear between the two stores resets the count.
  world_.Store(p1, {Name(73)}, Name(72), {kC}, Options());
  world_.Apply(p1, Cleared{});
  EXPECT_EQ(longest(), 0u);
  world_.Store(p1, NamesFrom(71, 3), std::nullopt, {kA, kB, kC}, Options());
  world_.Remove(p1, {Name(73)});
  EXPECT_EQ(longest(), 8u);
}

TEST_P(StateProbeTest, Bl30AnUnknownNameDoesNotStopTheRemoval) {
  const StreamId p1 = world_.Register("p1");
  world_.Store(p1, NamesFrom(81, 3), std::nullopt, {kA, kB, kC}, Options());
  world_.Remove(p1, {Name(81), Name(999), Name(83)});
  EXPECT_EQ(world_.Longest("p1", {kA}), 0u);
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 0u);
  EXPECT_EQ(world_.PrefixCount(), 1u);
  EXPECT_EQ(world_.Facts(p1).remove_unknown, 1u);
  world_.Store(p1, {Name(81)}, std::nullopt, {kA}, Options());
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 8u);
}

TEST_P(StateProbeTest, Bl18CyclesAreRejectedAndRepeatedContentMatchesAsOftenAsStored) {
  const StreamId p1 = world_.Register("p1");
  world_.Store(p1, {Name(7)}, Name(7), {kA}, Orphan());
  EXPECT_EQ(world_.Facts(p1).blocks_rejected, 1u);
  world_.Store(p1, {Name(8)}, Name(9), {kB}, Orphan());
  EXPECT_EQ(world_.state->index().fragments(), 1u);
  world_.Store(p1, {Name(9)}, Name(8), {kC}, Orphan());
  EXPECT_EQ(world_.Facts(p1).blocks_rejected, 3u);
  EXPECT_EQ(world_.PrefixCount(), 0u);

  world_.Store(p1, NamesFrom(21, 3), std::nullopt, {kA, kA, kA}, Options());
  EXPECT_EQ(world_.Longest("p1", {kA, kA, kA}), 12u);
  world_.Store(p1, {Name(5), Name(5)}, std::nullopt, {kA, kA}, Options());
  EXPECT_EQ(world_.Facts(p1).blocks_rejected, 4u);
  EXPECT_EQ(world_.Longest("p1", {kA, kA, kA, kA, kA}), 12u);
}

TEST_P(StateProbeTest, Bl32OrphansWaitForTheirParent) {
  const StreamId p1 = world_.Register("p1");
  world_.Store(p1, {Name(12)}, Name(11), {kB}, Orphan());
  world_.Store(p1, {Name(13)}, Name(12), {kC}, Orphan());
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 0u);
  EXPECT_EQ(world_.Longest("p1", {kB, kC}), 0u);
  EXPECT_EQ(world_.state->index().fragments(), 2u);
  world_.Store(p1, {Name(11)}, std::nullopt, {kA}, Options());
  EXPECT_EQ(world_.Longest("p1", {kA, kB, kC}), 12u);
  EXPECT_EQ(world_.Longest("p1", {kB, kC}), 0u);
  EXPECT_EQ(world_.state->index().fragments(), 0u);
}

TEST_P(StateProbeTest, Bl32ALongChainOfOrphansIsAttachedInTheRecordOfItsParent) {
  constexpr std::size_t kChain = 20'000;
  const StreamId p1 = world_.Register("p1");
  const std::vector<int> contents = ContentsFrom(10, kChain);
  world_.Store(p1, NamesFrom(101, kChain - 1), Name(100), ContentsFrom(11, kChain - 1), Orphan());
  EXPECT_EQ(world_.state->index().fragments(), kChain - 1);
  world_.Store(p1, {Name(100)}, std::nullopt, {10}, Options());
  EXPECT_EQ(world_.state->index().fragments(), 0u);
  EXPECT_EQ(world_.PrefixCount(), kChain);
  EXPECT_EQ(world_.Longest("p1", contents), kChain * kTestBlockSize);
}

TEST_P(StateProbeTest, UnregisteringForgetsEverythingAndRegisteringAgainIsANewStream) {
  const StreamId first = world_.Register("p1");
  const StreamId other = world_.Register("p2");
  const std::vector<int> contents = ContentsFrom(10, 32);
  world_.Store(first, NamesFrom(100, 32), std::nullopt, contents, Options());
  world_.Store(other, NamesFrom(100, 8), std::nullopt, ContentsFrom(10, 8), Options());
  world_.Unregister("p1");
  EXPECT_EQ(world_.Longest("p1", contents), 0u);
  EXPECT_EQ(world_.Longest("p2", contents), 32u);
  EXPECT_EQ(world_.PrefixCount(), 8u);
  EXPECT_EQ(world_.state->FindStream(first), nullptr);

  const StreamId second = world_.Register("p1");
  EXPECT_NE(second, first);
  EXPECT_EQ(world_.Longest("p1", contents), 0u);
  world_.Store(first, {Name(100)}, std::nullopt, {10}, Options());  // late: that stream is no more
  EXPECT_EQ(world_.Longest("p1", contents), 0u);
  world_.Store(second, NamesFrom(100, 4), std::nullopt, ContentsFrom(10, 4), Options());
  EXPECT_EQ(world_.Longest("p1", contents), 16u);
  world_.Unregister("p1");
  world_.Unregister("p2");
  EXPECT_FALSE(world_.TheContext().Exists());
  world_.CleanUp();
  EXPECT_EQ(world_.state->index().entries_in_memory(), 0u);
}

TEST_P(StateProbeTest, WhatComesAndGoesLeavesNothingBehind) {
  const StreamId p1 = world_.Register("p1");
  world_.Store(p1, NamesFrom(1, 8), std::nullopt, ContentsFrom(1, 8), Options());
  const std::size_t entries = world_.state->index().entries_in_memory();
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<BlockName> tail = NamesFrom(1'000 + 100 * round, 10);
    world_.Store(p1, tail, Name(8), ContentsFrom(100, 10), Options());
    if (round % 3 == 0) std::swap(tail.front(), tail.back());
    if (round % 10 == 0) tail.push_back(Name(999));
    world_.Remove(p1, {tail.begin(), tail.begin() + 5});
    world_.Remove(p1, {tail.begin() + 5, tail.end()});
  }
  EXPECT_EQ(world_.PrefixCount(), 8u);
  EXPECT_EQ(world_.state->index().entries_in_memory(), entries);
}

TEST(TrustTest, AStreamIsDegradedUntilWhatEndsItsLossIsApplied) {
  StateWorld world;
  const StreamId p1 = world.Register("p1");
  world.Apply(Lost{p1, 1, 2});
  world.state->SetStreamState(p1, StreamState::kLive);  // its reader has seen the clear already
  EXPECT_EQ(world.Answer({kA}).degraded, std::vector<std::string>{"p1"});
  world.Apply(p1, Cleared{});
  EXPECT_TRUE(world.Answer({kA}).degraded.empty());
}

// --- the fragment bound --------------------------------------------------------------------------

TEST(FragmentBoundTest, Bl32AMillionOrphansAreKeptAndNotOneMore) {
  constexpr std::uint64_t kChunk = 10'000;
  static_assert(kFragmentsMax % kChunk == 0);
  StateWorld world;
  const StreamId p1 = world.Register("p1");
  const auto store = [&](std::uint64_t first, std::uint64_t count) {
    Frame frame;
    frame.stream = p1;
    Stored event;
    event.extra_keys_on_wire = true;
    event.block_length = kTestBlockSize;
    event.parent = Name(first - 1);  // never comes
    for (std::uint64_t i = 0; i < count; ++i) {
      event.blocks.push_back({Name(first + i), i, HashCheck::kNotComputed});
    }
    frame.events.push_back(std::move(event));
    world.state->Apply(Record{{std::move(frame)}});
  };
  for (std::uint64_t i = 0; i < kFragmentsMax / kChunk; ++i) {
    store(1 + i * (kChunk + 1), kChunk);
  }
  EXPECT_EQ(world.state->index().fragments(), kFragmentsMax);
  EXPECT_EQ(world.Facts(p1).fragments_rejected, 0u);
  const std::size_t entries = world.state->index().entries_in_memory();

  constexpr std::uint64_t kBeyond = 1'000'000'000;
  store(kBeyond, 5);
  EXPECT_EQ(world.state->index().fragments(), kFragmentsMax);
  EXPECT_EQ(world.Facts(p1).fragments_rejected, 5u);
  EXPECT_EQ(world.Facts(p1).blocks_rejected, 0u);
  EXPECT_EQ(world.state->index().entries_in_memory(), entries);
  // Content is stored all the same, and a place that becomes free is used again.
  world.Store(p1, {Name(kBeyond + 10)}, std::nullopt, {kA}, {});
  EXPECT_EQ(world.Longest("p1", {kA}), 4u);
  world.Remove(p1, {Name(1)});
  store(kBeyond, 5);
  EXPECT_EQ(world.Facts(p1).fragments_rejected, 9u);
  world.Apply(p1, Cleared{});
  EXPECT_EQ(world.state->index().fragments(), 0u);
}

}  // namespace
}  // namespace conductor
