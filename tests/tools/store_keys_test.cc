#include "tools/store_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/sim_test_util.h"

namespace conductor::enginesim {
namespace {

const std::string kHash = "d42ef1497900bc6e542c641a896c88694d15069b8a11247f66ba7342b6c21cd9";

std::vector<std::string> Keys(const KeyOptions& options) {
  Digest digest;
  const std::string bytes = FromHex(kHash);
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  std::vector<std::string> keys;
  for (const StoreEvent& object : ObjectsOf(digest, options)) keys.push_back(object.object_key);
  return keys;
}

using List = std::vector<std::string>;

TEST(StoreKeysTest, VllmHasAnObjectForEachRank) {
  EXPECT_EQ(
      Keys({.model_name = "m", .tp_ranks = 2, .pp_ranks = 2}),
      (List{"m@tp_rank:0@pcp0@dcp0@pp_rank:0@" + kHash, "m@tp_rank:0@pcp0@dcp0@pp_rank:1@" + kHash,
            "m@tp_rank:1@pcp0@dcp0@pp_rank:0@" + kHash,
            "m@tp_rank:1@pcp0@dcp0@pp_rank:1@" + kHash}));
  EXPECT_EQ(Keys({.model_name = "m", .prefix = "d", .group = 1}),
            List{"d@m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@" + kHash});
  EXPECT_EQ(Keys({.form = KeyForm::kVllmHma, .model_name = "m"}),
            List{"m@tp_rank:0@pcp0@dcp0@pp_rank:0@" + kHash + "@grp:0"});
}

TEST(StoreKeysTest, AscendHasHeadsAndLayers) {
  EXPECT_EQ(Keys({.form = KeyForm::kAscend, .model_name = "m"}),
            List{"m@pcp0@dcp0@head_or_tp_rank:0@pp_rank:0@" + kHash});
  EXPECT_EQ(Keys({.form = KeyForm::kAscendLayer, .model_name = "m", .layers = 2}),
            (List{"m@pcp0@dcp0@head_or_tp_rank:0@" + kHash + "@0",
                  "m@pcp0@dcp0@head_or_tp_rank:0@" + kHash + "@1"}));
  EXPECT_EQ(Keys({.form = KeyForm::kAscendLayerId, .model_name = "m"}),
            List{"m@pcp0@dcp0@head_or_tp_rank:0@layer_id:0@" + kHash});
}

TEST(StoreKeysTest, SglangSplitsKeysAndValuesOnlyInMha) {
  EXPECT_EQ(Keys({.form = KeyForm::kSglangMha, .tp_ranks = 2}),
            (List{kHash + "_0_k", kHash + "_0_v", kHash + "_1_k", kHash + "_1_v"}));
  EXPECT_EQ(Keys({.form = KeyForm::kSglangMha, .prefix = "t", .pp_ranks = 2}),
            (List{"t_" + kHash + "_0_0_k", "t_" + kHash + "_0_0_v", "t_" + kHash + "_0_1_k",
                  "t_" + kHash + "_0_1_v"}));
  EXPECT_EQ(Keys({.form = KeyForm::kSglangMla, .tp_ranks = 8}), List{kHash + "__k"});
  EXPECT_EQ(Keys({.form = KeyForm::kSglangMla, .pp_ranks = 2}),
            (List{kHash + "_0_k", kHash + "_1_k"}));
}

TEST(StoreKeysTest, NumbersAreTheLow64Bits) {
  EXPECT_EQ(Keys({.form = KeyForm::kNumber}), List{"7402355667908041945"});
}

TEST(StoreKeysTest, CountsThatCannotBeAreRefused) {
  for (const KeyOptions& options :
       {KeyOptions{.tp_ranks = 0}, KeyOptions{.tp_ranks = 64, .pp_ranks = 65},
        KeyOptions{.form = KeyForm::kSglangMha, .tp_ranks = kObjectsPerBlockMax}}) {
    const Status status = CheckKeyOptions(options);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_TRUE(CheckKeyOptions({.tp_ranks = 64, .pp_ranks = 64}));
  EXPECT_FALSE(ParseKeyForm("vllm2"));
  EXPECT_EQ(ToString(ParseKeyForm("ascend-layer-id").value()), "ascend-layer-id");
}

}  // namespace
}  // namespace conductor::enginesim
