#include "src/hash/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "src/hash/extra_keys.h"
#include "src/hash/sha256.h"
#include "tests/src/hash/golden.h"

namespace conductor {
namespace {

using nlohmann::json;

// splitmix64, as make_golden.py draws its tokens.
class TokenStream {
 public:
  std::int32_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::int32_t>(z ^ (z >> 31));
  }
  std::vector<std::int32_t> Next(std::size_t count) {
    std::vector<std::int32_t> tokens(count);
    for (auto& token : tokens) token = Next();
    return tokens;
  }

 private:
  std::uint64_t state_ = 1;
};

TEST(FingerprintV1Test, HasItsGoldenVectors) {
  const json golden = LoadGolden("fingerprint_v1.json");
  int cases = 0;
  for (const json& c : golden.at("cases")) {
    const std::uint64_t fingerprint =
        FingerprintV1(TokensOf(c.at("tokens")), KeysOf(c.at("extra_keys")));
    EXPECT_EQ(std::to_string(fingerprint), c.at("fingerprint")) << c.dump();
    ++cases;
  }
  EXPECT_EQ(cases, 20);
}

// A change detector over every length at which XXH3 changes its path. The constant never changes.
TEST(FingerprintV1Test, IsStable) {
  constexpr std::uint64_t kFrozen = 7461745111727760892u;
  std::uint64_t fold = 0;
  const auto add = [&fold](std::uint64_t fingerprint) {
    fold = fold * 0x100000001b3u + fingerprint;
  };
  TokenStream stream;
  for (std::size_t count = 0; count <= 1024; ++count) add(FingerprintV1(stream.Next(count), {}));
  for (std::size_t count = 0; count <= 64; ++count) {
    const auto tokens = stream.Next(count);
    for (const ExtraKey& key :
         {Text(std::string(count, 'k')), Integer(-static_cast<std::int64_t>(count)),
          Item("i", static_cast<std::int64_t>(count)), Bytes(std::string(count, 'Z'))}) {
      add(FingerprintV1(tokens, std::span(&key, 1)));
    }
  }
  EXPECT_EQ(fold, kFrozen);
  EXPECT_EQ(std::to_string(kFrozen), LoadGolden("fingerprint_v1.json").at("stability_fold"));
}

TEST(FingerprintV1Test, TellsTokensAndKeysApart) {
  const std::vector<std::int32_t> tokens = {1, 2, 3, 4};
  std::set<std::uint64_t> seen;
  const std::vector<ExtraKeys> variants = {
      {},
      {Text("")},
      {Text("a")},
      {Text("ab")},
      {Text("a"), Text("b")},
      {Text("b"), Text("a")},
      {Bytes("a")},
      {Integer(0)},
      {Item("", 0)},
      {Item("a", 0)},
      {Item("a", 1)},
      {Text("a"), Integer(0)},
  };
  for (const ExtraKeys& keys : variants) seen.insert(FingerprintV1(tokens, keys));
  // Tokens whose bytes are those of a key.
  seen.insert(FingerprintV1(std::vector<std::int32_t>{1, 2, 3, 4, 0x00000002}, {}));
  EXPECT_EQ(seen.size(), variants.size() + 1);
}

TEST(FingerprintTokensTest, EqualsOneByOne) {
  for (const std::uint32_t block_size : {1u, 3u, 4u, 16u, 17u, 32u, 64u, 100u, 256u}) {
    for (const std::uint32_t overlap : {0u, 1u}) {
      const auto tokens = TokenStream().Next(5 * block_size + overlap);
      std::vector<std::uint64_t> fingerprints(5);
      FingerprintTokens(tokens, block_size, fingerprints, overlap);
      for (std::size_t i = 0; i < fingerprints.size(); ++i) {
        const auto block = std::span(tokens).subspan(i * block_size, block_size + overlap);
        EXPECT_EQ(fingerprints[i], FingerprintV1(block, {})) << block_size << " " << i;
      }
    }
  }
}

TEST(FingerprintTokensTest, LeavesATailAlone) {
  const auto tokens = TokenStream().Next(2 * 16 + 15);
  std::vector<std::uint64_t> fingerprints(2);
  FingerprintTokens(tokens, 16, fingerprints);
  EXPECT_EQ(fingerprints[1], FingerprintV1(std::span(tokens).subspan(16, 16), {}));
  FingerprintTokens({}, 16, {});
}

TEST(SplitExtraKeysTest, NothingGivesNothing) {
  const SplitKeys split = SplitExtraKeys({}, "lora", 3, true);
  EXPECT_TRUE(split.remaining.empty());
  EXPECT_FALSE(split.salt.has_value());
}

TEST(SplitExtraKeysTest, TheFirstEntryIsTheAdapterWhenItHasItsNameOrNumber) {
  const ExtraKeys item = {Item("image", 0)};
  EXPECT_EQ(SplitExtraKeys({Text("lora"), item[0]}, "lora", {}, false).remaining, item);
  EXPECT_EQ(SplitExtraKeys({Integer(7), item[0]}, "lora", 7, false).remaining, item);
  EXPECT_EQ(SplitExtraKeys({Integer(7), item[0]}, "lora_id:7", {}, false).remaining, item);
}

TEST(SplitExtraKeysTest, OtherFirstEntriesStay) {
  for (const ExtraKeys& keys : std::vector<ExtraKeys>{{Text("other")},
                                                      {Text("7")},
                                                      {Integer(8)},
                                                      {Item("lora", 0)},
                                                      {Bytes("lora")},
                                                      {Item("image", 0), Text("lora")}}) {
    EXPECT_EQ(SplitExtraKeys(keys, "lora", 7, false).remaining, keys);
  }
  EXPECT_EQ(SplitExtraKeys({Integer(7)}, "lora", {}, false).remaining, (ExtraKeys{Integer(7)}));
  EXPECT_EQ(SplitExtraKeys({Text("")}, "", {}, false).remaining, (ExtraKeys{Text("")}));
}

TEST(SplitExtraKeysTest, OnlyTheFirstEntryIsTheAdapter) {
  const SplitKeys split = SplitExtraKeys({Text("same"), Text("same")}, "same", {}, true);
  EXPECT_TRUE(split.remaining.empty());
  EXPECT_EQ(split.salt, "same");
}

TEST(SplitExtraKeysTest, TheSaltIsTheLastBareTextOfTheFirstBlock) {
  const ExtraKeys keys = {Text("lora"), Text("image"), Item("i", 1), Text("salt"), Bytes("e")};
  const SplitKeys split = SplitExtraKeys(keys, "lora", {}, true);
  EXPECT_EQ(split.salt, "salt");
  EXPECT_EQ(split.remaining, (ExtraKeys{Text("image"), Item("i", 1), Bytes("e")}));
}

TEST(SplitExtraKeysTest, LaterBlocksHaveNoSalt) {
  const SplitKeys split = SplitExtraKeys({Text("lora"), Text("image")}, "lora", {}, false);
  EXPECT_FALSE(split.salt.has_value());
  EXPECT_EQ(split.remaining, (ExtraKeys{Text("image")}));
}

TEST(SplitExtraKeysTest, TheAdapterIsNeverTheSalt) {
  const SplitKeys split = SplitExtraKeys({Text("lora"), Item("i", 0)}, "lora", {}, true);
  EXPECT_FALSE(split.salt.has_value());
  EXPECT_EQ(split.remaining, (ExtraKeys{Item("i", 0)}));
}

// A query's parts, joined in engine order, come apart into the same identity as the event's.
TEST(SplitExtraKeysTest, UndoesEngineExtraKeys) {
  for (const std::string lora : {"", "lora", "lora_id:9"}) {
    for (const std::string salt : {"", "salt"}) {
      const ExtraKeys own = {Item("image", 3), Bytes("embeds")};
      const SplitKeys split =
          SplitExtraKeys(EngineExtraKeys(lora, 0, own, salt), lora, std::nullopt, true);
      EXPECT_EQ(split.remaining, own);
      EXPECT_EQ(split.salt.value_or(""), salt);
    }
  }
}

TEST(DigestSaltTest, IsTheFirstHalfOfADomainSeparatedSha256) {
  const Digest digest = Sha256(BytesOf(std::string("conductor-salt-v1") + '\0' + "tenant-a"));
  const SaltDigest salt = DigestSalt("tenant-a");
  EXPECT_TRUE(std::equal(salt.begin(), salt.end(), digest.begin()));
  EXPECT_NE(DigestSalt("tenant-a"), DigestSalt("tenant-b"));
}

}  // namespace
}  // namespace conductor
