// What the golden vectors do not show: equal ways to one digest, and what is refused.
#include "src/hash/chain.h"

#include <gtest/gtest.h>

#include <numeric>

#include "src/hash/extra_keys.h"
#include "src/hash/profile.h"
#include "src/hash/sha256.h"
#include "tests/src/hash/golden.h"

namespace conductor {
namespace {

BlockHasher Vllm(std::string_view algorithm = "sha256_cbor") {
  return BlockHasher(MakeHashProfile("vllm_v1", algorithm, "0", "low64_be").value());
}
BlockHasher Sglang(std::string_view strategy = "sglang") {
  return BlockHasher(MakeHashProfile(strategy, "sha256_raw", "", "first64_be").value());
}
std::vector<std::int32_t> Iota(std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

void ExpectRefused(const Result<Digest>& digest, const std::string& field, long long index) {
  ASSERT_FALSE(digest.has_value());
  EXPECT_EQ(digest.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(digest.error().reason, "invalid_value");
  EXPECT_EQ(digest.error().field, field);
  EXPECT_EQ(digest.error().index, index);
}

TEST(BlockHasherTest, VllmNullParentIsTheRoot) {
  const BlockHasher hasher = Vllm();
  const auto tokens = Iota(16);
  const Digest root = hasher.Root();
  EXPECT_EQ(hasher.HashBlock(nullptr, tokens, {}).value(),
            hasher.HashBlock(&root, tokens, {}).value());
}

TEST(BlockHasherTest, HashTokensEqualsHashBlockWithoutExtraKeys) {
  for (const std::string_view algorithm : {"sha256", "sha256_cbor"}) {
    const BlockHasher hasher = Vllm(algorithm);
    for (const std::size_t count : {1, 2, 3, 4, 16, 383, 384, 385, 2000, 20000}) {
      const auto tokens = Iota(count);
      EXPECT_EQ(hasher.HashTokens(hasher.Root(), tokens),
                hasher.HashBlock(nullptr, tokens, {}).value());
    }
  }
}

TEST(BlockHasherTest, VllmPromptEqualsItsSteps) {
  for (const std::string_view algorithm : {"sha256", "sha256_cbor"}) {
    const BlockHasher hasher = Vllm(algorithm);
    const auto tokens = Iota(4 * 4 + 3);
    const std::vector<ExtraKeys> own = {{Item("image", 2)}, {}, {Item("image", -2), Bytes("e")}};
    const auto digests = hasher.HashPrompt(tokens, 4, "lora", "salt", own).value();
    ASSERT_EQ(digests.size(), 4u);
    Digest parent = hasher.Root();
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const ExtraKeys keys =
          EngineExtraKeys("lora", i, i < own.size() ? own[i] : ExtraKeys{}, "salt");
      parent = hasher.HashBlock(&parent, std::span(tokens).subspan(4 * i, 4), keys).value();
      EXPECT_EQ(digests[i], parent) << i;
    }
  }
}

TEST(BlockHasherTest, SglangPromptEqualsItsStepsWithAShortLastPage) {
  const BlockHasher hasher = Sglang();
  const auto tokens = Iota(10);
  const auto digests = hasher.HashPrompt(tokens, 4, "", "salt").value();
  ASSERT_EQ(digests.size(), 3u);
  Digest parent = hasher.SaltSeed("salt").value();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto page = std::span(tokens).subspan(4 * i, i == 2 ? 2 : 4);
    parent = hasher.HashBlock(&parent, page, {}).value();
    EXPECT_EQ(digests[i], parent) << i;
  }
}

TEST(BlockHasherTest, BigramPagesShareATokenWithTheirNeighbour) {
  const BlockHasher hasher = Sglang("sglang_bigram");
  const auto tokens = Iota(10);  // 9 positions: pages of 4, 4 and 1.
  const auto digests = hasher.HashPrompt(tokens, 4, "", "").value();
  ASSERT_EQ(digests.size(), 3u);
  const Digest* parent = nullptr;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto page = std::span(tokens).subspan(4 * i, i == 2 ? 2 : 5);
    EXPECT_EQ(digests[i], hasher.HashBlock(parent, page, {}).value()) << i;
    parent = &digests[i];
  }
}

TEST(BlockHasherTest, SglangIgnoresLoraAndExtraKeys) {
  const BlockHasher hasher = Sglang();
  const auto tokens = Iota(8);
  EXPECT_EQ(hasher.HashPrompt(tokens, 4, "lora", "").value(),
            hasher.HashPrompt(tokens, 4, "", "").value());
  EXPECT_EQ(hasher.HashBlock(nullptr, tokens, {Text("salt")}).value(),
            hasher.HashBlock(nullptr, tokens, {}).value());
}

TEST(BlockHasherTest, SglangEmptySaltIsNoSalt) {
  EXPECT_FALSE(Sglang().SaltSeed("").has_value());
  EXPECT_TRUE(Sglang().SaltSeed("s").has_value());
  EXPECT_FALSE(Vllm().SaltSeed("s").has_value());
}

TEST(BlockHasherTest, PromptsShorterThanABlockHaveNoVllmHash) {
  EXPECT_TRUE(Vllm().HashPrompt(Iota(15), 16, "", "").value().empty());
  EXPECT_EQ(Sglang().HashPrompt(Iota(15), 16, "", "").value().size(), 1u);
  EXPECT_TRUE(Sglang("sglang_bigram").HashPrompt(Iota(1), 16, "", "").value().empty());
  EXPECT_TRUE(Sglang().HashPrompt({}, 16, "", "").value().empty());
}

TEST(BlockHasherTest, ProjectionTakesTheEndForVllmAndTheBeginningForSglang) {
  Digest digest;
  std::iota(digest.begin(), digest.end(), std::uint8_t{0xe0});
  EXPECT_EQ(Vllm().Project(digest), 0xf8f9fafbfcfdfeffu);
  EXPECT_EQ(Sglang().Project(digest), 0xe0e1e2e3e4e5e6e7u);
}

TEST(BlockHasherTest, AnAdapterKnownByNumberIsHashedAsTheNumber) {
  const BlockHasher hasher = Vllm("sha256");
  const auto tokens = Iota(4);
  EXPECT_EQ(hasher.HashPrompt(tokens, 4, "lora_id:7", "").value().front(),
            hasher.HashBlock(nullptr, tokens, {Integer(7)}).value());
}

TEST(BlockHasherTest, EmptyBlocksAreRefused) {
  ExpectRefused(Vllm().HashBlock(nullptr, {}, {}), "token_ids", -1);
  ExpectRefused(Sglang().HashBlock(nullptr, {}, {}), "token_ids", -1);
  ExpectRefused(Sglang("sglang_bigram").HashBlock(nullptr, Iota(1), {}), "token_ids", -1);
}

TEST(BlockHasherTest, NegativeSglangTokensAreRefusedByTheirIndex) {
  const std::vector<std::int32_t> tokens = {1, 2, 3, 4, 5, -6};
  for (const std::string_view strategy : {"sglang", "sglang_bigram"}) {
    ExpectRefused(Sglang(strategy).HashBlock(nullptr, tokens, {}), "token_ids", 5);
    const auto digests = Sglang(strategy).HashPrompt(tokens, 4, "", "");
    ASSERT_FALSE(digests.has_value());
    EXPECT_EQ(digests.error().index, 5);
  }
  EXPECT_TRUE(Vllm().HashBlock(nullptr, tokens, {}).has_value());
}

TEST(BlockHasherTest, TextsThatAreNotUtf8AreRefused) {
  const std::string surrogate = "\xed\xa0\x80";
  const auto tokens = Iota(4);
  for (const std::string_view algorithm : {"sha256", "sha256_cbor"}) {
    const BlockHasher hasher = Vllm(algorithm);
    ExpectRefused(hasher.HashBlock(nullptr, tokens, {Text("a"), Text(surrogate)}), "extra_keys", 1);
    ExpectRefused(hasher.HashBlock(nullptr, tokens, {Item("\xff", 0)}), "extra_keys", 0);
    EXPECT_TRUE(hasher.HashBlock(nullptr, tokens, {Bytes("\xff")}).has_value());
    EXPECT_EQ(hasher.HashPrompt(tokens, 4, surrogate, "").error().field, "lora_name");
    EXPECT_EQ(hasher.HashPrompt(tokens, 4, "", surrogate).error().field, "cache_salt");
    const std::vector<ExtraKeys> own = {{Text(surrogate)}};
    EXPECT_EQ(hasher.HashPrompt(tokens, 4, "", "", own).error().field, "extra_keys");
  }
  EXPECT_EQ(Sglang().HashPrompt(tokens, 4, "", surrogate).error().field, "cache_salt");
}

TEST(BlockHasherTest, ABlockSizeOfZeroIsRefused) {
  EXPECT_EQ(Vllm().HashPrompt(Iota(4), 0, "", "").error().field, "block_size");
  EXPECT_EQ(Sglang().HashPrompt(Iota(4), 0, "", "").error().field, "block_size");
}

TEST(SglangStorageSeedTest, AbsentPartsGiveNoPrior) {
  EXPECT_FALSE(SglangStorageSeed(std::nullopt, std::nullopt).has_value());
  EXPECT_FALSE(SglangStorageSeed(std::nullopt, "").has_value());
}

TEST(SglangStorageSeedTest, PartsAreTaggedByPresenceAndLength) {
  const std::string both = std::string("sglang-cache-namespace-v1") + '\1' +
                           std::string("\2\0\0\0\0\0\0\0", 8) + "ek" + '\1' +
                           std::string("\4\0\0\0\0\0\0\0", 8) + "salt";
  EXPECT_EQ(SglangStorageSeed("ek", "salt").value(), Sha256(BytesOf(both)));
  const std::string empty_key =
      std::string("sglang-cache-namespace-v1") + '\1' + std::string(8, '\0') + '\0';
  EXPECT_EQ(SglangStorageSeed("", std::nullopt).value(), Sha256(BytesOf(empty_key)));
}

}  // namespace
}  // namespace conductor
