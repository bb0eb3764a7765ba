// The gauge of the index's bytes is what the process grew by, within 10 %; and what a block costs
// is what docs/index.md says.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "src/index/mix.h"
#include "src/resident_memory.h"
#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

constexpr std::size_t kRecordBlocks = 4'096;

struct Growth {
  std::size_t gauge = 0, resident = 0;
};

template <typename Measure>
Growth InOwnProcess(const Measure& measure) {
  // Its heap holds nothing free that others have used.
  Growth growth;
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  EXPECT_NE(child, -1);
  if (child == 0) {
    malloc_trim(0);
    growth = measure();
    const bool told = write(ends[1], &growth, sizeof growth) == sizeof growth;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  EXPECT_EQ(read(ends[0], &growth, sizeof growth), static_cast<ssize_t>(sizeof growth));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return growth;
}

Growth Fill(std::size_t blocks, std::size_t run_blocks) {
  StateMachine state;
  Registration registration;
  registration.model_name = "m";
  registration.instance_id = "a";
  registration.block_size = kTestBlockSize;
  registration.hash_profile = model::RealNames::Profile(HashStrategy::kVllmV1, "0");
  state.Apply({{Registered{registration, UnverifiedBlocks::kContent}}});
  Record record;
  record.facts.emplace_back(Frame{});
  Frame& frame = std::get<Frame>(record.facts.front());
  frame.stream = 1;
  frame.events.resize(kRecordBlocks / run_blocks);
  std::uint64_t next = 1;
  const auto refill = [&] {
    for (Event& event : frame.events) {
      Stored& stored = event.emplace<Stored>();
      stored.extra_keys_on_wire = true;
      stored.block_length = kTestBlockSize;
      stored.blocks.resize(run_blocks);
      for (StoredBlock& block : stored.blocks) {
        block = {Name(HashMix(next, 1)), HashMix(next, 2), HashCheck::kEqual};
        ++next;
      }
      stored.last_digest.emplace();
      stored.last_digest->fill(static_cast<std::uint8_t>(next));
    }
    ++frame.number;
  };
  refill();
  state.Apply(record);  // the memory of the record itself counts before
  const Growth before = {state.index().bytes(), ResidentBytes()};
  for (std::size_t done = 0; done < blocks; done += kRecordBlocks) {
    refill();
    state.Apply(record);
    state.CleanupSlice(1'000);
  }
  return {state.index().bytes() - before.gauge, ResidentBytes() - before.resident};
}

// What docs/index.md sums up, with maps at their emptiest.
double BytesMax(std::size_t run_blocks) {
  constexpr double kSlot = 24, kMapSlot = 13, kHeader = 24, kBreaksAndHint = 12, kDigest = 36;
  // Of blocks alone in their runs only the newest 65,536 keep their digests.
  const double digest = run_blocks == 1 ? kDigest / 30 : kDigest;
  const double run = kHeader + kMapSlot + (run_blocks == 1 ? 0 : kBreaksAndHint) + digest;
  return kSlot + kMapSlot + run / static_cast<double>(std::min<std::size_t>(run_blocks, 64));
}

class MemoryTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(MemoryTest, TheGaugeAgreesWithTheProcess) {
  constexpr std::size_t kBlocks = 2'000'000;
  const Growth growth = InOwnProcess([] { return Fill(kBlocks, GetParam()); });
  const double gauge = static_cast<double>(growth.gauge) / kBlocks;
  const double resident = static_cast<double>(growth.resident) / kBlocks;
  std::printf("bytes per block: gauge %.1f, resident %.1f\n", gauge, resident);
  EXPECT_GT(gauge, 20);
  EXPECT_LT(gauge, BytesMax(GetParam()));
  EXPECT_NEAR(gauge, resident, 0.1 * resident);
}

INSTANTIATE_TEST_SUITE_P(Runs, MemoryTest, testing::Values(512, 64, 8, 1),
                         testing::PrintToStringParamName());

// Prompts of as many blocks as there are holders: the first holder has all of a prompt, each one
// after it a block less. So each block has a set of its own, and what there is are sets, and the
// lists of them that holders keep.
Growth Share(std::size_t holders, std::size_t prompts) {
  StateMachine state;
  Registration registration;
  registration.model_name = "m";
  registration.block_size = kTestBlockSize;
  registration.hash_profile = model::RealNames::Profile(HashStrategy::kVllmV1, "0");
  for (std::size_t i = 0; i < holders; ++i) {
    registration.instance_id = "i" + std::to_string(i);
    state.Apply({{Registered{registration, UnverifiedBlocks::kContent}}});
  }
  malloc_trim(0);
  // What the state keeps of streams counts before.
  const Growth before = {state.index().bytes(), ResidentBytes()};
  for (std::size_t prompt = 0; prompt < prompts; ++prompt) {
    Stored event;
    event.block_length = kTestBlockSize;
    event.extra_keys_on_wire = true;
    for (std::size_t i = 0; i < holders; ++i) {
      const std::uint64_t block = prompt * holders + i;
      event.blocks.push_back({Name(HashMix(block, 1)), HashMix(block, 2), HashCheck::kEqual});
    }
    Record record;
    record.facts.emplace_back(Frame{});
    Frame& frame = std::get<Frame>(record.facts.front());
    frame.events.push_back(std::move(event));
    // Each prompt begins with another holder: sets of different prompts differ.
    const std::size_t stride = 1 + 2 * prompt;
    for (std::size_t i = 0; i < holders; ++i) {
      frame.stream = 1 + (prompt / holders + i * stride) % holders;
      frame.number = prompt;
      state.Apply(record);
      std::get<Stored>(frame.events.front()).blocks.pop_back();
    }
  }
  while (state.CleanupSlice(1'000)) {
  }
  malloc_trim(0);  // as the service does
  return {state.index().bytes() - before.gauge, ResidentBytes() - before.resident};
}

// How many holders there are, and of how many prompts.
class HolderMemoryTest : public ::testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

TEST_P(HolderMemoryTest, TheGaugeAgreesWithTheProcess) {
  const auto [holders, prompts] = GetParam();
  const Growth growth = InOwnProcess([&] { return Share(holders, prompts); });
  const auto gauge = static_cast<double>(growth.gauge);
  const auto resident = static_cast<double>(growth.resident);
  std::printf("MiB: gauge %.1f, resident %.1f\n", gauge / (1 << 20), resident / (1 << 20));
  // Sets alone, of half of the holders each.
  EXPECT_GT(gauge, static_cast<double>(prompts * holders * holders / 2 * sizeof(HolderId)));
  EXPECT_NEAR(gauge, resident, 0.1 * resident);
}

INSTANTIATE_TEST_SUITE_P(Holders, HolderMemoryTest,
                         testing::Values(std::pair{64, 512}, std::pair{3'000, 1}));

}  // namespace
}  // namespace conductor
