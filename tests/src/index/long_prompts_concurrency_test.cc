// Readers beside the writer along long prompts: full runs, the hints at their ends, branches at any
// slot, superblocks that come and go.
//
// One publisher, `stable`, has a few prompts of 200 blocks, which share a start, and is never
// touched again. Others store branches of them, evict some from the end and lose the rest, round
// after round. What stable has of each prompt never changes, so each answer must say exactly that.
// Bounded work, no sleeps; the point of it is the build with the thread sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "src/index/mix.h"
#include "tests/model/random_source.h"
#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

using model::RandomSource;

constexpr int kReaders = 3;
constexpr int kRounds = 4;
constexpr std::size_t kBlocks = 200;
constexpr std::size_t kStablePrompts = 4, kShared = 70;
constexpr std::size_t kBranches = 250;

std::uint64_t Seed() {
  const char* text = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  std::cout << "CONDUCTOR_SEED=" << seed << "\n";
  return seed;
}

struct LongPrompt {
  std::vector<std::uint64_t> fingerprints;
  std::vector<BlockName> names;
  std::size_t of_stable = 0;  // blocks that stable has
};

// Goes along `prompt` for `shared` blocks, then its own way.
LongPrompt Branch(const LongPrompt& prompt, std::size_t shared, RandomSource& random) {
  LongPrompt branch = prompt;
  branch.of_stable = std::min(branch.of_stable, shared);
  branch.fingerprints.resize(shared);
  branch.names.resize(shared);
  while (branch.names.size() < kBlocks) {
    branch.fingerprints.push_back(random.Next());
    branch.names.push_back(Name(random.Next()));
  }
  return branch;
}

void Store(StateWorld& world, StreamId stream, const LongPrompt& prompt, std::size_t piece) {
  for (std::size_t i = 0; i < kBlocks; i += piece) {
    Stored event;
    event.extra_keys_on_wire = true;
    event.block_length = kTestBlockSize;
    if (i > 0) event.parent = prompt.names[i - 1];
    for (std::size_t n = i; n < std::min(i + piece, kBlocks); ++n) {
      event.blocks.push_back({prompt.names[n], prompt.fingerprints[n], HashCheck::kEqual});
    }
    world.Apply(stream, std::move(event));
  }
}

// The last `count` blocks, from the end, as an engine evicts.
void EvictEnd(StateWorld& world, StreamId stream, const LongPrompt& prompt, std::size_t count) {
  world.Remove(stream,
               {prompt.names.rbegin(), prompt.names.rbegin() + static_cast<std::ptrdiff_t>(count)});
}

// Empty, or what is wrong with the answer.
std::string Broken(const PrefixIndex& index, const LongPrompt& prompt) {
  const QueryAnswer answer =
      MatchFingerprints(index, {StateWorld::Key(), prompt.fingerprints, QueryOptions{}});
  bool stable = false;
  for (const InstanceHits& hits : answer.instances) {
    const std::string row = hits.instance_id + ": " + std::to_string(hits.best.device) + " tokens";
    if (hits.best.device != hits.best.disk) return row + ", but all is on the device";
    if (hits.best.device % kTestBlockSize != 0) return row;
    if (hits.best.device > kBlocks * kTestBlockSize) return row;
    if (hits.instance_id != "stable") continue;
    stable = true;
    if (hits.best.device != prompt.of_stable * kTestBlockSize) {
      return row + ", expected " + std::to_string(prompt.of_stable * kTestBlockSize);
    }
  }
  return stable ? "" : "stable: no row";
}

// Everyone but stable stores branches, evicts some and is cleared. Returns the bytes of runs when
// there were the most.
std::size_t GrowAndShrink(StateWorld& world, const std::vector<StreamId>& others,
                          const std::vector<LongPrompt>& prompts, RandomSource& random) {
  const std::size_t pieces[] = {7, 16, 64, 200};
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const StreamId stream = others[i % others.size()];
    Store(world, stream, prompts[i], pieces[random.Below(4)]);
    if (random.Percent(30)) Store(world, others[random.Below(others.size())], prompts[i], 64);
    if (random.Percent(40)) EvictEnd(world, stream, prompts[i], 1 + random.Below(kBlocks));
    world.state->CleanupSlice(64);
  }
  const std::size_t most = world.state->index().runs().bytes();
  for (const StreamId stream : others) world.Apply(stream, Cleared{.all_tiers = true});
  while (world.state->CleanupSlice(64)) {
  }
  return most;
}

TEST(IndexConcurrencyTest, LongPromptsAreWholeBesideTheWriter) {
  RandomSource random(Seed());
  StateWorld world;
  const StreamId stable = world.Register("stable");
  std::vector<StreamId> others;
  for (int i = 0; i < 5; ++i) others.push_back(world.Register("other-" + std::to_string(i)));
  std::vector<LongPrompt> prompts;
  prompts.push_back(Branch({}, 0, random));
  while (prompts.size() < kStablePrompts) prompts.push_back(Branch(prompts[0], kShared, random));
  for (LongPrompt& prompt : prompts) {
    prompt.of_stable = kBlocks;
    Store(world, stable, prompt, kBlocks);
  }
  while (prompts.size() < kStablePrompts + kBranches) {
    prompts.push_back(Branch(prompts[random.Below(kStablePrompts)], random.Below(kBlocks), random));
  }
  const PrefixIndex& index = world.state->index();
  const std::uint64_t blocks = index.blocks();
  ASSERT_EQ(blocks, kShared + kStablePrompts * (kBlocks - kShared));
  const std::size_t least = index.runs().bytes();

  std::atomic<bool> done{false};
  std::atomic<int> ready{0};
  std::vector<std::string> broken(kReaders);
  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < kReaders; ++r) {
    readers.emplace_back([&, r] {
      std::size_t i = r;
      do {
        // What stable has to the end is asked for every other time.
        const std::size_t which = i % 2 == 0 ? i / 2 % kStablePrompts : i % prompts.size();
        broken[r] = Broken(index, prompts[which]);
        if (i++ == r) ready.fetch_add(1);
      } while (broken[r].empty() && !done.load(std::memory_order_acquire));
    });
  }
  while (ready.load() < kReaders) std::this_thread::yield();
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t most = GrowAndShrink(world, others, prompts, random);
    EXPECT_GT(most, least) << "round " << round;
    EXPECT_EQ(index.blocks(), blocks) << "round " << round;
    EXPECT_EQ(index.Inconsistency(), "") << "round " << round;
    // Superblocks are given back while readers go on: they pin an epoch for one query only.
    while (index.runs().bytes() >= most) {
      world.state->CleanupSlice(1);
      std::this_thread::yield();
    }
  }
  done.store(true, std::memory_order_release);
  for (std::thread& reader : readers) reader.join();
  for (const std::string& wrong : broken) EXPECT_EQ(wrong, "");
  for (const LongPrompt& prompt : prompts) EXPECT_EQ(Broken(index, prompt), "");
}

}  // namespace
}  // namespace conductor
