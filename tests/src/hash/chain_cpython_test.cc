// Vectors made by CPython's pickler and cbor2 (make_golden.py): every kind of extra key, integers
// of every width, the frame boundaries, and the identity trap.
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

// The cases of one algorithm; returns how many there were.
int ExpectCases(const std::string& algorithm) {
  const HashProfile profile = MakeHashProfile("vllm_v1", algorithm, "0", "low64_be").value();
  const BlockHasher hasher(profile);
  const json golden = LoadGolden("hash_cpython.json");
  int cases = 0;
  for (const json& c : golden.at("cases")) {
    if (c.at("algorithm") != algorithm) continue;
    SCOPED_TRACE(c.at("name").get<std::string>());
    const std::vector<std::int32_t> tokens = TokensOf(c.at("tokens"));
    const ExtraKeys keys = KeysOf(c.at("extra_keys"));
    ByteBuffer buffer;
    algorithm == "sha256" ? EncodePickleBlock(profile.root_digest, tokens, keys, buffer)
                          : EncodeCborBlock(profile.root_digest, tokens, keys, buffer);
    EXPECT_EQ(buffer.size(), c.at("serialised_bytes").get<std::size_t>());
    const auto digest = hasher.HashBlock(nullptr, tokens, keys);
    EXPECT_TRUE(digest.has_value());
    EXPECT_EQ(HexDigest(*digest), c.at("digest"));
    ++cases;
  }
  return cases;
}

TEST(CPythonGoldenTest, PickledBlocksHaveTheirDigests) {
  EXPECT_EQ(ExpectCases("sha256"), 65);
}

TEST(CPythonGoldenTest, CborBlocksHaveTheirDigests) {
  EXPECT_EQ(ExpectCases("sha256_cbor"), 65);
}

}  // namespace
}  // namespace conductor
