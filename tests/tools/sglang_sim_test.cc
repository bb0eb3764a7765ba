// The engine simulator as an SGLang engine: pages, bigrams, salts, the host cache.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/sim_test_util.h"
#include "tools/engine_sim.h"

namespace conductor::enginesim {
namespace {

using Json = nlohmann::json;

constexpr double kNow = 1'747'000'000.25;

HashProfile Sglang(const char* strategy = "sglang") {
  return MakeHashProfile(strategy, "sha256_raw", "0", "first64_be").value();
}

class SglangSimTest : public ::testing::Test {
 protected:
  void Start(EngineOptions options) {
    if (options.profile.strategy == HashStrategy::kVllmV1) options.profile = Sglang();
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
  void ExpectBatch(std::vector<EngineEvent> events) {
    const EventBatch batch{.ts = kNow, .events = std::move(events), .dp_rank = 0};
    EXPECT_EQ(Hex(MustReceive(sub_).back()),
              Hex(EncodeSglangBatch(engine_->options().sglang_era, batch)));
  }

  static BlockStoredEvent Stored(std::vector<std::int64_t> names, std::vector<std::int32_t> tokens,
                                 std::int64_t page, std::optional<std::int64_t> parent = {}) {
    BlockStoredEvent event;
    for (const std::int64_t name : names) event.block_hashes.emplace_back(name);
    event.token_ids = std::move(tokens);
    event.block_size = page;
    if (parent) event.parent_block_hash = *parent;
    return event;
  }

  ZmqContext context_;
  std::unique_ptr<EngineSim> engine_;
  ZmqSocket sub_;
};

// The names that the golden frames give tokens 1..4, 5..8 behind them, and 5, 6 behind them.
constexpr std::int64_t kFirst = static_cast<std::int64_t>(14958615928728313947u);
constexpr std::int64_t kSecond = 5674439469042975057;
constexpr std::int64_t kShort = static_cast<std::int64_t>(14751647043112207423u);

TEST_F(SglangSimTest, PagesAreNamedAsTheGoldenFramesNameThem) {
  Start({.block_size = 4});
  EXPECT_EQ(Prompt({.tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9}}).stored_blocks, 2u);
  ExpectBatch({Stored({kFirst, kSecond}, {1, 2, 3, 4, 5, 6, 7, 8}, 4)});
}

TEST_F(SglangSimTest, AShortLastPageIsAnEventOfItsOwnWhenAskedFor) {
  Start({.block_size = 4, .short_pages = true});
  EXPECT_EQ(Prompt({.tokens = {1, 2, 3, 4, 5, 6}}).stored_blocks, 2u);
  ExpectBatch({Stored({kFirst}, {1, 2, 3, 4}, 4), Stored({kShort}, {5, 6}, 2, kFirst)});
  EXPECT_EQ(Prompt({.tokens = {1, 2, 3, 4, 5, 6}}).hit_tokens, 6u);
  EXPECT_EQ(Prompt({.tokens = {1, 2, 3, 4, 5, 6, 7}}).hit_tokens, 4u);
}

TEST_F(SglangSimTest, EveryGoldenHashComesOutOfItsPrompt) {
  int cases = 0;
  const Json golden = ReadGolden("hash_visible.json");
  for (const Json& entry : golden["cases"]) {
    const std::string strategy = entry["strategy"];
    if (strategy != "sglang" && strategy != "sglang_bigram") continue;
    if (!entry["expected"]["error"].is_null() || entry["expected"]["blocks"].empty()) continue;
    SCOPED_TRACE(entry["name"]);
    Start({.block_size = entry["block_size"],
           .sglang_era = SglangEra::kS4,
           .profile = Sglang(strategy.c_str()),
           .short_pages = true});
    PromptRequest request;
    request.tokens = entry["token_ids"].get<std::vector<std::int32_t>>();
    if (!entry["cache_salt"].is_null()) request.cache_salt = entry["cache_salt"];
    EXPECT_EQ(Prompt(request).stored_blocks, entry["expected"]["blocks"].size());
    const std::string payload = MustReceive(sub_).back();
    for (const Json& block : entry["expected"]["blocks"]) {
      const std::int64_t name = std::stoll(block["wire_int"].get<std::string>());
      const std::string bytes = EncodeSeq(static_cast<std::uint64_t>(name));
      EXPECT_NE(payload.find((name < 0 ? '\xd3' : '\xcf') + bytes), std::string::npos);
    }
    ++cases;
  }
  EXPECT_GE(cases, 6);
}

TEST_F(SglangSimTest, BigramPagesHaveTheirTokensAsPairs) {
  Start({.block_size = 4, .sglang_era = SglangEra::kS3, .profile = Sglang("sglang_bigram")});
  const PromptOutcome outcome = Prompt({.tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9}});
  EXPECT_EQ(outcome.stored_blocks, 2u);
  BlockStoredEvent event = Stored({static_cast<std::int64_t>(17807793963885731275u),
                                   static_cast<std::int64_t>(14076799536063919780u)},
                                  {1, 2, 3, 4, 5, 6, 7, 8, 9}, 4);
  event.bigram = true;
  ExpectBatch({event});
  EXPECT_EQ(Prompt({.tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9}}).hit_tokens, 8u);
  EXPECT_EQ(Prompt({.tokens = {1, 2, 3, 4}}).hit_tokens, 0u);
}

TEST_F(SglangSimTest, ASaltSeedsTheChainAndIsOnTheWire) {
  Start({.block_size = 4});
  Prompt({.tokens = {1, 2, 3, 4}, .cache_salt = "tenant-a"});
  BlockStoredEvent event = Stored({3718046898735569995}, {1, 2, 3, 4}, 4);
  event.cache_salt = "tenant-a";
  ExpectBatch({event});
  EXPECT_EQ(Prompt({.tokens = {1, 2, 3, 4}}).hit_tokens, 0u);
}

TEST_F(SglangSimTest, TheHostCacheIsWrittenThroughAndOutlivesTheDevice) {
  Start({.block_size = 4, .blocks = 1, .host_blocks = 2});
  Prompt({.tokens = {1, 2, 3, 4}});
  BlockStoredEvent device = Stored({kFirst}, {1, 2, 3, 4}, 4);
  BlockStoredEvent host = device;
  host.medium = "CPU_PINNED";
  ExpectBatch({device, host});
  const PromptOutcome other = Prompt({.tokens = {9, 9, 9, 9}});
  EXPECT_EQ(other.removed_blocks, 1u);
  ASSERT_EQ(other.removed.size(), 1u);
  EXPECT_EQ(BlockHasher(Sglang()).Project(other.removed[0]), static_cast<std::uint64_t>(kFirst));
  MustReceive(sub_);
  const PromptOutcome again = Prompt({.tokens = {1, 2, 3, 4}});
  EXPECT_EQ(again.hit_tokens, 0u);
  EXPECT_EQ(again.host_hit_tokens, 4u);
}

TEST_F(SglangSimTest, WhatItsEventsCannotTellIsRefused) {
  Start({.block_size = 4});
  EXPECT_EQ(engine_->Prompt({.tokens = {1}, .lora_name = "ad-1"}).error().message,
            "prompt: SGLang's events tell no adapter and no extra keys");
  EXPECT_EQ(engine_->Prompt({.tokens = {-1}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine_->CachedBlocks(), 0u);
}

}  // namespace
}  // namespace conductor::enginesim
