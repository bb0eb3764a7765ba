// The random operations and the model together: everything follows from the seed, the model's
// invariants hold after every record, and the operations reach what they are there to reach.
#include "tests/model/random_ops.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>

namespace conductor::model {
namespace {

std::uint64_t FirstSeed() {
  const char* text = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = text ? std::strtoull(text, nullptr, 10) : 20'001;
  std::cout << "CONDUCTOR_SEED=" << seed << "\n";
  return seed;
}

constexpr int kSeeds = 6;
constexpr int kRecords = 2'000;

TEST(RandomOpsTest, TheSameSeedGivesTheSameState) {
  const std::uint64_t seed = FirstSeed();
  const SyntheticNames names;
  RandomOps one(seed, names), two(seed, names), other(seed + 1, names);
  ReferenceModel model_one, model_two, model_other;
  for (int i = 0; i < 300; ++i) {
    model_one.Apply(one.NextRecord());
    model_two.Apply(two.NextRecord());
    model_other.Apply(other.NextRecord());
    EXPECT_EQ(model_one.Query(one.NextPrompt().spec), model_two.Query(two.NextPrompt().spec));
  }
  EXPECT_EQ(model_one.Dump(), model_two.Dump());
  EXPECT_NE(model_one.Dump(), model_other.Dump());
}

TEST(RandomOpsTest, InvariantsHoldAfterEveryRecord) {
  const std::uint64_t first = FirstSeed();
  const SyntheticNames names;
  for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
    RandomOps ops(seed, names);
    ReferenceModel model(seed % 2 == 0 ? 1'000'000 : 25);
    for (int i = 0; i < kRecords; ++i) {
      model.Apply(ops.NextRecord());
      ASSERT_EQ(model.CheckInvariants(), "") << "seed " << seed << " record " << i << "\n"
                                             << model.Dump();
    }
  }
}

TEST(RandomOpsTest, FactsMayBePackedIntoRecordsAtWill) {
  const SyntheticNames names;
  RandomOps ops(FirstSeed(), names);
  ReferenceModel packed, single;
  for (int i = 0; i < kRecords; ++i) {
    const Record record = ops.NextRecord();
    packed.Apply(record);
    for (const Fact& fact : record.facts) single.Apply(Record{{fact}});
  }
  EXPECT_EQ(packed.Dump(), single.Dump());
}

TEST(RandomOpsTest, BoundariesNeverFallAndNeverPassThePrompt) {
  const SyntheticNames names;
  RandomOps ops(FirstSeed(), names);
  ReferenceModel model;
  for (int i = 0; i < kRecords; ++i) {
    model.Apply(ops.NextRecord());
    const RandomPrompt prompt = ops.NextPrompt();
    for (const auto& [instance, ranks] : model.Query(prompt.spec)) {
      for (const auto& [rank, counts] : ranks) {
        EXPECT_LE(counts.device, counts.cpu_local);
        EXPECT_LE(counts.cpu_local, counts.cpu_share);
        EXPECT_LE(counts.cpu_share, counts.disk);
        EXPECT_LE(counts.disk, prompt.token_ids.size());
      }
    }
  }
}

TEST(RandomOpsTest, EverythingWorthComparingIsReached) {
  const std::uint64_t first = FirstSeed();
  const SyntheticNames names;
  std::set<BlockClass> classes;
  std::set<std::string> reached;
  std::uint64_t hits = 0, by_hash_hits = 0, queries = 0, entries_max = 0;
  Counters totals;
  for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
    RandomOps ops(seed, names);
    ReferenceModel model(seed % 2 == 0 ? 1'000'000 : 25);
    for (int i = 0; i < kRecords; ++i) {
      model.Apply(ops.NextRecord());
      std::uint64_t entries = 0;
      for (const auto& [key, context] : model.contexts()) {
        entries += context.entries.size();
        for (const auto& [entry_key, entry] : context.entries) {
          classes.insert(entry.block_class);
          if (!entry.link) reached.insert("no link");
          if (entry.link && entry.link->salt) reached.insert("salt");
          if (entry.link && entry.link->length < key.block_size) reached.insert("short block");
          std::set<StreamId> streams;
          for (const auto& [holder, copies] : entry.copies) {
            streams.insert(holder.stream);
            if (copies > 1) reached.insert("several copies");
          }
          if (streams.size() > 1) reached.insert("several streams");
          if (context.pool.contains(entry_key.name.projected)) reached.insert("pool on entry");
        }
      }
      entries_max = std::max(entries_max, entries);
      if (model.PoolOnlyNameCount() > 0) reached.insert("pool only");
      const RandomPrompt prompt = ops.NextPrompt();
      for (const auto& [instance, ranks] : model.Query(prompt.spec)) {
        for (const auto& [rank, counts] : ranks) {
          if (counts.disk > 0) ++hits;
          if (counts.device > 0 && counts.device < counts.cpu_local) reached.insert("local phase");
          if (counts.cpu_local > 0 && counts.cpu_local < counts.cpu_share) {
            reached.insert("share phase");
          }
          if (counts.cpu_share > 0 && counts.cpu_share < counts.disk) reached.insert("disk phase");
          ++queries;
        }
      }
      for (const auto& [instance, ranks] : model.QueryByHash(ops.NextHashes())) {
        for (const auto& [rank, counts] : ranks) by_hash_hits += counts.disk > 0 ? 1 : 0;
      }
    }
    totals.remove_unknown += model.totals().remove_unknown;
    totals.rejected_blocks += model.totals().rejected_blocks;
    totals.fragments_rejected += model.totals().fragments_rejected;
  }
  std::cout << "rows " << queries << ", hits " << hits << ", by hash " << by_hash_hits
            << ", entries at most " << entries_max << ", rejected " << totals.rejected_blocks
            << ", fragments rejected " << totals.fragments_rejected << ", unknown "
            << totals.remove_unknown << "\n";
  EXPECT_EQ(classes.size(), 5u);
  EXPECT_EQ(reached, (std::set<std::string>{"no link", "salt", "short block", "several copies",
                                            "several streams", "pool on entry", "pool only",
                                            "local phase", "share phase", "disk phase"}));
  EXPECT_GT(hits, queries / 20);
  EXPECT_GT(by_hash_hits, 0u);
  EXPECT_GT(totals.rejected_blocks, 0u);
  EXPECT_GT(totals.fragments_rejected, 0u);
  EXPECT_GT(totals.remove_unknown, 0u);
}

}  // namespace
}  // namespace conductor::model
