#include "src/hash/profile.h"

#include <gtest/gtest.h>

#include "src/hash/sha256.h"

namespace conductor {
namespace {

void ExpectRefused(const Result<HashProfile>& profile, const std::string& reason,
                   const std::string& field) {
  ASSERT_FALSE(profile.has_value());
  EXPECT_EQ(profile.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(profile.error().reason, reason);
  EXPECT_EQ(profile.error().field, field);
  EXPECT_NE(profile.error().message.find(field), std::string::npos);
}

TEST(MakeHashProfileTest, KeepsTheVllmSeedVerbatimAndDerivesTheRoot) {
  const auto zero = MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
  ASSERT_TRUE(zero.has_value());
  EXPECT_EQ(zero->python_hash_seed, "0");
  EXPECT_EQ(HexDigest(zero->root_digest),
            "4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e");
  const auto zeros = MakeHashProfile("vllm_v1", "sha256_cbor", "00", "low64_be");
  ASSERT_TRUE(zeros.has_value());
  EXPECT_EQ(zeros->python_hash_seed, "00");
  EXPECT_NE(zeros->root_digest, zero->root_digest);
}

TEST(MakeHashProfileTest, AcceptsEverySeedAnEngineCanHave) {
  for (const std::string_view seed :
       {"0", "00", "42", "4294967295", "0004294967295", "random", "vllm-none-hash"}) {
    for (const std::string_view algorithm : {"sha256", "sha256_cbor"}) {
      EXPECT_TRUE(MakeHashProfile("vllm_v1", algorithm, seed, "low64_be").has_value()) << seed;
    }
  }
}

TEST(MakeHashProfileTest, RefusesOtherSeeds) {
  for (const std::string_view seed :
       {"4294967296", "99999999999999999999999999", "-1", "+1", " 0", "0 ", "0x0", "Random", "abc",
        "1.0", "\xd9\xa1", "vllm-none-hash "}) {
    ExpectRefused(MakeHashProfile("vllm_v1", "sha256", seed, "low64_be"), "invalid_value",
                  "python_hash_seed");
  }
  const std::string longest(kSeedTextBytesMax, '0');
  EXPECT_TRUE(MakeHashProfile("vllm_v1", "sha256", longest, "low64_be").has_value());
  ExpectRefused(MakeHashProfile("vllm_v1", "sha256", longest + "0", "low64_be"), "invalid_value",
                "python_hash_seed");
  ExpectRefused(MakeHashProfile("sglang", "sha256_raw", "abc", "first64_be"), "invalid_value",
                "python_hash_seed");
}

TEST(MakeHashProfileTest, SglangHasNoSeedAndNoRoot) {
  for (const std::string_view strategy : {"sglang", "sglang_bigram"}) {
    for (const std::string_view seed : {"", "0", "42", "random"}) {
      const auto profile = MakeHashProfile(strategy, "sha256_raw", seed, "first64_be");
      ASSERT_TRUE(profile.has_value());
      EXPECT_EQ(profile->python_hash_seed, "0");
      EXPECT_EQ(HexDigest(profile->root_digest), std::string(64, '0'));
    }
  }
}

TEST(MakeHashProfileTest, RefusesCombinationsOutsideTheContract) {
  ExpectRefused(MakeHashProfile("vllm_v2", "sha256", "0", "low64_be"), "invalid_value", "strategy");
  ExpectRefused(MakeHashProfile("vllm_v1", "sha256_raw", "0", "low64_be"), "invalid_value",
                "algorithm");
  for (const std::string_view algorithm :
       {"xxhash", "xxhash_cbor", "sha256_msgpack", "sha256_cbor_64bit", "builtin", "SHA256"}) {
    ExpectRefused(MakeHashProfile("vllm_v1", algorithm, "0", "low64_be"), "invalid_value",
                  "algorithm");
  }
  ExpectRefused(MakeHashProfile("sglang", "sha256", "0", "first64_be"), "invalid_value",
                "algorithm");
  ExpectRefused(MakeHashProfile("vllm_v1", "sha256", "0", "first64_be"), "invalid_value",
                "index_projection");
  ExpectRefused(MakeHashProfile("sglang_bigram", "sha256_raw", "0", "low64_be"), "invalid_value",
                "index_projection");
}

TEST(MakeHashProfileTest, NamesTheFirstMissingField) {
  ExpectRefused(MakeHashProfile("", "", "", ""), "missing", "strategy");
  ExpectRefused(MakeHashProfile("vllm_v1", "", "", ""), "missing", "algorithm");
  ExpectRefused(MakeHashProfile("vllm_v1", "sha256", "", ""), "missing", "python_hash_seed");
  ExpectRefused(MakeHashProfile("vllm_v1", "sha256", "0", ""), "missing", "index_projection");
  ExpectRefused(MakeHashProfile("sglang", "sha256_raw", "", ""), "missing", "index_projection");
}

}  // namespace
}  // namespace conductor
