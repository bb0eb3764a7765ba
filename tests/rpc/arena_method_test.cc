// What one call leaves behind for the next: an arena of the kept size, and nothing of its messages.
#include "rpc/arena_method.h"

#include <gtest/gtest.h>

#include "rpc/conductor.pb.h"
#include "tests/allocation_counter.h"

namespace conductor::rpc {
namespace {

std::string RequestOf(std::size_t tokens) {
  v1::QueryRequest request;
  request.set_model("a model with a name that no small string holds");
  for (std::size_t i = 0; i < tokens; ++i) request.add_token_ids(static_cast<std::int32_t>(i));
  return request.SerializeAsString();
}

TEST(ArenaPoolTest, ACallOfUsualSizeAllocatesOnlyItsStrings) {
  ArenaPool pool;
  pool.Give(pool.Take());
  const std::string small = RequestOf(16), usual = RequestOf(8'192);
  const auto count = [&pool](const std::string& bytes) {
    return CountAllocations([&] {
      auto arena = pool.Take();
      auto* request = arena->Make<v1::QueryRequest>();
      ASSERT_TRUE(request->ParseFromString(bytes));
      auto* response = arena->Make<v1::QueryResponse>();
      for (std::uint32_t rank = 0; rank < 8; ++rank) {
        (*response->add_instances()->mutable_dp())[rank] = 1;
      }
      pool.Give(std::move(arena));
    });
  };
  const std::size_t first = count(small);
  EXPECT_EQ(count(usual), first);
  EXPECT_EQ(count(usual), first);
  // The characters of the model's name are the only thing outside of the arena.
  EXPECT_LE(first, 2u);
}

TEST(ArenaPoolTest, ALargeCallGivesBackWhatItNeededBeyondTheBlock) {
  ArenaPool pool;
  const std::string large = RequestOf(200'000);
  auto arena = pool.Take();
  ASSERT_TRUE(arena->Make<v1::QueryRequest>()->ParseFromString(large));
  EXPECT_GT(arena->AllocatedBytes(), kArenaBlockBytes);
  pool.Give(std::move(arena));
  EXPECT_EQ(pool.Take()->AllocatedBytes(), kArenaBlockBytes);
}

TEST(ArenaPoolTest, KeepsNoMoreThanItsLimit) {
  ArenaPool pool;
  std::vector<std::unique_ptr<CallArena>> taken;
  for (std::size_t i = 0; i < kIdleArenasMax + 5; ++i) taken.push_back(pool.Take());
  for (auto& arena : taken) pool.Give(std::move(arena));
  EXPECT_EQ(pool.Idle(), kIdleArenasMax);
}

}  // namespace
}  // namespace conductor::rpc
