// What each era of SGLang events decodes to, and what SGLang may not send.
#include <gtest/gtest.h>

#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::Array;
using wire_test::Bin;
using wire_test::DecodeSglang;
using wire_test::Int;
using wire_test::Ints;
using wire_test::Map;
using wire_test::Nil;
using wire_test::Slots;
using wire_test::StoredMap;
using wire_test::Text;
using wire_test::Uint;
using wire_test::Write;

std::vector<Write> StoredSlots() {
  return {Ints({-11}), Nil(), Ints({1, 2, 3, 4}), Int(4), Nil()};
}

EventFault FaultOf(const Write& event) {
  const auto batch = DecodeSglang({event});
  EXPECT_TRUE(batch) << batch.error().message;
  if (!batch || batch->rejected.empty()) return EventFault::kNone;
  return batch->rejected[0].fault;
}

TEST(SglangEventTest, ShortArraysSayThereAreNoExtraKeys) {
  const auto batch = DecodeSglang({Slots("BlockStored", StoredSlots())});
  ASSERT_TRUE(batch);
  const WireEvent& event = batch->events.at(0);
  EXPECT_TRUE(event.extra_keys_on_wire);
  EXPECT_EQ(event.names.at(0).projected, static_cast<std::uint64_t>(-11));
  EXPECT_EQ(event.medium, Medium::kDevice);
}

TEST(SglangEventTest, SaltComesInTheMetadataSlotOrAsAKey) {
  auto slots = StoredSlots();
  slots.push_back(Text("GPU"));
  slots.push_back(Map({{"later", Int(1)}, {"cache_salt", Text("t-a")}}));
  const auto batch =
      DecodeSglang({Slots("BlockStored", slots), StoredMap({{"cache_salt", Text("t-b")}}),
                    StoredMap({{"cache_salt", Text("")}})});
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->events.size(), 3u);
  EXPECT_EQ(batch->events[0].cache_salt, "t-a");
  EXPECT_EQ(batch->events[1].cache_salt, "t-b");
  EXPECT_FALSE(batch->events[2].cache_salt);
}

TEST(SglangEventTest, MetadataOfAnotherShapeIsRejected) {
  auto slots = StoredSlots();
  slots.push_back(Nil());
  slots.push_back(Text("adapter"));
  EXPECT_EQ(FaultOf(Slots("BlockStored", slots)), EventFault::kFieldType);
  slots.back() = Map({{"cache_salt", Int(1)}});
  EXPECT_EQ(FaultOf(Slots("BlockStored", slots)), EventFault::kFieldType);
  slots.back() = Map({{"cache_salt", Nil()}, {"cache_salt", Nil()}});
  EXPECT_EQ(FaultOf(Slots("BlockStored", slots)), EventFault::kDuplicateKey);
  slots.back() = Nil();
  EXPECT_EQ(FaultOf(Slots("BlockStored", slots)), EventFault::kNone);
}

TEST(SglangEventTest, HashesAreSigned) {
  EXPECT_EQ(FaultOf(StoredMap({{"block_hashes", Array({Uint(1ull << 63)})}})),
            EventFault::kHashType);
  EXPECT_EQ(FaultOf(StoredMap({{"parent_block_hash", Uint(UINT64_MAX)}})), EventFault::kHashType);
  EXPECT_EQ(FaultOf(StoredMap({{"block_hashes", Array({Int(INT64_MIN), Int(INT64_MAX)})}})),
            EventFault::kNone);
}

TEST(SglangEventTest, DigestsAreProjectedFromTheirFront) {
  const auto batch = DecodeSglang({StoredMap({{"block_hashes", Array({Bin("ABCDEFGHIJKL")})}})});
  const BlockName& name = batch->events.at(0).names.at(0);
  EXPECT_EQ(name.projected, 0x4142434445464748u);
  EXPECT_EQ(name.digest, "ABCDEFGHIJKL");
}

TEST(SglangEventTest, BigramPairsAreKeptAndJoined) {
  const auto pairs = Array({Ints({1, 2}), Ints({2, 3}), Ints({3, 4})});
  const auto batch = DecodeSglang({StoredMap({{"token_ids", pairs}, {"block_size", Int(3)}})});
  ASSERT_TRUE(batch);
  const WireEvent& event = batch->events.at(0);
  EXPECT_TRUE(event.bigram);
  EXPECT_EQ(event.token_ids, (std::vector<std::int32_t>{1, 2, 2, 3, 3, 4}));
  std::vector<std::int32_t> joined = {9};
  EXPECT_TRUE(JoinBigramTokens(event, &joined));
  EXPECT_EQ(joined, (std::vector<std::int32_t>{1, 2, 3, 4}));
}

TEST(SglangEventTest, PairsThatDoNotChainAreNotJoined) {
  const auto batch =
      DecodeSglang({StoredMap({{"token_ids", Array({Ints({1, 2}), Ints({9, 3})})}}), StoredMap()});
  ASSERT_EQ(batch->events.size(), 2u);
  std::vector<std::int32_t> joined;
  EXPECT_FALSE(JoinBigramTokens(batch->events[0], &joined));
  EXPECT_FALSE(JoinBigramTokens(batch->events[1], &joined));
}

TEST(SglangEventTest, BrokenPairsAreRejected) {
  const auto with = [](const Write& tokens) { return FaultOf(StoredMap({{"token_ids", tokens}})); };
  EXPECT_EQ(with(Array({Ints({1, 2, 3})})), EventFault::kTokenType);
  EXPECT_EQ(with(Array({Ints({1})})), EventFault::kTokenType);
  EXPECT_EQ(with(Array({Ints({1, 2}), Int(3)})), EventFault::kTokenType);
  EXPECT_EQ(with(Array({Int(3), Ints({1, 2})})), EventFault::kTokenType);
  EXPECT_EQ(with(Array({Ints({1, -2})})), EventFault::kTokenRange);
  EXPECT_EQ(with(Array({Array({Int(1), Nil()})})), EventFault::kTokenType);
}

TEST(SglangEventTest, FieldsOfVllmAreIgnored) {
  const auto batch = DecodeSglang({StoredMap({{"lora_name", Int(1)},
                                              {"extra_keys", Text("x")},
                                              {"group_idx", Text("x")},
                                              {"locality", Int(1)}})});
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->events.size(), 1u);
  EXPECT_FALSE(batch->events[0].lora_name);
}

}  // namespace
}  // namespace conductor
