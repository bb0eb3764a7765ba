// Every form of an object's key, what breaks it, and the part of the block it names.
#include "replay/wire/object_key.h"

#include <gtest/gtest.h>

#include <set>

#include "replay/wire/wire_limits.h"
#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::ToHex;
using Half = ObjectKey::Half;
using Syntax = ObjectKey::Syntax;

const std::string kHash = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210";
constexpr std::uint64_t kFirst64 = 0x0011223344556677;
constexpr std::uint64_t kLow64 = 0xfedcba9876543210;

ObjectKey Vllm(const std::string& key) {
  return ParseObjectKey(wire_test::Keep(key), HashStrategy::kVllmV1);
}
ObjectKey Sglang(const std::string& key) {
  return ParseObjectKey(wire_test::Keep(key), HashStrategy::kSglang);
}
Syntax SyntaxOf(const std::string& key) {
  return Vllm(key).syntax;
}
std::string PartOfVllm(const std::string& key) {
  return PartOf(Vllm(key));
}

TEST(ObjectKeyTest, VllmKeysAreReadFromTheirEnd) {
  const ObjectKey key = Vllm(
      "a@tp_rank:9@b@org/model@tp_rank:2@pcp1@dcp0@pp_rank:3@group:4@cache_role:kv"
      "@cache_family:c4@" +
      kHash);
  EXPECT_EQ(key.syntax, Syntax::kVllm);
  EXPECT_EQ(key.cache_prefix, "a@tp_rank:9@b");
  EXPECT_EQ(key.model_name, "org/model");
  EXPECT_EQ(key.tp_rank, 2u);
  EXPECT_EQ(key.pcp_rank, 1u);
  EXPECT_EQ(key.dcp_rank, 0u);
  EXPECT_EQ(key.pp_rank, 3u);
  EXPECT_EQ(key.group, 4u);
  EXPECT_EQ(key.cache_role, "kv");
  EXPECT_EQ(key.cache_family, "c4");
  EXPECT_EQ(key.name.projected, kLow64);
  EXPECT_EQ(ToHex(key.name.digest), kHash);
  EXPECT_EQ(PartOf(key), "tp=2@pp=3@pcp=1@dcp=0|group=4@role=kv@family=c4@prefix=a@tp_rank:9@b");
}

TEST(ObjectKeyTest, TheGroupOfAHybridModelStandsBehindTheHash) {
  const ObjectKey key = Vllm("m@tp_rank:1@pcp0@dcp0@pp_rank:0@" + kHash + "@grp:2");
  EXPECT_EQ(key.syntax, Syntax::kVllmGroupSuffix);
  EXPECT_EQ(key.group, 2u);
  EXPECT_EQ(PartOf(key), "tp=1@pp=0@pcp=0@dcp=0|group=2");
  EXPECT_EQ(SyntaxOf("m@tp_rank:1@pcp0@dcp0@pp_rank:0@group:2@" + kHash + "@grp:2"),
            Syntax::kUnknown);
  EXPECT_EQ(SyntaxOf("m@tp_rank:1@pcp0@dcp0@pp_rank:0@" + kHash + "@grp:"), Syntax::kUnknown);
}

TEST(ObjectKeyTest, HashesInEverySpelling) {
  const std::string start = "m@tp_rank:0@pcp0@dcp0@pp_rank:0@";
  const auto name = [&](const std::string& hash) { return Vllm(start + hash).name; };
  const BlockName eight{kLow64, ""};
  EXPECT_EQ(name("fedcba9876543210"), eight);
  EXPECT_EQ(name("0xFEDCBA9876543210"), eight);
  EXPECT_EQ(name("0Xfedcba9876543210"), eight);
  EXPECT_EQ(name("00112233445566778899aabbccddeeff").projected, 0x8899aabbccddeeffu);
  EXPECT_EQ(name("00112233445566778899aabbccddeeff").digest.size(), 16u);
  for (const char* bad : {"", "0x", "fedcba987654321", "fedcba98765432101", "fedcba987654321g",
                          "0xfedcba98765432", "not-a-hash", " fedcba9876543210"}) {
    EXPECT_EQ(SyntaxOf(start + bad), Syntax::kUnknown) << bad;
  }
}

TEST(ObjectKeyTest, JoinedDigestsKeepTheirProjectionOnly) {
  const std::string joined = kHash + kHash + kHash;
  const ObjectKey key = Vllm("m@tp_rank:0@pcp0@dcp0@pp_rank:0@" + joined);
  EXPECT_EQ(key.syntax, Syntax::kVllm);
  EXPECT_EQ(key.name, (BlockName{kLow64, ""}));
}

TEST(ObjectKeyTest, VllmKeysThatLackSomething) {
  for (const std::string& bad : std::vector<std::string>{
           "@tp_rank:0@pcp0@dcp0@pp_rank:0@" + kHash, "tp_rank:0@pcp0@dcp0@pp_rank:0@" + kHash,
           "m@tp_rank:@pcp0@dcp0@pp_rank:0@" + kHash, "m@tp_rank:-1@pcp0@dcp0@pp_rank:0@" + kHash,
           "m@tp_rank:4294967296@pcp0@dcp0@pp_rank:0@" + kHash, "m@pcp0@dcp0@pp_rank:0@" + kHash,
           "m@tp_rank:0@dcp0@pp_rank:0@" + kHash, "m@tp_rank:0@pcp0@dcp0@" + kHash,
           "m@tp_rank:0@dcp0@pcp0@pp_rank:0@" + kHash, "m@tp_rank:0@pcp0@dcp0@pp_rank:0@",
           "m@tp_rank:0@pcp0@dcp0@pp_rank:0@" + kHash + "@",
           "m@tp_rank:0@pcp0@dcp0@pp_rank:0@x@" + kHash,
           "m@tp_rank:0@pcp0@dcp0@pp_rank:0@" + kHash + "@3",
           "m@tp_rank:0@pcp0@dcp0@pp_rank:0@cache_family:c@cache_role:r@" + kHash}) {
    EXPECT_EQ(SyntaxOf(bad), Syntax::kUnknown) << bad;
  }
}

TEST(ObjectKeyTest, AscendKeys) {
  const ObjectKey key = Vllm("x@model@pcp1@dcp2@head_or_tp_rank:3@pp_rank:4@group:0@" + kHash);
  EXPECT_EQ(key.syntax, Syntax::kAscend);
  EXPECT_EQ(key.model_name, "x@model");
  EXPECT_EQ(key.tp_rank, 3u);
  EXPECT_EQ(key.name.projected, kLow64);
  EXPECT_EQ(PartOf(key), "tp=3@pp=4@pcp=1@dcp=2|group=0");
  EXPECT_EQ(PartOfVllm("m@pcp:1@dcp:2@head_or_tp_rank:3@" + kHash), "tp=3@pcp=1@dcp=2|");
}

TEST(ObjectKeyTest, AscendLayersComeBeforeOrBehindTheHash) {
  for (const std::string& text :
       std::vector<std::string>{"m@pcp0@dcp0@head_or_tp_rank:1@layer_id:17@" + kHash,
                                "m@pcp0@dcp0@head_or_tp_rank:1@" + kHash + "@17"}) {
    const ObjectKey key = Vllm(text);
    EXPECT_EQ(key.syntax, Syntax::kAscendLayer) << text;
    EXPECT_EQ(key.layer_id, 17u);
    EXPECT_EQ(PartOf(key), "tp=1@pcp=0@dcp=0@layers=17|");
  }
  EXPECT_EQ(SyntaxOf("m@pcp0@dcp0@head_or_tp_rank:1@layer_id:17@" + kHash + "@17"),
            Syntax::kUnknown);
}

TEST(ObjectKeyTest, AscendCompactKeys) {
  const ObjectKey key = Vllm("m@2@" + kHash + "@5");
  EXPECT_EQ(key.syntax, Syntax::kAscendCompact);
  EXPECT_EQ(key.model_name, "m");
  EXPECT_EQ(PartOf(key), "tp=5|group=2");
  EXPECT_EQ(PartOfVllm("m@" + kHash + "@5"), "tp=5|");
  for (const std::string& bad :
       std::vector<std::string>{"@" + kHash + "@5", kHash + "@5", "a@m@" + kHash + "@5",
                                "m@" + kHash + "@x", "m@k@0", "m@" + kHash}) {
    EXPECT_EQ(SyntaxOf(bad), Syntax::kUnknown) << bad;
  }
}

TEST(ObjectKeyTest, KeysWithoutAHashNameNoBlock) {
  for (const char* key : {"m@pcp0@dcp0@head_or_tp_rank:0@req-1_lastblock@7", "", "@", "@@@@",
                          "opaque key", "_", "__k", "k", "m@tp_rank:0"}) {
    EXPECT_FALSE(Vllm(key).HasName()) << key;
    EXPECT_FALSE(Sglang(key).HasName()) << key;
    EXPECT_EQ(PartOf(Vllm(key)), "|");
  }
}

TEST(ObjectKeyTest, Numbers) {
  for (const auto& parse : {Vllm, Sglang}) {
    EXPECT_EQ(parse("12345").syntax, Syntax::kDecimal);
    EXPECT_EQ(parse("12345").name, (BlockName{12345, ""}));
    EXPECT_EQ(parse("18446744073709551615").name.projected, UINT64_MAX);
    EXPECT_EQ(parse("0xfedcba9876543210").syntax, Syntax::kHex);
    EXPECT_EQ(parse("0xFEDCBA9876543210").name.projected, kLow64);
    EXPECT_EQ(parse("0x1").name.projected, 1u);
    EXPECT_EQ(PartOf(parse("12345")), "|");
    for (const char* bad : {"18446744073709551616", "-1", "+1", " 1", "1 ", "1.0", "0x", "0x-1",
                            "0x1fedcba9876543210", "000000000000000000001", "fedcba9876543210"}) {
      EXPECT_FALSE(parse(bad).HasName()) << bad;
    }
  }
}

TEST(ObjectKeyTest, SglangKeysAreProjectedFromTheirFront) {
  const ObjectKey key = Sglang("team_a_" + kHash + "_3_1_v");
  EXPECT_EQ(key.syntax, Syntax::kSglang);
  EXPECT_EQ(key.name.projected, kFirst64);
  EXPECT_EQ(key.low64, kLow64);
  EXPECT_EQ(ToHex(key.name.digest), kHash);
  EXPECT_EQ(key.tag, "team_a");
  EXPECT_EQ(key.suffix, "_3_1_v");
  EXPECT_EQ(key.half, Half::kValue);
  EXPECT_EQ(PartOf(key), "tp=3@pp=1@kv=v|tag=team_a");
}

TEST(ObjectKeyTest, SglangParts) {
  const auto part = [](const std::string& suffix) { return PartOf(Sglang(kHash + suffix)); };
  EXPECT_EQ(part(""), "|");
  EXPECT_EQ(part("_0_k"), "tp=0@kv=k|");
  EXPECT_EQ(part("_1_2_3_v"), "tp=1@pp=2@pcp=3@kv=v|");
  EXPECT_EQ(part("__k"), "kv=k|");
  EXPECT_EQ(part("__2_k"), "pcp=2@kv=k|");
  EXPECT_EQ(part("_0_temporal"), "|suffix=11:_0_temporal");
  EXPECT_EQ(part("_k"), "|suffix=2:_k");
  EXPECT_EQ(part("__v"), "|suffix=3:__v");
  EXPECT_EQ(part("_1_2_3_4_k"), "|suffix=10:_1_2_3_4_k");
  EXPECT_EQ(part("_x_k"), "|suffix=4:_x_k");
}

TEST(ObjectKeyTest, SglangHashesStandAlone) {
  EXPECT_FALSE(Sglang("0" + kHash + "_0_k").HasName());
  EXPECT_FALSE(Sglang(kHash + "0_0_k").HasName());
  EXPECT_FALSE(Sglang("tag-" + kHash + "_0_k").HasName());
  EXPECT_FALSE(Sglang(kHash + "-0_k").HasName());
  EXPECT_FALSE(Sglang("0x" + kHash).HasName());
  // A tag that is a digest itself stands before the hash.
  const std::string tag(64, 'A');
  EXPECT_EQ(Sglang(tag + "_" + kHash + "_0_k").name.projected, kFirst64);
  EXPECT_EQ(Sglang(tag + "_" + kHash + "_0_k").tag, tag);
}

TEST(ObjectKeyTest, KeysOfAnotherEngineNameNoBlock) {
  EXPECT_FALSE(Vllm(kHash).HasName());
  EXPECT_FALSE(Vllm(kHash + "_0_k").HasName());
  EXPECT_FALSE(Sglang("m@tp_rank:0@pcp0@dcp0@pp_rank:0@" + kHash).HasName());
  EXPECT_TRUE(ParseObjectKey(kHash + "_0_k", HashStrategy::kSglangBigram).HasName());
}

TEST(ObjectKeyTest, LongKeysNameNoBlockAndPartsFitTheLog) {
  const std::string tail =
      "@tp_rank:4294967295@pcp4294967295@dcp4294967295@pp_rank:4294967295@"
      "group:4294967295@cache_role:r@cache_family:f@0123456789abcdef";
  const std::string model(1, 'm');
  const std::string prefix(kObjectKeyBytesMax - tail.size() - model.size() - 1, 'p');
  const ObjectKey longest = Vllm(prefix + "@" + model + tail);
  EXPECT_TRUE(longest.HasName());
  EXPECT_LE(PartOf(longest).size(), 1024u);
  EXPECT_FALSE(Vllm("p" + prefix + "@" + model + tail).HasName());
}

TEST(ObjectKeyTest, ARoleThatEndsWithABarKeepsItsFamilyApart) {
  const std::string vllm = "m@tp_rank:0@pcp0@dcp0@pp_rank:0@cache_role:x|";
  EXPECT_EQ(PartOfVllm(vllm + "@cache_family:y@" + kHash),
            "tp=0@pp=0@pcp=0@dcp=0|role=x|@family=y");
  EXPECT_EQ(PartOfVllm(vllm + "family=y@" + kHash), "tp=0@pp=0@pcp=0@dcp=0|role=x|family=y");
}

// Whatever objects one block has, each has its own part.
TEST(ObjectKeyTest, PartsTellObjectsApart) {
  const std::string vllm = "m@tp_rank:0@pcp0@dcp0@pp_rank:0";
  const std::string ascend = "m@pcp0@dcp0@head_or_tp_rank:0";
  const std::vector<std::string> keys = {
      vllm + "@" + kHash,
      vllm + "@group:0@" + kHash,
      vllm + "@group:1@" + kHash,
      vllm + "@cache_role:kv@" + kHash,
      vllm + "@cache_family:kv@" + kHash,
      "p@" + vllm + "@" + kHash,
      "q@" + vllm + "@" + kHash,
      "m@tp_rank:1@pcp0@dcp0@pp_rank:0@" + kHash,
      "m@tp_rank:0@pcp1@dcp0@pp_rank:0@" + kHash,
      "m@tp_rank:0@pcp0@dcp1@pp_rank:0@" + kHash,
      "m@tp_rank:0@pcp0@dcp0@pp_rank:1@" + kHash,
      ascend + "@" + kHash,
      ascend + "@layer_id:0@" + kHash,
      ascend + "@layer_id:1@" + kHash,
      "m@" + kHash + "@0",
      "m@1@" + kHash + "@0",
  };
  std::set<std::string> parts;
  for (const std::string& key : keys) {
    EXPECT_TRUE(Vllm(key).HasName()) << key;
    EXPECT_TRUE(parts.insert(PartOfVllm(key)).second) << key;
  }
  // The same object in two spellings of its hash.
  EXPECT_EQ(PartOfVllm(vllm + "@0x" + kHash), PartOfVllm(vllm + "@" + kHash));
}

}  // namespace
}  // namespace conductor
