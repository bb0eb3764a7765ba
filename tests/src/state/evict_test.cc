// What is given up at the cap: leaves first, of the largest holder, and never a hole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "src/hex.h"
#include "src/index/victims.h"
#include "src/service/memory_cap.h"
#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

class EvictTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(world_.state->index().Inconsistency(), "");
    EXPECT_EQ(Hex128(world_.state->Digest()), Hex128(world_.DigestOfReplay()));
  }

  void Store(StreamId stream, const std::vector<BlockName>& names, const std::vector<int>& contents,
             std::optional<BlockName> parent = std::nullopt, Tier tier = Tier::kDevice) {
    world_.Store(stream, names, std::move(parent), contents, {HashCheck::kEqual, true, tier});
  }
  std::uint64_t Blocks() const { return world_.state->index().blocks(); }
  std::uint64_t BlocksOf(StreamId stream, Tier tier = Tier::kDevice) const {
    return world_.state->index().BlocksOf(stream, tier);
  }
  // One slice of the cap, applied fact by fact; `after` sees each.
  template <typename After>
  void GiveUp(MemoryCap* cap, const After& after) {
    const Record record = cap->NextSlice(*world_.state);
    for (const Fact& fact : record.facts) {
      world_.Apply(fact);
      after(std::get<Evicted>(fact));
    }
  }
  void StayBelow(MemoryCap* cap) {
    do {
      GiveUp(cap, [](const Evicted&) {});
    } while (cap->IsEvicting() && !cap->exhausted());
  }
  static MemoryCap CapOf(std::uint64_t max_blocks) {
    Limits limits;
    limits.max_blocks = max_blocks;
    return MemoryCap(limits);
  }

  StateWorld world_;
};

TEST_F(EvictTest, APromptLosesItsEndOneBlockAtATime) {
  constexpr std::size_t kBlocks = 200;
  const StreamId a = world_.Register("a");
  const std::vector<int> contents = ContentsFrom(1, kBlocks);
  Store(a, NamesFrom(1'000, kBlocks), contents);
  std::uint64_t left = kBlocks;
  MemoryCap cap = CapOf(1);
  while (Blocks() > 0) {
    GiveUp(&cap, [&](const Evicted& fact) {
      --left;
      EXPECT_EQ(fact.name.projected, 1'000 + left);
      EXPECT_EQ(world_.Longest("a", contents), left * kTestBlockSize);
    });
    ASSERT_FALSE(cap.exhausted());
  }
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(world_.Facts(a).evictions, kBlocks);
  EXPECT_EQ(world_.state->index().entries_in_memory(), 0u);
}

TEST_F(EvictTest, TheLargestHolderGivesUpFirst) {
  const StreamId small = world_.Register("small"), large = world_.Register("large");
  Store(small, NamesFrom(1'000, 40), ContentsFrom(1, 40));
  Store(large, NamesFrom(2'000, 100), ContentsFrom(1'001, 100));
  MemoryCap cap = CapOf(100);
  StayBelow(&cap);
  EXPECT_LE(Blocks(), 99u);
  EXPECT_EQ(BlocksOf(small), 40u);
  EXPECT_EQ(BlocksOf(large), Blocks() - 40);
  MemoryCap lower = CapOf(20);
  StayBelow(&lower);
  EXPECT_GT(BlocksOf(small), 0u);
  EXPECT_GT(BlocksOf(large), 0u);
  EXPECT_LE(Blocks(), 19u);
}

TEST_F(EvictTest, ItStopsOnePercentBelowTheCapAndStartsAboveItOnly) {
  const StreamId a = world_.Register("a");
  Store(a, NamesFrom(1'000, 1'000), ContentsFrom(1, 1'000));
  MemoryCap cap = CapOf(1'000);
  GiveUp(&cap, [](const Evicted&) { ADD_FAILURE() << "at the cap, not above"; });
  Store(a, NamesFrom(5'000, 1), ContentsFrom(5'000, 1));
  EXPECT_TRUE(cap.IsOver(*world_.state));
  StayBelow(&cap);
  EXPECT_EQ(Blocks(), 989u);
  GiveUp(&cap, [](const Evicted&) { ADD_FAILURE() << "below the low-water mark"; });
}

TEST_F(EvictTest, ATrunkStaysWhileBranchesHangOnIt) {
  const StreamId a = world_.Register("a");
  Store(a, NamesFrom(1'000, 10), ContentsFrom(1, 10));
  Store(a, NamesFrom(2'000, 30), ContentsFrom(101, 30), Name(1'004));
  Store(a, NamesFrom(3'000, 30), ContentsFrom(201, 30), Name(1'004));
  MemoryCap cap = CapOf(12);
  StayBelow(&cap);
  std::vector<int> first = ContentsFrom(1, 5);
  EXPECT_EQ(world_.Longest("a", first), 5 * kTestBlockSize);
}

TEST_F(EvictTest, ABlockGoesFromEveryoneWhoHasIt) {
  const StreamId a = world_.Register("a"), b = world_.Register("b");
  const std::vector<int> contents = ContentsFrom(1, 50);
  Store(a, NamesFrom(1'000, 50), contents);
  Store(b, NamesFrom(1'000, 50), contents);
  Store(b, NamesFrom(1'000, 50), contents, std::nullopt, Tier::kCpuLocal);
  MemoryCap cap = CapOf(10);
  StayBelow(&cap);
  EXPECT_EQ(Blocks(), 9u);
  EXPECT_EQ(BlocksOf(a), 9u);
  EXPECT_EQ(BlocksOf(b), 9u);
  EXPECT_EQ(BlocksOf(b, Tier::kCpuLocal), 9u);
  EXPECT_EQ(world_.Facts(a).evictions, 41u);
  EXPECT_EQ(world_.Facts(b).evictions, 82u);
}

TEST_F(EvictTest, RemovingAnEvictedBlockIsUnknownAndStoringItBringsItBack) {
  const StreamId a = world_.Register("a");
  const std::vector<int> contents = ContentsFrom(1, 10);
  Store(a, NamesFrom(1'000, 10), contents);
  MemoryCap cap = CapOf(5);
  StayBelow(&cap);
  ASSERT_EQ(Blocks(), 4u);
  world_.Remove(a, {Name(1'009)});
  EXPECT_EQ(world_.Facts(a).remove_unknown, 1u);
  Store(a, NamesFrom(1'000, 10), contents);
  EXPECT_EQ(world_.Longest("a", contents), 10 * kTestBlockSize);
}

// A store's objects name their own contexts; the fact does too.
TEST_F(EvictTest, PoolsOfEveryContextGiveUpNames) {
  const StreamId pool = world_.Register("pool", 0, PublisherType::kMooncake);
  for (std::uint64_t n = 0; n < 60; ++n) {
    StoreObject object;
    object.backend_id = n % 3 == 0 ? "b1" : "b2";
    object.tenant_id = n % 2 == 0 ? "default" : "other";
    object.model_name = n % 5 == 0 ? "m" : "n";
    object.lora_name = n % 7 == 0 ? "" : "adapter";
    object.block_size = kTestBlockSize + static_cast<std::uint32_t>(n % 2);
    object.name = Name(1'000 + n);
    world_.Apply(pool, object);
  }
  ASSERT_EQ(Blocks(), 60u);
  MemoryCap cap = CapOf(1);
  StayBelow(&cap);
  EXPECT_EQ(Blocks(), 0u);
  EXPECT_EQ(world_.Facts(pool).evictions, 60u);
}

TEST_F(EvictTest, WhatIsKnownByNameOnlyGoesToo) {
  const StreamId a = world_.Register("a");
  const std::string whole(32, 'x');
  world_.Store(a, {{1, whole}, {2, whole}}, BlockName{9, whole}, {kA, kB},
               {HashCheck::kNotComputed, false, Tier::kDevice});
  world_.Store(a, {{3, whole}, {4, whole}}, std::nullopt, {kC, kD},
               {HashCheck::kDiffers, true, Tier::kDisk});
  Stored names_only;
  names_only.has_tokens = false;
  names_only.blocks = {{Name(5), 0, HashCheck::kNotComputed}};
  world_.Apply(a, std::move(names_only));
  ASSERT_EQ(Blocks(), 5u);
  MemoryCap cap = CapOf(1);
  StayBelow(&cap);
  EXPECT_EQ(Blocks(), 0u);
  EXPECT_EQ(world_.Facts(a).evictions, 5u);
}

// The gauge stays below max_bytes, whatever shape the prompts have.
TEST_F(EvictTest, BytesStayBelowTheirCap) {
  constexpr std::uint64_t kMaxBytes = 16u << 20;
  StateMachine state;
  Registration registration;
  registration.instance_id = "a";
  registration.model_name = "m";
  registration.block_size = kTestBlockSize;
  registration.endpoint = "tcp://a:1";
  registration.hash_profile = world_.profile;
  state.Apply({{Registered{registration, UnverifiedBlocks::kContent}}});
  Limits limits;
  limits.max_blocks = 0;
  limits.max_bytes = kMaxBytes;
  MemoryCap cap(limits);
  std::uint64_t next = 1, frames = 0;
  const auto flood = [&](std::size_t run_blocks, std::size_t blocks) {
    std::uint64_t most = 0;
    for (std::size_t done = 0; done < blocks; done += 512) {
      Frame frame;
      frame.stream = 1;
      frame.number = frames++;
      for (std::size_t i = 0; i < 512; i += run_blocks) {
        Stored event;
        event.extra_keys_on_wire = true;
        event.block_length = kTestBlockSize;
        for (std::size_t n = 0; n < run_blocks; ++n, ++next) {
          event.blocks.push_back({Name(HashMix(next, 1)), HashMix(next, 2), HashCheck::kEqual});
        }
        frame.events.emplace_back(std::move(event));
      }
      state.Apply({{std::move(frame)}});
      do {
        const Record record = cap.NextSlice(state);
        if (!record.facts.empty()) state.Apply(record);
        ASSERT_FALSE(cap.exhausted());
      } while (cap.IsOver(state));
      state.CleanupSlice(1'000);
      most = std::max<std::uint64_t>(most, state.index().bytes());
    }
    // A group, and prompts of another shape, may go beyond it for a while.
    EXPECT_LE(most, kMaxBytes / 20 * 21) << run_blocks;
    EXPECT_LE(state.index().bytes(), kMaxBytes) << run_blocks;
    EXPECT_GE(state.index().bytes(), kMaxBytes / 10 * 9) << run_blocks;
  };
  flood(512, 1'000'000);
  flood(1, 1'000'000);
  flood(16, 1'000'000);
  EXPECT_EQ(state.index().Inconsistency(), "");
}

// Random trees of several holders: after every block, what a holder has left of a prompt is its
// beginning, and the answers say exactly that.
TEST_F(EvictTest, NoPromptGetsAHole) {
  const char* text = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  std::cout << "CONDUCTOR_SEED=" << seed << "\n";
  std::mt19937_64 random(seed);
  struct Prompt {
    std::vector<BlockName> names;
    std::vector<int> contents;
  };
  std::vector<Prompt> prompts;
  int next = 1;
  for (int i = 0; i < 40; ++i) {
    Prompt prompt;
    if (i > 0) {  // a divergence somewhere in an earlier one
      const Prompt& other = prompts[random() % prompts.size()];
      const auto shared = static_cast<std::ptrdiff_t>(random() % (other.names.size() + 1));
      prompt.names.assign(other.names.begin(), other.names.begin() + shared);
      prompt.contents.assign(other.contents.begin(), other.contents.begin() + shared);
    }
    for (std::uint64_t n = 1 + random() % 90; n > 0; --n, ++next) {
      prompt.names.push_back(Name(10'000 + static_cast<std::uint64_t>(next)));
      prompt.contents.push_back(next);
    }
    prompts.push_back(std::move(prompt));
  }
  const std::string instances[] = {"a", "b", "c"};
  std::map<StreamId, std::set<std::uint64_t>> has;
  std::map<StreamId, std::string> name_of;
  for (const std::string& instance : instances) name_of[world_.Register(instance)] = instance;
  for (const Prompt& prompt : prompts) {
    for (const auto& [stream, instance] : name_of) {
      if (random() % 3 == 0) continue;
      Store(stream, prompt.names, prompt.contents);
      for (const BlockName& name : prompt.names) has[stream].insert(name.projected);
    }
  }
  const auto check = [&](const Prompt& prompt) {
    for (const auto& [stream, instance] : name_of) {
      std::size_t leading = 0, all = 0;
      for (const BlockName& name : prompt.names) {
        const bool here = has[stream].contains(name.projected);
        all += here;
        if (here && leading + 1 == all && prompt.names[leading] == name) ++leading;
      }
      ASSERT_EQ(all, leading) << "a hole of " << instance;
      ASSERT_EQ(world_.Longest(instance, prompt.contents), leading * kTestBlockSize);
    }
  };
  for (const Prompt& prompt : prompts) check(prompt);
  MemoryCap cap = CapOf(1);
  std::uint64_t blocks = Blocks();
  while (blocks > 0) {
    GiveUp(&cap, [&](const Evicted& fact) {
      ASSERT_EQ(has[fact.stream].erase(fact.name.projected), 1u);
      if (Blocks() == blocks) return;  // somebody has it still
      ASSERT_EQ(Blocks(), --blocks);
      check(prompts[random() % prompts.size()]);
    });
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_FALSE(cap.exhausted());
    for (const Prompt& prompt : prompts) check(prompt);
    if (random() % 2 == 0) world_.state->CleanupSlice(1'000);
  }
}

}  // namespace
}  // namespace conductor
