#include "tools/engine_sim.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "tests/tools/sim_test_util.h"
#include "tools/fleet.h"

namespace conductor::enginesim {
namespace {

constexpr double kNow = 1'747'000'000.25;

std::vector<std::int32_t> Tokens(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::uint64_t Low64(const Digest& digest) {
  return BlockHasher(Profile()).Project(digest);
}

class EngineSimTest : public ::testing::Test {
 protected:
  void Start(EngineOptions options) {
    options.block_size = 4;
    options.profile = Profile();
    options.publisher.replay_endpoint = "tcp://127.0.0.1:*";
    options.now = [] { return kNow; };
    auto started = EngineSim::Start(context_, options);
    ASSERT_TRUE(started) << started.error().message;
    engine_ = std::move(*started);
    sub_ = OpenClient(context_, ZMQ_SUB, engine_->publisher().endpoint());
    ASSERT_TRUE(engine_->publisher().WaitUntil(
        [](const PublisherStats& stats) { return stats.subscriptions == 1; }, kDeadline));
  }

  PromptOutcome Prompt(const PromptRequest& request) { return engine_->Prompt(request).value(); }

  // The payload that must come next is exactly this batch.
  void ExpectBatch(std::vector<EngineEvent> events, std::int64_t rank = 0) {
    const EventBatch batch{.ts = kNow, .events = std::move(events), .dp_rank = rank};
    EXPECT_EQ(MustReceive(sub_).back(), EncodeBatch(engine_->options().era, batch));
  }

  static std::vector<Digest> Chain(const std::vector<std::int32_t>& tokens,
                                   const std::string& lora = "", const std::string& salt = "") {
    return BlockHasher(Profile()).HashPrompt(tokens, 4, lora, salt).value();
  }

  static BlockStoredEvent Stored(const std::vector<std::int32_t>& tokens,
                                 const std::vector<Digest>& chain, std::size_t from) {
    BlockStoredEvent event;
    event.token_ids.assign(tokens.begin() + static_cast<std::ptrdiff_t>(from * 4),
                           tokens.begin() + static_cast<std::ptrdiff_t>(chain.size() * 4));
    event.block_size = 4;
    event.group_idx = 0;
    event.spec_kind = "full_attention";
    if (from > 0) event.parent_block_hash = Low64(chain[from - 1]);
    event.extra_keys.emplace();
    for (std::size_t i = from; i < chain.size(); ++i) {
      event.block_hashes.emplace_back(Low64(chain[i]));
      event.extra_keys->emplace_back();
    }
    return event;
  }

  static BlockRemovedEvent Removed(const Digest& digest) {
    BlockRemovedEvent event;
    event.block_hashes.emplace_back(Low64(digest));
    event.group_idx = 0;
    return event;
  }

  ZmqContext context_;
  std::unique_ptr<EngineSim> engine_;
  ZmqSocket sub_;
};

TEST_F(EngineSimTest, APromptPublishesItsNewBlocksUnderTheirRealHashes) {
  Start({});
  const auto tokens = Tokens(1, 10);  // two full blocks and a tail that has no hash
  const PromptOutcome first = Prompt({.tokens = tokens});
  EXPECT_EQ(first.hit_tokens, 0u);
  EXPECT_EQ(first.stored_blocks, 2u);
  EXPECT_EQ(first.seq, 0u);
  ExpectBatch({Stored(tokens, Chain(tokens), 0)});

  const auto longer = Tokens(1, 12);
  const PromptOutcome second = Prompt({.tokens = longer});
  EXPECT_EQ(second.hit_tokens, 8u);
  EXPECT_EQ(second.seq, 1u);
  ExpectBatch({Stored(longer, Chain(longer), 2)});
}

TEST_F(EngineSimTest, GoldenHashesComeOutOfThePrompt) {
  Start({});
  Prompt({.tokens = Tokens(1, 8)});
  const std::string payload = MustReceive(sub_).back();
  // The names that the golden frames give tokens 1..8 in blocks of 4 (seed 0, sha256_cbor).
  EXPECT_NE(payload.find(FromHex("cf1e0b2e028ef071cbcfefad121d154ab2d6")), std::string::npos);
}

TEST_F(EngineSimTest, EvictedBlocksAreRemovedBeforeTheNewOnesAreStored) {
  Start({.blocks = 3});
  const auto old_tokens = Tokens(1, 8), new_tokens = Tokens(100, 8);
  Prompt({.tokens = old_tokens});
  MustReceive(sub_);
  const PromptOutcome outcome = Prompt({.tokens = new_tokens});
  EXPECT_EQ(outcome.removed_blocks, 1u);
  EXPECT_EQ(outcome.stored_blocks, 2u);
  ExpectBatch({Removed(Chain(old_tokens)[1]), Stored(new_tokens, Chain(new_tokens), 0)});
}

TEST_F(EngineSimTest, APromptThatChangesNothingPublishesNothing) {
  Start({});
  Prompt({.tokens = Tokens(1, 4)});
  EXPECT_EQ(Prompt({.tokens = Tokens(1, 4)}).seq, std::nullopt);
  EXPECT_EQ(Prompt({.tokens = Tokens(1, 3)}).seq, std::nullopt);
  EXPECT_EQ(engine_->publisher().stats().next_seq, 1u);
}

TEST_F(EngineSimTest, SaltAndAdapterSeparatePromptsAndAreOnTheWire) {
  Start({.era = Era::kC});
  const auto tokens = Tokens(1, 8);
  Prompt({.tokens = tokens});
  MustReceive(sub_);
  EXPECT_EQ(Prompt({.tokens = tokens, .lora_name = "ad-1", .cache_salt = "t"}).hit_tokens, 0u);
  BlockStoredEvent event = Stored(tokens, Chain(tokens, "ad-1", "t"), 0);
  const ExtraKey lora{ExtraKey::Kind::kText, "ad-1", 0}, salt{ExtraKey::Kind::kText, "t", 0};
  event.extra_keys = {{lora, salt}, {lora}};
  event.lora_id = 1;
  event.lora_name = "ad-1";
  ExpectBatch({event});
}

TEST_F(EngineSimTest, TheOldestEraHashesTheAdaptersNumber) {
  Start({.era = Era::kA});
  const auto tokens = Tokens(1, 4);
  Prompt({.tokens = tokens, .lora_name = "ad-1"});
  BlockStoredEvent event = Stored(tokens, Chain(tokens, "lora_id:1"), 0);
  event.lora_id = 1;
  ExpectBatch({event});
}

TEST_F(EngineSimTest, NamesMayBeWholeDigestsOrSigned) {
  const auto tokens = Tokens(1, 4);
  const Digest digest = Chain(tokens)[0];
  Start({.names = NameForm::kBytes});
  Prompt({.tokens = tokens});
  BlockStoredEvent event = Stored(tokens, Chain(tokens), 0);
  event.block_hashes = {std::string(digest.begin(), digest.end())};
  ExpectBatch({event});

  Start({.names = NameForm::kSignedInt});
  Prompt({.tokens = tokens});
  event.block_hashes = {static_cast<std::int64_t>(Low64(digest))};
  ExpectBatch({event});
}

TEST_F(EngineSimTest, ClearEmptiesTheCacheAndSaysSo) {
  Start({});
  Prompt({.tokens = Tokens(1, 8)});
  MustReceive(sub_);
  EXPECT_EQ(engine_->Clear(), 1u);
  ExpectBatch({AllBlocksClearedEvent{}});
  EXPECT_EQ(engine_->CachedBlocks(), 0u);
  EXPECT_EQ(Prompt({.tokens = Tokens(1, 8)}).stored_blocks, 2u);
}

TEST_F(EngineSimTest, ANewLifeHasAnEmptyCacheAndCountsFromZero) {
  Start({});
  Prompt({.tokens = Tokens(1, 8)});
  engine_->Restart();
  const PromptOutcome outcome = Prompt({.tokens = Tokens(1, 8)});
  EXPECT_EQ(outcome.stored_blocks, 2u);
  EXPECT_EQ(outcome.seq, 0u);
}

TEST_F(EngineSimTest, RanksHaveCachesAndPublishersOfTheirOwn) {
  Start({.dp_ranks = 2});
  const auto tokens = Tokens(1, 4);
  Prompt({.tokens = tokens});
  MustReceive(sub_);
  sub_ = OpenClient(context_, ZMQ_SUB, engine_->publisher(1).endpoint());
  ASSERT_TRUE(engine_->publisher(1).WaitUntil(
      [](const PublisherStats& stats) { return stats.subscriptions == 1; }, kDeadline));
  const PromptOutcome outcome = Prompt({.tokens = tokens, .dp_rank = 1});
  EXPECT_EQ(outcome.hit_tokens, 0u);
  EXPECT_EQ(outcome.seq, 0u);
  ExpectBatch({Stored(tokens, Chain(tokens), 0)}, 1);
}

TEST_F(EngineSimTest, WrongPromptsAreRefusedAndChangeNothing) {
  Start({});
  EXPECT_EQ(engine_->Prompt({.tokens = {1}, .dp_rank = 1}).error().message,
            "prompt: rank 1, the engine has 1");
  EXPECT_EQ(
      engine_->Prompt({.tokens = std::vector<std::int32_t>(kPromptTokensMax + 1)}).error().code,
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine_->Prompt({.tokens = Tokens(1, 4), .cache_salt = "\xff"}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine_->CachedBlocks(), 0u);
}

TEST_F(EngineSimTest, WrongOptionsAreRefused) {
  for (const EngineOptions& options : {EngineOptions{.block_size = 0, .profile = Profile()},
                                       EngineOptions{.blocks = 0, .profile = Profile()},
                                       EngineOptions{.profile = Profile(), .dp_ranks = 0},
                                       EngineOptions{.profile = Profile(), .short_pages = true},
                                       EngineOptions{.profile = Profile(), .host_blocks = 1}}) {
    const auto engine = EngineSim::Start(context_, options);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(ParseNameForm("hex"));
}

TEST(FleetTest, EnginesAreDescribedWithTheirEndpoints) {
  FleetOptions options;
  options.engines = 3;
  options.model_name = "m";
  options.engine.profile = Profile("sha256");
  options.engine.dp_ranks = 2;
  auto fleet = std::move(Fleet::Start(options).value());
  const auto description = nlohmann::json::parse(fleet->Describe("tcp://c"));
  EXPECT_EQ(description["control"], "tcp://c");
  EXPECT_EQ(description["model"], "m");
  EXPECT_EQ(description["hash_profile"]["algorithm"], "sha256");
  ASSERT_EQ(description["engines"].size(), 3u);
  EXPECT_EQ(description["engines"][2]["ranks"][1]["live"],
            fleet->engine(2).publisher(1).endpoint());
  EXPECT_EQ(description["engines"][2]["replay"], fleet->engine(2).publisher(0).replay_endpoint());
}

TEST(FleetTest, GivenEndpointsReplaceTheLayout) {
  FleetOptions options;
  options.engine.profile = Profile();
  options.publish_endpoints = {"inproc://fleet-live"};
  options.replay = false;
  auto fleet = std::move(Fleet::Start(options).value());
  EXPECT_EQ(fleet->engine(0).publisher().endpoint(), "inproc://fleet-live");
  EXPECT_EQ(fleet->engine(0).publisher().replay_endpoint(), "");
}

TEST(FleetTest, LayoutsThatCannotBeAreRefused) {
  FleetOptions good;
  good.engine.profile = Profile();
  FleetOptions none = good, too_high = good, uneven = good;
  none.engines = 0;
  too_high.base_port = 65'535;
  uneven.publish_endpoints = {"inproc://a", "inproc://b"};
  for (const FleetOptions& options : {none, too_high, uneven}) {
    const auto fleet = Fleet::Start(options);
    ASSERT_FALSE(fleet);
    EXPECT_EQ(fleet.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace conductor::enginesim
