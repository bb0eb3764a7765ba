// The real state against the reference model: random operations, the same questions to both, and
// the digest of a second state that is cleaned up at other moments and restarted from records.
//
// CONDUCTOR_SEED=N replays one seed, CONDUCTOR_SEEDS=N runs that many from the first one on, and
// CONDUCTOR_OPERATIONS=N sets the records of each. The default is a short run (40 seeds of 500);
// a change of the index deserves CONDUCTOR_SEEDS=300 CONDUCTOR_OPERATIONS=1000.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>

#include "src/hex.h"
#include "src/index/walk.h"
#include "src/service/conductor_service.h"
#include "src/state/state_machine.h"
#include "tests/model/random_ops.h"
#include "tests/model/real_names.h"

namespace conductor::model {
namespace {

std::uint64_t EnvironmentNumber(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

Hits ToHits(const QueryAnswer& answer) {
  Hits hits;
  for (const InstanceHits& instance : answer.instances) {
    hits[instance.instance_id] = instance.ranks;
  }
  return hits;
}

std::string Text(const Hits& hits) {
  std::string text;
  for (const auto& [instance, ranks] : hits) {
    for (const auto& [rank, c] : ranks) {
      text += instance + "/" + std::to_string(rank) + ": " + std::to_string(c.device) + " " +
              std::to_string(c.cpu_local) + " " + std::to_string(c.cpu_share) + " " +
              std::to_string(c.disk) + "\n";
    }
  }
  return text;
}

RandomOpsOptions RealOptions() {
  RandomOpsOptions options;
  options.vllm_profile = RealNames::Profile(HashStrategy::kVllmV1, "0");
  options.sglang_profile = RealNames::Profile(HashStrategy::kSglang, "0");
  return options;
}

class Pair {
 public:
  Pair(std::uint64_t seed, RandomOpsOptions options)
      : seed_(seed), ops_(seed, names_, options), cleanup_(seed ^ 0x5eedu) {}

  void Step() {
    const Record record = ops_.NextRecord();
    real_->Apply(record);
    model_.Apply(record);
    records_.push_back(record);
    if (cleanup_.Percent(50)) real_->CleanupSlice(cleanup_.Below(20));
    if (cleanup_.Percent(1)) Restart();
    ComparePrompt();
    CompareHashes();
    CompareFacts();
  }

  // A second state from the same records has the same digest, whatever was cleaned up when.
  void Restart() {
    auto fresh = std::make_unique<StateMachine>();
    for (const Record& record : records_) fresh->Apply(record);
    ASSERT_EQ(Hex128(fresh->Digest()), Hex128(real_->Digest())) << Where();
    if (cleanup_.Percent(50)) real_ = std::move(fresh);
  }

 private:
  std::string Where() const {
    std::string text =
        "CONDUCTOR_SEED=" + std::to_string(seed_) + " record " + std::to_string(records_.size());
    for (const std::string& line : RenderRecord(records_.size(), records_.back())) {
      text += "\n" + line;
    }
    return text + "\n";
  }

  void ComparePrompt() {
    const RandomPrompt prompt = ops_.NextPrompt();
    PromptQuery query;
    query.context = prompt.spec.context;
    query.token_ids = prompt.token_ids;
    query.cache_salt = prompt.cache_salt;
    for (const std::string& item : prompt.items) {
      query.extra_keys.push_back(RealNames::ItemKeys(BlockContent{{}, item}));
    }
    auto answer = MatchPrompt(real_->index(), query);
    ASSERT_TRUE(answer) << answer.error().message;
    std::string asked;
    for (const PromptPosition& p : prompt.spec.positions) {
      asked += " " + std::to_string(p.fingerprint) + "/" + std::to_string(p.exact_name);
    }
    ASSERT_EQ(Text(ToHits(*answer)), Text(model_.Query(prompt.spec)))
        << Where() << " fingerprint/name" << asked << (prompt.spec.salt ? " salted" : "") << "\n"
        << Entries() << model_.Dump();
  }

  void CompareHashes() {
    const HashSpec spec = ops_.NextHashes();
    HashQuery query;
    query.context = spec.context;
    query.hashes = spec.hashes;
    std::string asked;
    for (std::uint64_t hash : spec.hashes) asked += " " + std::to_string(hash);
    ASSERT_EQ(Text(ToHits(MatchHashes(real_->index(), query))), Text(model_.QueryByHash(spec)))
        << Where() << " hashes" << asked << "\n"
        << Entries() << model_.Dump();
  }

  // The live entries, as far as both sides name them: context, scope, name, holders.
  std::string Entries() const {
    std::set<std::string> real, model;
    const PrefixIndex& index = real_->index();
    for (EntryId id = 1; id < index.end_entry_id(); ++id) {
      const conductor::Entry& e = index.entry(id);
      if (!e.in_use || e.scope == kRootScope || !index.IsLive(id)) continue;
      const HolderSet* set = index.holders().Find(e.state.load());
      std::set<std::string> holders;
      for (std::uint32_t i = 0; i < set->size; ++i) {
        const Holder& holder = index.holders().holder(set->holders[i]);
        if (!holder.retired.load()) {
          if (holder.key.pool == 0) holders.insert(HolderText(holder.key.stream, holder.key.tier));
        }
      }
      std::string text;
      for (const std::string& holder : holders) text += " " + holder;
      real.insert(EntryText(index.contexts().context(e.context).key, e.scope, e.projected) + text);
    }
    for (const auto& [key, context] : model_.contexts()) {
      for (const auto& [entry_key, entry] : context.entries) {
        std::set<std::string> holders;
        for (const auto& [holder, copies] : entry.copies) {
          holders.insert(HolderText(holder.stream, holder.tier));
        }
        std::string text;
        for (const std::string& holder : holders) text += " " + holder;
        model.insert(EntryText(key, entry_key.scope, entry_key.name.projected) + text);
      }
    }
    std::string difference;
    for (const std::string& line : real) {
      if (!model.contains(line)) difference += "only real:  " + line + "\n";
    }
    for (const std::string& line : model) {
      if (!real.contains(line)) difference += "only model: " + line + "\n";
    }
    return difference;
  }
  static std::string EntryText(const ContextKey& key, StreamId scope, std::uint64_t name) {
    return key.tenant_id + "|" + key.model_name + "|" + key.lora_name + " " +
           std::to_string(scope) + ":" + std::to_string(name);
  }
  static std::string HolderText(StreamId stream, Tier tier) {
    return std::to_string(stream) + "." + std::string(ToString(tier));
  }

  void CompareFacts() {
    std::uint64_t blocks = 0;
    for (const auto& [key, context] : model_.contexts()) {
      const ContextId id = real_->index().contexts().Find(key);
      ASSERT_NE(id, 0u) << Where();
      ASSERT_EQ(real_->index().contexts().context(id).blocks.load(), model_.PrefixCount(key))
          << Where() << "\n"
          << Entries() << model_.Dump();
      blocks += model_.PrefixCount(key);
    }
    ASSERT_EQ(real_->index().blocks(), blocks) << Where();
    ASSERT_EQ(real_->index().fragments(), model_.FragmentCount()) << Where();
    ASSERT_EQ(real_->streams().size(), model_.streams().size()) << Where();
    for (const auto& [id, stream] : model_.streams()) {
      const StreamFacts* facts = real_->FindStream(id);
      ASSERT_NE(facts, nullptr) << Where();
      EXPECT_EQ(facts->cursor, stream.cursor) << Where();
      EXPECT_EQ(facts->epoch, stream.epoch) << Where();
      EXPECT_EQ(facts->history_from, stream.history_from) << Where();
      EXPECT_EQ(facts->lost, stream.lost_ranges) << Where();
      EXPECT_EQ(facts->verified_ever, stream.ever_verified) << Where();
      EXPECT_EQ(facts->remove_unknown, stream.counters.remove_unknown) << Where();
      EXPECT_EQ(facts->blocks_rejected, stream.counters.rejected_blocks) << Where() << id;
      EXPECT_EQ(facts->fragments_rejected, stream.counters.fragments_rejected) << Where() << id;
      const auto tiers = model_.BlocksByTier(id);
      for (int t = 0; t < kTierCount; ++t) {
        EXPECT_EQ(real_->index().BlocksOf(id, static_cast<Tier>(t + 1)),
                  tiers[static_cast<std::size_t>(t)])
            << Where() << " stream " << id << " tier " << t;
      }
    }
  }

  const std::uint64_t seed_;
  RealNames names_;
  RandomOps ops_;
  RandomSource cleanup_;
  ReferenceModel model_;
  std::unique_ptr<StateMachine> real_ = std::make_unique<StateMachine>();
  std::vector<Record> records_;
};

void Compare(RandomOpsOptions options) {
  const std::uint64_t first = EnvironmentNumber("CONDUCTOR_SEED", 1);
  const bool one = std::getenv("CONDUCTOR_SEED") != nullptr;
  const std::uint64_t records = EnvironmentNumber("CONDUCTOR_OPERATIONS", 500);
  const std::uint64_t seeds = one ? 1 : EnvironmentNumber("CONDUCTOR_SEEDS", 40);
  std::cout << "CONDUCTOR_SEED=" << first << ".." << first + seeds - 1 << "\n";
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Pair pair(seed, options);
    for (std::uint64_t i = 0; i < records; ++i) {
      pair.Step();
      if (::testing::Test::HasFailure()) return;
    }
    pair.Restart();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(DifferentialTest, PlausibleStreamsAgreeWithTheModel) {
  RandomOpsOptions options = RealOptions();
  options.forged_links = false;
  options.mixed_spellings = false;
  Compare(options);
}

TEST(DifferentialTest, ForgedStreamsAgreeWithTheModel) {
  Compare(RealOptions());
}

}  // namespace
}  // namespace conductor::model
