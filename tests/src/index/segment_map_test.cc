// SegmentMap against std::unordered_map: growth, splits, tombstones, keys with equal tags, and tags
// so close together that splitting does not help.
#include "src/index/segment_map.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <unordered_map>
#include <vector>

#include "tests/model/random_ops.h"

namespace conductor {
namespace {

using model::RandomSource;

std::uint64_t Seed() {
  const char* text = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  std::cout << "CONDUCTOR_SEED=" << seed << "\n";
  return seed;
}

// The map keeps the upper half of a hash; keys that agree there are one key.
std::uint64_t Hash(std::uint32_t tag, std::uint32_t rest = 0) {
  return (std::uint64_t{tag} << 32) | rest;
}

class Pair {
 public:
  void Set(std::uint64_t hash, std::uint32_t id) {
    map_.Set(hash, id);
    expected_[static_cast<std::uint32_t>(hash >> 32)] = id;
  }
  void Erase(std::uint64_t hash) {
    map_.Erase(hash);
    expected_.erase(static_cast<std::uint32_t>(hash >> 32));
  }
  void Check(std::uint64_t hash) const {
    const auto it = expected_.find(static_cast<std::uint32_t>(hash >> 32));
    ASSERT_EQ(map_.Find(hash), it == expected_.end() ? 0u : it->second) << hash;
    ASSERT_EQ(map_.size(), expected_.size());
  }
  void CheckAll() const {
    for (const auto& [tag, id] : expected_) ASSERT_EQ(map_.Find(Hash(tag)), id) << tag;
    ASSERT_EQ(map_.size(), expected_.size());
  }
  void Reclaim() { retired_.Reclaim(); }
  const SegmentMap& map() const { return map_; }

 private:
  RetireList retired_;
  SegmentMap map_{retired_};
  std::unordered_map<std::uint32_t, std::uint32_t> expected_;
};

TEST(SegmentMapTest, InsertUnlessTakesOnlyWhatIsNotThere) {
  RetireList retired;
  SegmentMap map(retired);
  const auto is = [](std::uint32_t wanted) {
    return [wanted](std::uint32_t id) { return id == wanted; };
  };
  // Through many splits, each twice.
  constexpr std::uint32_t kKeys = 10'000;
  const auto hash = [](std::uint32_t key) { return Hash(key * 0x9e3779b1u); };
  for (std::uint32_t key = 1; key <= kKeys; ++key) {
    ASSERT_EQ(map.InsertUnless(hash(key), key, is(key)), 0u);
    ASSERT_EQ(map.InsertUnless(hash(key), key + kKeys, is(key)), key);
  }
  EXPECT_EQ(map.size(), kKeys);
  // Another key of the same tag; the place of one that went.
  EXPECT_EQ(map.InsertUnless(hash(1), 2 * kKeys, is(2 * kKeys)), 0u);
  map.Remove(hash(1), 1);
  EXPECT_EQ(map.InsertUnless(hash(1), 1, is(1)), 0u);
  EXPECT_EQ(map.FindIf(hash(1), is(2 * kKeys)), 2 * kKeys);
  EXPECT_EQ(map.size(), kKeys + 1);
  for (std::uint32_t key = 1; key <= kKeys; ++key) ASSERT_EQ(map.FindIf(hash(key), is(key)), key);
}

TEST(SegmentMapTest, AnEmptyMapHasNothing) {
  Pair pair;
  pair.Check(0);
  pair.Check(~std::uint64_t{0});
  pair.Erase(Hash(7));
  pair.Check(Hash(7));
}

TEST(SegmentMapTest, KeysWithEqualTagsAreOneSlot) {
  Pair pair;
  pair.Set(Hash(7, 1), 10);
  EXPECT_EQ(pair.map().Find(Hash(7, 2)), 10u);
  pair.Set(Hash(7, 2), 11);
  EXPECT_EQ(pair.map().Find(Hash(7, 1)), 11u);
  EXPECT_EQ(pair.map().size(), 1u);
  pair.Erase(Hash(7, 3));
  EXPECT_EQ(pair.map().Find(Hash(7, 1)), 0u);
  EXPECT_EQ(pair.map().size(), 0u);
}

TEST(SegmentMapTest, TheEdgesOfTheTagRangeAreKeysLikeAnyOther) {
  Pair pair;
  for (std::uint32_t tag : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
    pair.Set(Hash(tag), tag / 2 + 1);
  }
  pair.Set(Hash(5), 0xfffffffeu);
  pair.CheckAll();
}

TEST(SegmentMapTest, RandomOperationsAgreeWithUnorderedMap) {
  RandomSource random(Seed());
  Pair pair;
  for (int i = 0; i < 300'000; ++i) {
    // Phases of growth and of shrinking, over few enough keys to meet them again.
    const bool shrinking = (i / 50'000) % 2 == 1;
    const std::uint64_t hash = Hash(static_cast<std::uint32_t>(random.Below(40'000) * 107'377u));
    if (random.Percent(shrinking ? 25 : 75)) {
      pair.Set(hash, static_cast<std::uint32_t>(1 + random.Below(1'000'000)));
    } else {
      pair.Erase(hash);
    }
    ASSERT_NO_FATAL_FAILURE(pair.Check(hash));
    ASSERT_NO_FATAL_FAILURE(
        pair.Check(Hash(static_cast<std::uint32_t>(random.Below(40'000) * 107'377u))));
    if (i % 1'000 == 0) pair.Reclaim();
    if (i % 50'000 == 0) {
      ASSERT_NO_FATAL_FAILURE(pair.CheckAll());
    }
  }
  ASSERT_NO_FATAL_FAILURE(pair.CheckAll());
}

TEST(SegmentMapTest, TombstonesDoNotMakeItGrow) {
  RandomSource random(Seed());
  Pair pair;
  std::vector<std::uint64_t> live;
  for (int i = 0; i < 200; ++i) {
    live.push_back(random.Next());
    pair.Set(live.back(), 1 + static_cast<std::uint32_t>(i));
  }
  const std::size_t bytes = pair.map().bytes();
  for (int i = 0; i < 100'000; ++i) {
    std::uint64_t& slot = live[random.Below(live.size())];
    pair.Erase(slot);
    slot = random.Next();
    pair.Set(slot, 1 + static_cast<std::uint32_t>(i));
    if (i % 100 == 0) pair.Reclaim();
  }
  ASSERT_NO_FATAL_FAILURE(pair.CheckAll());
  EXPECT_EQ(pair.map().bytes(), bytes);
}

TEST(SegmentMapTest, NeighbouringTagsAreFoundWhereSplittingDoesNotHelp) {
  Pair pair;
  for (std::uint32_t tag = 0; tag < 1'000; ++tag) pair.Set(Hash(0xabcde000u + tag), tag + 1);
  ASSERT_NO_FATAL_FAILURE(pair.CheckAll());
  for (std::uint32_t tag = 0; tag < 1'000; tag += 2) pair.Erase(Hash(0xabcde000u + tag));
  ASSERT_NO_FATAL_FAILURE(pair.CheckAll());
  pair.Check(Hash(0xabcde000u));
  pair.Check(Hash(0xabcdf000u));
}

}  // namespace
}  // namespace conductor
