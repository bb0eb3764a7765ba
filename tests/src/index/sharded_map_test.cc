// ShardedMap against a std::map, with hashes that are good and hashes that are not.
#include "src/index/sharded_map.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

namespace conductor {
namespace {

std::uint64_t TestSeed() {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  std::cout << "CONDUCTOR_SEED=" << seed << std::endl;
  return seed;
}

struct Mixed {
  std::size_t operator()(std::uint64_t key) const { return HashMix(key, 1); }
};
// All keys want one slot of their shard.
struct OneSlot {
  std::size_t operator()(std::uint64_t key) const { return HashMix(key, 1) >> 20 << 20; }
};
// All keys want one shard, and few slots at the end of its table.
struct OneShard {
  std::size_t operator()(std::uint64_t key) const { return ~std::uint64_t{key % 3}; }
};

template <typename Hash>
class ShardedMapTest : public ::testing::Test {
 protected:
  using Map = ShardedMap<std::uint64_t, std::uint32_t, Hash>;

  void Set(std::uint64_t key, std::uint32_t value) {
    map_.Set(key, value);
    expected_[key] = value;
  }
  void Erase(std::uint64_t key) { ASSERT_EQ(map_.Erase(key), expected_.erase(key) == 1); }
  // Every key is in its shard, once, and nothing else is.
  void Check() {
    ASSERT_EQ(map_.size(), expected_.size());
    std::map<std::uint64_t, std::uint32_t> found;
    for (std::uint32_t shard = 0; shard < map_.shard_count(); ++shard) {
      map_.ForShard(shard, [&](std::uint64_t key, std::uint32_t value) {
        EXPECT_EQ(map_.ShardOf(key), shard);
        EXPECT_TRUE(found.emplace(key, value).second) << key;
      });
    }
    ASSERT_EQ(found, expected_);
    for (const auto& [key, value] : expected_) {
      ASSERT_NE(map_.Find(key), nullptr) << key;
      ASSERT_EQ(*map_.Find(key), value);
    }
  }

  Map map_;
  std::map<std::uint64_t, std::uint32_t> expected_;
};
using Hashes = ::testing::Types<Mixed, OneSlot, OneShard>;
TYPED_TEST_SUITE(ShardedMapTest, Hashes);

TYPED_TEST(ShardedMapTest, HoldsWhatAMapHolds) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 40; ++round) {
    // Rounds that grow, and rounds that shrink.
    const std::uint64_t set_percent = random() % 100;
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t key = random() % 700;
      random() % 100 < set_percent ? this->Set(key, 1 + static_cast<std::uint32_t>(random() % 9))
                                   : this->Erase(key);
    }
    this->Check();
    EXPECT_EQ(this->map_.Find(100'000), nullptr);
  }
}

TYPED_TEST(ShardedMapTest, DrainsByAnyKey) {
  for (std::uint64_t key = 0; key < 600; ++key) this->Set(key, 7);
  while (!this->map_.empty()) {
    const std::uint64_t key = this->map_.Any();
    ASSERT_EQ(this->expected_.count(key), 1u);
    this->Erase(key);
  }
  this->Check();
  this->Set(5, 6);
  EXPECT_EQ(this->map_.Any(), 5u);
}

TYPED_TEST(ShardedMapTest, AShardTakesKeysOfNoOther) {
  std::map<std::uint64_t, std::uint32_t> shard_of;
  for (std::uint64_t key = 0; key < 2'000; ++key) {
    const auto shards = static_cast<std::uint32_t>(this->map_.shard_count());
    this->Set(key, 1);
    shard_of[key] = this->map_.ShardOf(key);
    for (auto& [other, shard] : shard_of) {
      const std::uint32_t now = this->map_.ShardOf(other);
      ASSERT_TRUE(now == shard || now >= shards) << "only a new shard takes keys over";
      shard = now;
    }
  }
}

TEST(ShardedMapSizeTest, GivesItsMemoryBack) {
  ShardedMap<std::uint64_t, std::uint32_t, Mixed> map;
  const std::size_t empty = map.bytes();
  for (std::uint64_t key = 0; key < 10'000; ++key) map.Set(key, 1);
  EXPECT_GT(map.shard_count(), 10'000u / 256);
  EXPECT_LT(map.bytes(), 10'000u * 48);
  for (std::uint64_t key = 0; key < 10'000; ++key) map.Erase(key);
  map.Shrink();
  EXPECT_EQ(map.bytes(), empty);
  EXPECT_EQ(map.shard_count(), 1u);
}

}  // namespace
}  // namespace conductor
