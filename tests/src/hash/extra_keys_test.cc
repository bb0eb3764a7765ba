#include "src/hash/extra_keys.h"

#include <gtest/gtest.h>

#include "tests/src/hash/golden.h"

namespace conductor {
namespace {

TEST(EngineExtraKeysTest, NothingGivesNothing) {
  EXPECT_TRUE(EngineExtraKeys("", 0, {}, "").empty());
  EXPECT_TRUE(EngineExtraKeys("", 1, {}, "salt").empty());
}

TEST(EngineExtraKeysTest, LoraIsInEveryBlockAndTheSaltInTheFirst) {
  EXPECT_EQ(EngineExtraKeys("lora", 0, {}, "salt"), (ExtraKeys{Text("lora"), Text("salt")}));
  EXPECT_EQ(EngineExtraKeys("lora", 1, {}, "salt"), (ExtraKeys{Text("lora")}));
  EXPECT_EQ(EngineExtraKeys("", 0, {}, "salt"), (ExtraKeys{Text("salt")}));
}

TEST(EngineExtraKeysTest, TheSaltStandsBetweenItemsAndEmbeds) {
  const ExtraKeys own = {Item("one", 0), Bytes("embeds"), Text("old-image")};
  EXPECT_EQ(
      EngineExtraKeys("lora", 0, own, "salt"),
      (ExtraKeys{Text("lora"), Item("one", 0), Text("old-image"), Text("salt"), Bytes("embeds")}));
}

TEST(EngineExtraKeysTest, AnEnginesOwnListIsNotDoubled) {
  const ExtraKeys listed = {Text("lora"), Item("one", 0), Text("salt")};
  EXPECT_EQ(EngineExtraKeys("lora", 0, listed, "salt"), listed);
  EXPECT_EQ(EngineExtraKeys("lora", 0, listed, ""), listed);
  EXPECT_EQ(EngineExtraKeys("lora_id:12", 3, ExtraKeys{Integer(12)}, ""), (ExtraKeys{Integer(12)}));
  // One text for both: the engine lists it twice.
  EXPECT_EQ(EngineExtraKeys("x", 0, {}, "x"), (ExtraKeys{Text("x"), Text("x")}));
  EXPECT_EQ(EngineExtraKeys("x", 0, ExtraKeys{Text("x")}, "x"), (ExtraKeys{Text("x"), Text("x")}));
}

TEST(EngineExtraKeysTest, ANumberedAdapterIsANumber) {
  EXPECT_EQ(EngineExtraKeys("lora_id:12", 3, {}, ""), (ExtraKeys{Integer(12)}));
}

TEST(LoraIdOfNameTest, RoundTrips) {
  for (const std::int64_t id : {std::int64_t{0}, std::int64_t{-5}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(LoraIdOfName(LoraNameOfId(id)), id);
  }
}

TEST(LoraIdOfNameTest, OtherSpellingsAreNames) {
  for (const std::string_view name :
       {"", "lora", "lora_id:", "lora_id:x", "lora_id:07", "lora_id:-0", "lora_id:+1", "lora_id: 1",
        "lora_id:1 ", "LORA_ID:1", "lora_id:9223372036854775808", "xlora_id:1"}) {
    EXPECT_FALSE(LoraIdOfName(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace conductor
