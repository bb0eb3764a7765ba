// Which full digests the index keeps. Those of blocks that lie alone go in the order they came, but
// only where a child that could not be compared is as good as a verified one.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "src/index/digest_table.h"
#include "src/hash/fingerprint.h"
#include "src/index/mix.h"
#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

// What may keep its digest of blocks that lie alone.
constexpr std::size_t kKept = 65'536;
constexpr std::size_t kEventsPerFrame = 4'096;

Digest DigestOfNumber(std::uint64_t number) {
  Digest digest{};
  std::memcpy(digest.data(), &number, sizeof number);
  return digest;
}

// Numbered blocks of one stream, each with a digest of its own.
class Blocks {
 public:
  explicit Blocks(bool keys_on_wire) : keys_on_wire_(keys_on_wire) {
    stream_ = world_.Register("a");
  }

  // Each below the root.
  void StoreAlone(std::uint64_t begin, std::uint64_t end) {
    Frame frame;
    for (std::uint64_t block = begin; block < end; ++block) {
      frame.events.push_back(EventOf(block, std::nullopt));
      if (frame.events.size() == kEventsPerFrame || block + 1 == end) Apply(frame);
    }
  }
  void StoreBelow(std::uint64_t block, std::uint64_t parent) {
    Frame frame;
    frame.events.push_back(EventOf(block, NameOf(parent)));
    Apply(frame);
  }
  void Remove(std::uint64_t block) { world_.Remove(stream_, {NameOf(block)}); }

  // False: there is none; a wrong one is a failure.
  bool HasDigest(std::uint64_t block) const {
    const PrefixIndex& index = world_.state->index();
    const ContextId context = index.contexts().Find(StateWorld::Key());
    const auto digest = index.FindDigest(context, static_cast<Scope>(stream_), NameOf(block));
    if (digest) {
      EXPECT_EQ(*digest, DigestOfNumber(block)) << block;
    }
    return digest.has_value();
  }
  std::size_t CountDigests(std::uint64_t begin, std::uint64_t end) const {
    std::size_t count = 0;
    for (std::uint64_t block = begin; block < end; ++block) count += HasDigest(block) ? 1 : 0;
    return count;
  }
  std::string Inconsistency() const { return world_.state->index().Inconsistency(); }

 private:
  static BlockName NameOf(std::uint64_t block) { return Name(HashMix(block, 1)); }
  Stored EventOf(std::uint64_t block, std::optional<BlockName> parent) const {
    Stored stored;
    stored.extra_keys_on_wire = keys_on_wire_;
    stored.block_length = kTestBlockSize;
    stored.parent = std::move(parent);
    stored.blocks = {{NameOf(block), HashMix(block, 2), HashCheck::kEqual}};
    stored.last_digest = DigestOfNumber(block);
    return stored;
  }
  void Apply(Frame& frame) {
    frame.stream = stream_;
    frame.number = number_++;
    world_.state->Apply(Record{{frame}});
    world_.state->CleanupSlice(1'000);
    frame.events.clear();
  }

  StateWorld world_;
  StreamId stream_ = 0;
  std::uint64_t number_ = 1'000'000;
  bool keys_on_wire_;
};

TEST(DigestsTest, OfBlocksThatLieAloneTheOldestGo) {
  constexpr std::size_t kMore = 10'000;
  Blocks blocks(true);
  blocks.StoreAlone(0, kKept);
  EXPECT_EQ(blocks.CountDigests(0, kKept), kKept);
  blocks.StoreAlone(kKept, kKept + kMore);
  EXPECT_EQ(blocks.CountDigests(0, kMore), 0u);
  EXPECT_EQ(blocks.CountDigests(kMore, kKept + kMore), kKept);
  EXPECT_EQ(blocks.Inconsistency(), "");
}

TEST(DigestsTest, BelowABlockWithoutKeysOnTheWireTheyAreNeeded) {
  constexpr std::size_t kMore = 1'000;
  Blocks blocks(false);
  blocks.StoreAlone(0, kKept + kMore);
  EXPECT_EQ(blocks.CountDigests(0, kKept + kMore), kKept + kMore);
}

TEST(DigestsTest, ALongerRunKeepsItsLastOne) {
  constexpr std::size_t kRuns = 1'000;
  Blocks blocks(true);
  blocks.StoreAlone(0, kRuns);
  for (std::uint64_t i = 0; i < kRuns; ++i) blocks.StoreBelow(1'000'000 + i, i);
  blocks.StoreAlone(kRuns, 2 * kRuns + kKept);
  EXPECT_EQ(blocks.CountDigests(0, kRuns), 0u);
  EXPECT_EQ(blocks.CountDigests(1'000'000, 1'000'000 + kRuns), kRuns);
  EXPECT_EQ(blocks.CountDigests(kRuns, 2 * kRuns), 0u);
  EXPECT_EQ(blocks.CountDigests(2 * kRuns, 2 * kRuns + kKept), kKept);
  EXPECT_EQ(blocks.Inconsistency(), "");
}

// Blocks that are gone leave room: nobody else's digest has to go for theirs.
TEST(DigestsTest, BlocksThatAreGoneLeaveRoom) {
  constexpr std::size_t kRounds = 4;
  Blocks blocks(true);
  blocks.StoreAlone(0, kKept / 2);
  std::uint64_t next = kKept / 2;
  for (std::size_t round = 0; round < kRounds; ++round, next += kKept / 2) {
    blocks.StoreAlone(next, next + kKept / 2);
    EXPECT_EQ(blocks.CountDigests(next, next + kKept / 2), kKept / 2);
    for (std::uint64_t block = next; block < next + kKept / 2; ++block) blocks.Remove(block);
  }
  EXPECT_EQ(blocks.CountDigests(0, kKept / 2), kKept / 2);
  EXPECT_EQ(blocks.Inconsistency(), "");
}

// The next block in its place would be compared with that.
TEST(DigestsTest, AHoleOfARunThatIsTakenApartLeavesNone) {
  StateWorld world;
  const StreamId a = world.Register("a");
  world.Store(a, NamesFrom(100, 6), std::nullopt, ContentsFrom(1, 6), {});
  Stored again;
  again.extra_keys_on_wire = true;
  again.block_length = kTestBlockSize;
  again.parent = Name(101);
  again.blocks = {{Name(102), FingerprintV1(TokensOf({3}), {}), HashCheck::kEqual}};
  again.last_digest = DigestOfNumber(102);
  world.Apply(a, again);
  world.Remove(a, {Name(102), Name(102), Name(103)});
  // The second hole's name comes back as another block: the run is taken apart, the first one goes.
  world.Store(a, {Name(103)}, Name(101), {9}, {});
  const PrefixIndex& index = world.state->index();
  const ContextId context = index.contexts().Find(StateWorld::Key());
  EXPECT_EQ(index.FindName(context, kSharedScope, {102, {}}), 0u);
  EXPECT_EQ(index.Inconsistency(), "");
}

TEST(DigestTableTest, GoesRoundThoseThatAreLeft) {
  RetireList retired;
  DigestTable table(retired);
  std::vector<DigestId> ids;
  for (EntryId owner = 1; owner <= 4; ++owner) {
    ids.push_back(table.AddLone(DigestOfNumber(owner), owner));
  }
  const DigestId kept = table.Add(DigestOfNumber(5));
  EXPECT_FALSE(DigestTable::IsLone(kept));
  EXPECT_EQ(table.At(kept), DigestOfNumber(5));
  EXPECT_EQ(table.NextLone(), 1u);
  table.Retire(ids[1]);
  EXPECT_EQ(table.lone(), 3u);
  EXPECT_EQ(table.NextLone(), 0u);
  EXPECT_EQ(table.NextLone(), 3u);
  EXPECT_EQ(table.NextLone(), 4u);
  EXPECT_EQ(table.NextLone(), 1u);
  // A place is taken again only when no reader can be at it.
  EXPECT_NE(table.AddLone(DigestOfNumber(6), 6), ids[1]);
  retired.FreeAll();
  EXPECT_EQ(table.AddLone(DigestOfNumber(7), 7), ids[1]);
  EXPECT_EQ(table.At(ids[1]), DigestOfNumber(7));
}

}  // namespace
}  // namespace conductor
