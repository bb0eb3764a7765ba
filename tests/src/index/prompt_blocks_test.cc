// How much of a prompt is hashed: a miss costs one block, and a match little more than itself.
#include "src/index/prompt_blocks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

TEST(PromptBlocksTest, FingerprintsAreComputedInGrowingChunks) {
  std::vector<std::int32_t> tokens(2'000 * kTestBlockSize);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i);
  PromptQuery query;
  query.context = StateWorld::Key();
  query.token_ids = tokens;
  const HashProfile profile = model::RealNames::Profile(HashStrategy::kVllmV1, "0");
  const BlockHasher hasher(profile);
  PromptBlocks blocks(query, profile.strategy, hasher);
  EXPECT_EQ(blocks.Fingerprints(0).size(), 1u);
  EXPECT_EQ(blocks.Fingerprints(0).size(), 1u);  // asking again costs nothing
  EXPECT_EQ(blocks.Fingerprints(1).size(), 8u);
  EXPECT_EQ(blocks.Fingerprints(9).size(), 72u);
  EXPECT_EQ(blocks.Fingerprints(81).size(), 512u);
  EXPECT_EQ(blocks.Fingerprints(593).size(), 512u);
}

// Tokens of which only the first can be read: whoever looks at more is killed.
class GuardedTokens {
 public:
  GuardedTokens(const std::vector<std::int32_t>& readable, std::size_t size) : size_(size) {
    page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t hidden = (size - readable.size()) * sizeof(std::int32_t);
    bytes_ = page_ + (hidden + page_ - 1) / page_ * page_;
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    pages_ = static_cast<char*>(memory);
    first_ = reinterpret_cast<std::int32_t*>(pages_ + page_) - readable.size();
    std::copy(readable.begin(), readable.end(), first_);
    EXPECT_EQ(mprotect(pages_ + page_, bytes_ - page_, PROT_NONE), 0);
  }
  ~GuardedTokens() { munmap(pages_, bytes_); }
  GuardedTokens(const GuardedTokens&) = delete;
  GuardedTokens& operator=(const GuardedTokens&) = delete;
  std::span<const std::int32_t> all() const { return {first_, size_}; }

 private:
  std::size_t size_, page_, bytes_;
  char* pages_;
  std::int32_t* first_;
};

// The tokens that are matched when only those of `readable` blocks can be read.
std::uint64_t LongestOf(const StateWorld& world, const std::vector<int>& readable) {
  const GuardedTokens tokens(TokensOf(readable), 1'000 * kTestBlockSize);
  PromptQuery query;
  query.context = StateWorld::Key();
  query.token_ids = tokens.all();
  const auto answer = MatchPrompt(world.state->index(), query);
  EXPECT_TRUE(answer);
  EXPECT_TRUE(answer->context_known);
  EXPECT_EQ(answer->instances.size(), 1u);
  return answer->instances[0].best.disk;
}

TEST(PromptBlocksTest, AColdMissReadsOneBlock) {
  StateWorld world;
  const StreamId a = world.Register("a");
  // Nobody has anything yet: the context has no root.
  EXPECT_EQ(LongestOf(world, {7}), 0u);
  world.Store(a, NamesFrom(100, 20), std::nullopt, ContentsFrom(1, 20), {});
  EXPECT_EQ(LongestOf(world, {7}), 0u);
  // Behind a match of one block the next eight are hashed together, and no more.
  EXPECT_EQ(LongestOf(world, {1, 77, 3, 4, 5, 6, 7, 8, 9}), kTestBlockSize);
}

// What AColdMissReadsOneBlock rests on: a token that may not be read is noticed.
TEST(PromptBlocksTest, OneBlockLessIsNotEnough) {
  StateWorld world;
  world.Store(world.Register("a"), NamesFrom(100, 1), std::nullopt, {1}, {});
  EXPECT_DEATH(LongestOf(world, {}), "");
}

}  // namespace
}  // namespace conductor
