#include "tools/block_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

namespace conductor::enginesim {
namespace {

// A digest for a path in the tree of prompts: equal paths, equal digests.
Digest DigestOf(const std::string& path) {
  Digest digest{};
  std::uint64_t value = std::hash<std::string>{}(path);
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(i < 8 ? value >> (8 * i) : path[i % path.size()]);
  }
  return digest;
}

std::vector<Digest> Chain(const std::string& path) {
  std::vector<Digest> chain;
  for (std::size_t i = 1; i <= path.size(); ++i) chain.push_back(DigestOf(path.substr(0, i)));
  return chain;
}

TEST(BlockCacheTest, ANewPromptIsStoredAndItsRepeatHits) {
  BlockCache cache(10);
  CacheChange change = cache.Admit(Chain("abc"));
  EXPECT_EQ(change.hit_blocks, 0u);
  EXPECT_EQ(change.stored_blocks, 3u);
  change = cache.Admit(Chain("abcd"));
  EXPECT_EQ(change.hit_blocks, 3u);
  EXPECT_EQ(change.stored_blocks, 1u);
  change = cache.Admit(Chain("abcd"));
  EXPECT_EQ(change.hit_blocks, 4u);
  EXPECT_EQ(change.stored_blocks, 0u);
  EXPECT_TRUE(change.removed.empty());
  EXPECT_EQ(cache.size(), 4u);
}

TEST(BlockCacheTest, TheDeepestBlockOfTheOldestPromptGoesFirst) {
  BlockCache cache(4);
  cache.Admit(Chain("ab"));
  cache.Admit(Chain("xy"));
  const CacheChange change = cache.Admit(Chain("pqr"));
  EXPECT_EQ(change.removed, (std::vector<Digest>{DigestOf("ab"), DigestOf("a"), DigestOf("xy")}));
  EXPECT_EQ(cache.CountHits(Chain("xy")), 1u);
}

TEST(BlockCacheTest, APromptNeverEvictsItsOwnBlocks) {
  BlockCache cache(3);
  cache.Admit(Chain("ab"));
  cache.Admit(Chain("x"));
  const CacheChange change = cache.Admit(Chain("abc"));
  EXPECT_EQ(change.hit_blocks, 2u);
  EXPECT_EQ(change.removed, std::vector<Digest>{DigestOf("x")});
}

TEST(BlockCacheTest, BlocksBeyondTheCapacityStayUncached) {
  BlockCache cache(2);
  const CacheChange change = cache.Admit(Chain("abcde"));
  EXPECT_EQ(change.stored_blocks, 2u);
  EXPECT_TRUE(change.removed.empty());
  EXPECT_EQ(cache.CountHits(Chain("abcde")), 2u);
}

TEST(BlockCacheTest, ClearForgetsEverything) {
  BlockCache cache(4);
  cache.Admit(Chain("abc"));
  cache.Clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.Admit(Chain("abc")).stored_blocks, 3u);
}

// The simplest possible cache: a time of last use for each path, deeper blocks older.
struct ModelCache {
  std::size_t capacity;
  std::map<std::string, std::pair<std::uint64_t, int>> used;  // time, minus depth
  std::uint64_t now = 0;

  CacheChange Admit(const std::string& path) {
    CacheChange change;
    ++now;
    const std::size_t end = std::min(path.size(), capacity);
    while (change.hit_blocks < path.size() &&
           used.contains(path.substr(0, change.hit_blocks + 1))) {
      ++change.hit_blocks;
    }
    const auto touch = [&](std::size_t depth) {
      used[path.substr(0, depth)] = {now, -static_cast<int>(depth)};
    };
    for (std::size_t depth = 1; depth <= change.hit_blocks; ++depth) touch(depth);
    for (std::size_t depth = change.hit_blocks + 1; depth <= end; ++depth) {
      if (used.size() == capacity) {
        const auto oldest =
            std::min_element(used.begin(), used.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        change.removed.push_back(DigestOf(oldest->first));
        used.erase(oldest);
      }
      touch(depth);
      ++change.stored_blocks;
    }
    return change;
  }
};

TEST(BlockCacheTest, AgreesWithASimpleModelOnRandomPrompts) {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const unsigned seed = given != nullptr ? std::stoul(given) : std::random_device{}();
  std::printf("CONDUCTOR_SEED=%u\n", seed);
  std::mt19937 random(seed);
  for (const std::size_t capacity : {1u, 7u, 40u}) {
    BlockCache cache(capacity);
    ModelCache model{capacity, {}, 0};
    for (int step = 0; step < 3'000; ++step) {
      std::string path;
      const std::size_t length = random() % 12;
      for (std::size_t i = 0; i < length; ++i) path += static_cast<char>('a' + random() % 2);
      const CacheChange got = cache.Admit(Chain(path));
      const CacheChange expected = model.Admit(path);
      ASSERT_EQ(got.hit_blocks, expected.hit_blocks) << step;
      ASSERT_EQ(got.stored_blocks, expected.stored_blocks) << step;
      ASSERT_EQ(got.removed, expected.removed) << step;
      ASSERT_EQ(cache.size(), model.used.size()) << step;
    }
  }
}

}  // namespace
}  // namespace conductor::enginesim
