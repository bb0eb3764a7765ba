// The byte fixtures of the field cases: what real deployments sent.
#include <gtest/gtest.h>

#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::FromHex;
using wire_test::ToHex;

constexpr char kUnsignedHash[] =
    "93cb3ff00000000000009197ab426c6f636b53746f72656491cfdab89baa7b5857c0c0940102030404c0a34750550"
    "0";
constexpr char kSameHashNegative[] =
    "93cb3ff00000000000009193ac426c6f636b52656d6f76656491d3dab89baa7b5857c0a347505500";
constexpr char kDigestHash[] =
    "93cb3ff00000000000009197ab426c6f636b53746f72656491c420000102030405060708090a0b0c0d0e0f10111213"
    "1415161718191a1b1c1d1e1fc0940102030404c0a347505500";
constexpr char kGoodBadGood[] =
    "93cb3ff00000000000009397ab426c6f636b53746f726564910bc0940102030404c0a347505597ab426c6f636b5374"
    "6f726564c0c0940506070804c0a347505597ab426c6f636b53746f726564910c0b940506070804c0a347505500";
constexpr char kCleared[] = "93cb3ff00000000000009191b0416c6c426c6f636b73436c656172656400";

WireBatch Vllm(std::string_view hex) {
  auto batch = DecodeEnginePayload(PublisherType::kVllm, wire_test::KeepHex(hex));
  EXPECT_TRUE(batch) << batch.error().message;
  return batch ? *std::move(batch) : WireBatch{};
}

TEST(FieldCasesTest, SignedAndUnsignedSpellingsAreOneName) {
  const auto stored = Vllm(kUnsignedHash);
  const auto removed = Vllm(kSameHashNegative);
  ASSERT_EQ(stored.events.size(), 1u);
  ASSERT_EQ(removed.events.size(), 1u);
  EXPECT_EQ(stored.events[0].names.at(0).projected, 15760518052499183552u);
  EXPECT_EQ(stored.events[0].names, removed.events[0].names);
  EXPECT_EQ(stored.publisher_time_us, 1000000);
  EXPECT_EQ(stored.dp_rank, 0);
}

TEST(FieldCasesTest, DigestsAreKeptWhole) {
  const auto first = Vllm(kDigestHash);
  std::string other_hex = kDigestHash;
  other_hex.replace(other_hex.find("c420") + 4, 2, "ff");
  const auto second = Vllm(other_hex);
  const BlockName& name = first.events.at(0).names.at(0);
  const BlockName& other = second.events.at(0).names.at(0);
  EXPECT_EQ(ToHex(name.digest), "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(name.projected, 0x18191a1b1c1d1e1fu);
  EXPECT_EQ(other.projected, name.projected);
  EXPECT_NE(other, name);
}

TEST(FieldCasesTest, EightBytesAreTheIntegerTheySpell) {
  const auto batch = wire_test::DecodeVllm({wire_test::StoredMap(
      {{"block_hashes", wire_test::Array({wire_test::Raw("c408dab89baa7b5857c0")})}})});
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->events.at(0).names, Vllm(kUnsignedHash).events.at(0).names);
}

TEST(FieldCasesTest, OneBadEventLeavesItsNeighbours) {
  const auto batch = Vllm(kGoodBadGood);
  ASSERT_EQ(batch.events.size(), 2u);
  EXPECT_EQ(batch.events[0].index, 0u);
  EXPECT_EQ(batch.events[0].names.at(0).projected, 11u);
  EXPECT_EQ(batch.events[1].index, 2u);
  EXPECT_EQ(batch.events[1].parent->projected, 11u);
  ASSERT_EQ(batch.rejected.size(), 1u);
  EXPECT_EQ(batch.rejected[0].index, 1u);
  EXPECT_EQ(batch.rejected[0].fault, EventFault::kFieldType);
  EXPECT_EQ(batch.rejected[0].text, "event 1: block_hashes: expected an array, got nil");
}

TEST(FieldCasesTest, PoisonIsRefusedWithAReason) {
  EXPECT_EQ(wire_test::ReasonOf(DecodeEnginePayload(PublisherType::kVllm, FromHex("ffffff"))),
            "envelope_type");
}

TEST(FieldCasesTest, ClearIsDecoded) {
  const auto batch = Vllm(kCleared);
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(batch.events[0].kind, WireEvent::Kind::kCleared);
}

TEST(FieldCasesTest, RfcMapFormClearsToo) {
  const auto batch =
      wire_test::DecodeVllm({wire_test::Map({{"event_type", wire_test::Text("cleared")}})});
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->events.size(), 1u);
  EXPECT_EQ(batch->events[0].kind, WireEvent::Kind::kCleared);
}

// Masked blocks are left out of the hashes while their tokens stay: for the stream to judge.
TEST(FieldCasesTest, MoreTokensThanHashesIsNoDecodeError) {
  const auto batch = wire_test::DecodeVllm({wire_test::StoredMap(
      {{"token_ids", wire_test::Ints({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})},
       {"block_hashes", wire_test::Ints({44})},
       {"kv_cache_spec_kind", wire_test::Text("mamba")},
       {"group_idx", wire_test::Int(0)}})});
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->events.size(), 1u);
  EXPECT_EQ(batch->events[0].token_ids.size(), 16u);
  EXPECT_EQ(batch->events[0].spec_kind, SpecKind::kOther);
  EXPECT_FALSE(IsFullAttentionLike(batch->events[0].spec_kind));
}

TEST(FieldCasesTest, AdapterNameAndNumberAreBothKept) {
  const auto keys = wire_test::Array({wire_test::Text("ad-116")});
  const auto batch = wire_test::DecodeVllm(
      {wire_test::StoredMap({{"block_hashes", wire_test::Ints({1, 2})},
                             {"token_ids", wire_test::Ints({1, 2, 3, 4, 5, 6, 7, 8})},
                             {"lora_id", wire_test::Int(117)},
                             {"lora_name", wire_test::Text("ad-116")},
                             {"extra_keys", wire_test::Array({keys, keys})}})});
  ASSERT_TRUE(batch);
  const WireEvent& event = batch->events.at(0);
  EXPECT_EQ(event.lora_id, 117);
  EXPECT_EQ(event.lora_name, "ad-116");
  ASSERT_EQ(event.extra_keys.size(), 2u);
  ASSERT_EQ(event.extra_keys[1].size(), 1u);
  EXPECT_EQ(event.extra_keys[1][0].text, "ad-116");
}

// A salt or a token in an error text would reach the log.
TEST(FieldCasesTest, ErrorTextsRepeatNoSecret) {
  const auto batch = wire_test::DecodeVllm(
      {wire_test::StoredMap({{"extra_keys", wire_test::Array({wire_test::Text("salt-T1")})}}),
       wire_test::StoredMap({{"salt-T1", wire_test::Nil()}, {"block_size", wire_test::Nil()}}),
       wire_test::Map({{"type", wire_test::Text("salt-T1")}}),
       wire_test::StoredMap({{"token_ids", wire_test::Ints({987654321987})}})});
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->rejected.size(), 4u);
  for (const auto& error : batch->rejected) {
    EXPECT_EQ(error.text.find("salt-T1"), std::string::npos) << error.text;
    EXPECT_EQ(error.text.find("987654321987"), std::string::npos) << error.text;
  }
}

}  // namespace
}  // namespace conductor
