// The block-hash vectors of hash_visible.json: every case of a recipe we accept, and the refusal of
// the others.
#include <gtest/gtest.h>

#include "src/hash/chain.h"
#include "src/hash/profile.h"
#include "src/hash/sha256.h"
#include "tests/src/hash/golden.h"

namespace conductor {
namespace {

using nlohmann::json;

struct Visited {
  int required = 0, optional = 0, errors = 0, refused = 0, blocks = 0;
};

Result<std::vector<Digest>> HashCase(const json& c, const BlockHasher& hasher) {
  const std::vector<std::int32_t> tokens = TokensOf(c.at("token_ids"));
  const std::string salt = TextOr(c, "cache_salt", "");
  if (c.at("strategy") != "sglang_storage") {
    return hasher.HashPrompt(tokens, c.at("block_size"), TextOr(c, "lora_name", ""), salt);
  }
  EXPECT_TRUE(c.at("extra_key").is_null());
  const std::optional<Digest> seed = SglangStorageSeed(std::nullopt, salt);
  return hasher.HashPages(seed ? &*seed : nullptr, tokens, c.at("block_size"));
}

void ExpectRoot(const json& c, const HashProfile& profile, const BlockHasher& hasher) {
  const std::string root = TextOr(c, "root_digest", "");
  const std::string salt = TextOr(c, "cache_salt", "");
  if (c.at("strategy") == "vllm_v1") {
    EXPECT_EQ(HexDigest(profile.root_digest), root);
    EXPECT_EQ(hasher.Root(), profile.root_digest);
    return;
  }
  EXPECT_EQ(profile.root_digest, Digest{});
  const std::optional<Digest> seed = c.at("strategy") == "sglang_storage"
                                         ? SglangStorageSeed(std::nullopt, salt)
                                         : hasher.SaltSeed(salt);
  EXPECT_EQ(seed ? HexDigest(*seed) : "", root);
}

void ExpectBlocks(const json& c, const HashProfile& profile, Visited& visited) {
  const BlockHasher hasher(profile);
  const auto digests = HashCase(c, hasher);
  const json& expected = c.at("expected");
  if (!expected.at("error").is_null()) {
    ASSERT_FALSE(digests.has_value());
    EXPECT_EQ(digests.error().code, ErrorCode::kInvalidArgument);
    ++visited.errors;
    return;
  }
  ExpectRoot(c, profile, hasher);
  ASSERT_TRUE(digests.has_value()) << digests.error().message;
  ASSERT_EQ(digests->size(), expected.at("blocks").size());
  for (std::size_t i = 0; i < digests->size(); ++i) {
    const json& block = expected.at("blocks")[i];
    EXPECT_EQ(HexDigest((*digests)[i]), block.at("digest")) << "block " << i;
    const std::uint64_t projected = hasher.Project((*digests)[i]);
    EXPECT_EQ(std::to_string(projected), block.at("projected"));
    EXPECT_EQ(c.at("strategy") == "vllm_v1" ? std::to_string(projected)
                                            : std::to_string(static_cast<std::int64_t>(projected)),
              block.at("wire_int"));
    ++visited.blocks;
  }
}

TEST(VisibleGoldenTest, EveryCaseOfOurRecipesHasItsDigestsAndXxhashIsRefused) {
  const json golden = LoadGolden("hash_visible.json");
  Visited visited;
  for (const json& c : golden.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    std::string strategy = c.at("strategy");
    if (strategy == "sglang_storage") strategy = "sglang";
    const auto profile = MakeHashProfile(strategy, c.at("algorithm").get<std::string>(),
                                         TextOr(c, "python_hash_seed", ""),
                                         c.at("index_projection").get<std::string>());
    c.at("required") ? ++visited.required : ++visited.optional;
    if (c.at("algorithm").get<std::string>().starts_with("xxhash")) {
      ASSERT_FALSE(profile.has_value());
      EXPECT_EQ(profile.error().reason, "invalid_value");
      EXPECT_EQ(profile.error().field, "algorithm");
      ++visited.refused;
      continue;
    }
    ASSERT_TRUE(profile.has_value()) << profile.error().message;
    ExpectBlocks(c, *profile, visited);
  }
  EXPECT_EQ(visited.required, golden.at("required_cases").get<int>());
  EXPECT_EQ(visited.optional, golden.at("optional_cases").get<int>());
  EXPECT_EQ(visited.required + visited.optional, 50);
  EXPECT_EQ(visited.errors, 1);
  EXPECT_EQ(visited.refused, 2);
  EXPECT_EQ(visited.blocks, 115);
}

}  // namespace
}  // namespace conductor
