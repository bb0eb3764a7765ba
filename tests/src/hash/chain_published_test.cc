// The fixtures published with the engines' hash functions (tests/golden/published_fixtures).
#include <gtest/gtest.h>

#include "src/hash/cbor.h"
#include "src/hash/chain.h"
#include "src/hash/pickle.h"
#include "src/hash/profile.h"
#include "src/hash/sha256.h"
#include "tests/src/hash/golden.h"

namespace conductor {
namespace {

using nlohmann::json;

std::string Raw(const ByteBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.bytes().data()), buffer.size()};
}

HashProfile Profile(const json& golden, const std::string& seed) {
  const json& profile = golden.at("profile");
  return MakeHashProfile(profile.at("strategy").get<std::string>(),
                         profile.at("algorithm").get<std::string>(), seed,
                         profile.at("index_projection").get<std::string>())
      .value();
}

std::vector<std::int32_t> CaseTokens(const json& c) {
  return TokensOf(c.contains("token_ids") ? c.at("token_ids") : c.at("token_ids_repeat"));
}

std::string CaseLora(const json& c) {
  if (!c.contains("lora_name_repeat")) return TextOr(c, "lora_name", "");
  const json& repeat = c.at("lora_name_repeat");
  return Repeat(repeat.at("value"), repeat.at("count"));
}

// Checks the digests of every case; returns how many there were.
int ExpectCases(const json& golden) {
  const BlockHasher hasher(Profile(golden, golden.at("profile").at("python_hash_seed")));
  int cases = 0;
  for (const json& c : golden.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto digests = hasher.HashPrompt(CaseTokens(c), c.at("block_size"), CaseLora(c),
                                           TextOr(c, "cache_salt", ""));
    EXPECT_TRUE(digests.has_value());
    EXPECT_EQ(digests->size(), c.at("expected").size());
    for (std::size_t i = 0; i < digests->size(); ++i) {
      const json& block = c.at("expected")[i];
      EXPECT_EQ(HexDigest((*digests)[i]), block.at("digest")) << "block " << i;
      EXPECT_EQ(std::to_string(hasher.Project((*digests)[i])), block.at("projected_decimal"));
    }
    if (c.contains("incorrect_low64_parent_digest")) {
      EXPECT_NE(HexDigest(digests->at(1)), c.at("incorrect_low64_parent_digest"));
    }
    ++cases;
  }
  return cases;
}

TEST(PublishedGoldenTest, CborRootsAreTheHashOfTheSeedText) {
  const json golden = LoadGolden("published_fixtures/hash_golden_vectors.json");
  EXPECT_EQ(golden.at("seed_root_vectors").size(), 2u);
  for (const json& vector : golden.at("seed_root_vectors")) {
    const std::string seed = vector.at("python_hash_seed");
    ByteBuffer buffer;
    EncodeCborText(seed, buffer);
    EXPECT_EQ(Raw(buffer), FromHex(vector.at("canonical_cbor_hex")));
    EXPECT_EQ(HexDigest(Profile(golden, seed).root_digest), vector.at("root_digest"));
  }
}

TEST(PublishedGoldenTest, PickleRootsAreTheHashOfTheSeedText) {
  const json golden = LoadGolden("published_fixtures/hash_golden_vectors_sha256.json");
  EXPECT_EQ(golden.at("seed_root_vectors").size(), 4u);
  for (const json& vector : golden.at("seed_root_vectors")) {
    const std::string seed = vector.at("python_hash_seed");
    ByteBuffer buffer;
    EncodePickleText(seed, buffer);
    EXPECT_EQ(Raw(buffer), FromHex(vector.at("pickle_hex")));
    EXPECT_EQ(HexDigest(Profile(golden, seed).root_digest), vector.at("root_digest"));
  }
}

TEST(PublishedGoldenTest, CborBlocksHaveTheirDigests) {
  EXPECT_EQ(ExpectCases(LoadGolden("published_fixtures/hash_golden_vectors.json")), 11);
}

TEST(PublishedGoldenTest, PickleBlocksHaveTheirDigests) {
  EXPECT_EQ(ExpectCases(LoadGolden("published_fixtures/hash_golden_vectors_sha256.json")), 19);
}

TEST(PublishedGoldenTest, PickleBytesAreThoseOfCPython) {
  const json golden = LoadGolden("published_fixtures/hash_golden_vectors_sha256.json");
  int compared = 0;
  for (const json& c : golden.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const std::size_t block_size = c.at("block_size");
    const std::vector<std::int32_t> tokens = CaseTokens(c);
    Digest parent = Profile(golden, "0").root_digest;
    for (std::size_t i = 0; i < c.at("expected").size(); ++i) {
      const json& block = c.at("expected")[i];
      ExtraKeys keys;
      if (!CaseLora(c).empty()) keys.push_back(Text(CaseLora(c)));
      const std::string salt = TextOr(c, "cache_salt", "");
      if (i == 0 && !salt.empty()) keys.push_back(Text(salt));
      ByteBuffer buffer;
      EncodePickleBlock(parent, std::span(tokens).subspan(i * block_size, block_size), keys,
                        buffer);
      if (block.contains("pickle_hex")) {
        EXPECT_EQ(Raw(buffer), FromHex(block.at("pickle_hex")));
      } else {
        EXPECT_EQ(buffer.size(), block.at("pickle_len").get<std::size_t>());
      }
      parent = Sha256(buffer.bytes());
      ++compared;
    }
  }
  EXPECT_EQ(compared, 25);
}

TEST(PublishedGoldenTest, SglangPagesHaveUpstreamsHashes) {
  const json golden = LoadGolden("published_fixtures/sglang_map_event_vectors.json");
  const json& vector = golden.at("integration");
  const BlockHasher hasher(MakeHashProfile("sglang", "sha256_raw", "", "first64_be").value());
  const auto digests =
      hasher.HashPrompt(TokensOf(vector.at("token_ids")), vector.at("block_size"), "", "");
  ASSERT_TRUE(digests.has_value());
  ASSERT_EQ(digests->size(), 4u);
  for (std::size_t i = 0; i < digests->size(); ++i) {
    EXPECT_EQ(HexDigest((*digests)[i]), vector.at("upstream_hex_digests")[i]);
    const auto wire = static_cast<std::int64_t>(hasher.Project((*digests)[i]));
    EXPECT_EQ(std::to_string(wire), vector.at("block_hashes_signed")[i]);
  }
}

}  // namespace
}  // namespace conductor
