// Each way a single event can be wrong: it alone is dropped, with its own reason.
#include <gtest/gtest.h>

#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::Array;
using wire_test::Bin;
using wire_test::Cleared;
using wire_test::Float;
using wire_test::Int;
using wire_test::Ints;
using wire_test::Map;
using wire_test::Nil;
using wire_test::Raw;
using wire_test::Slots;
using wire_test::StoredMap;
using wire_test::Text;
using wire_test::Uint;
using wire_test::Write;

// The fault of `event` between two good ones, which must both stand.
EventFault FaultOf(const Write& event, PublisherType publisher = PublisherType::kVllm) {
  const auto batch =
      wire_test::Decode(publisher, wire_test::Batch({Cleared(), event, StoredMap()}));
  EXPECT_TRUE(batch) << batch.error().message;
  if (!batch) return EventFault::kNone;
  if (batch->rejected.empty()) {
    EXPECT_EQ(batch->events.size(), 3u);
    return EventFault::kNone;
  }
  EXPECT_EQ(batch->events.size(), 2u);
  EXPECT_EQ(batch->events.front().index, 0u);
  EXPECT_EQ(batch->events.back().index, 2u);
  EXPECT_EQ(batch->rejected.size(), 1u);
  EXPECT_EQ(batch->rejected[0].index, 1u);
  EXPECT_EQ(batch->rejected[0].text.rfind("event 1: ", 0), 0u) << batch->rejected[0].text;
  const auto fault = batch->rejected[0].fault;
  EXPECT_EQ(batch->rejected_counts[static_cast<std::size_t>(fault)], 1u);
  return fault;
}

EventFault WithField(const std::string& field, const Write& value) {
  return FaultOf(StoredMap({{field, value}}));
}

TEST(EventFaultTest, AnEventIsAnArrayOrAMap) {
  for (const auto& event : {Nil(), Int(7), Text("BlockStored"), Float(1), Bin("x")}) {
    EXPECT_EQ(FaultOf(event), EventFault::kEventType);
  }
}

TEST(EventFaultTest, Tags) {
  EXPECT_EQ(FaultOf(Slots("BlockMoved", {Ints({1})})), EventFault::kUnknownTag);
  EXPECT_EQ(FaultOf(Slots("blockstored", {})), EventFault::kUnknownTag);
  EXPECT_EQ(FaultOf(Map({{"type", Text("stored")}})), EventFault::kUnknownTag);
  EXPECT_EQ(FaultOf(Map({{"event_type", Text("moved")}})), EventFault::kUnknownTag);
  EXPECT_EQ(FaultOf(Array({})), EventFault::kMissingField);
  EXPECT_EQ(FaultOf(Map({})), EventFault::kMissingField);
  EXPECT_EQ(FaultOf(Map({{"block_hashes", Ints({1})}})), EventFault::kMissingField);
  EXPECT_EQ(FaultOf(Array({Int(1)})), EventFault::kFieldType);
  EXPECT_EQ(FaultOf(Map({{"type", Nil()}})), EventFault::kFieldType);
  EXPECT_EQ(FaultOf(Array({Raw("a1ff")})), EventFault::kInvalidUtf8);
}

TEST(EventFaultTest, RequiredFields) {
  for (const char* field : {"block_hashes", "parent_block_hash", "token_ids", "block_size"}) {
    EXPECT_EQ(WithField(field, nullptr), EventFault::kMissingField) << field;
  }
  for (const char* field : {"lora_id", "medium"}) {
    EXPECT_EQ(WithField(field, nullptr), EventFault::kNone) << field;
  }
  EXPECT_EQ(FaultOf(Slots("BlockStored", {Ints({1}), Nil(), Ints({1})})),
            EventFault::kMissingField);
  EXPECT_EQ(FaultOf(Slots("BlockRemoved", {})), EventFault::kMissingField);
}

TEST(EventFaultTest, Hashes) {
  EXPECT_EQ(WithField("block_hashes", Nil()), EventFault::kFieldType);
  EXPECT_EQ(WithField("block_hashes", Int(1)), EventFault::kFieldType);
  for (const auto& hash :
       {Nil(), Float(1), Text("12345678"), Raw("c3"), Raw("d60500000000"), Array({}), Map({})}) {
    EXPECT_EQ(WithField("block_hashes", Array({hash})), EventFault::kHashType);
    if (FaultOf(StoredMap({{"parent_block_hash", hash}})) != EventFault::kNone) {
      EXPECT_EQ(WithField("parent_block_hash", hash), EventFault::kHashType);
    }
  }
  EXPECT_EQ(WithField("block_hashes", Array({Bin("1234567")})), EventFault::kHashTooShort);
  EXPECT_EQ(WithField("block_hashes", Array({Bin("12345678")})), EventFault::kNone);
  const std::string longest(kBlockNameBytesMax, 'h');
  EXPECT_EQ(WithField("block_hashes", Array({Bin(longest)})), EventFault::kNone);
  EXPECT_EQ(WithField("block_hashes", Array({Bin(longest + "h")})), EventFault::kHashTooLong);
  EXPECT_EQ(WithField("parent_block_hash", Bin("")), EventFault::kHashTooShort);
  EXPECT_EQ(WithField("block_hashes", Array({Int(1), Bin("12345678")})), EventFault::kHashType);
}

// The log would refuse a longer one, and the frame would be written again for ever.
TEST(EventFaultTest, AdapterNamesFitTheLog) {
  EXPECT_EQ(WithField("lora_name", Text(std::string(1024, 'a'))), EventFault::kNone);
  EXPECT_EQ(WithField("lora_name", Text(std::string(1025, 'a'))), EventFault::kFieldRange);
}

TEST(EventFaultTest, Tokens) {
  EXPECT_EQ(WithField("token_ids", Nil()), EventFault::kFieldType);
  EXPECT_EQ(WithField("token_ids", Bin("1234")), EventFault::kFieldType);
  for (const auto& token : {Nil(), Float(2), Text("2"), Raw("c2"), Ints({1, 2})}) {
    EXPECT_EQ(WithField("token_ids", Array({Int(1), token})), EventFault::kTokenType);
  }
  for (const auto& token : {Int(-1), Int(1ll << 31), Int(1ll << 32), Uint(UINT64_MAX)}) {
    EXPECT_EQ(WithField("token_ids", Array({Int(1), token})), EventFault::kTokenRange);
  }
}

TEST(EventFaultTest, BlockSizes) {
  EXPECT_EQ(WithField("block_size", Int(0)), EventFault::kBlockSize);
  EXPECT_EQ(WithField("block_size", Int(-4)), EventFault::kBlockSize);
  EXPECT_EQ(WithField("block_size", Uint(1ull << 63)), EventFault::kBlockSize);
  EXPECT_EQ(WithField("block_size", Nil()), EventFault::kFieldType);
  EXPECT_EQ(WithField("block_size", Text("4")), EventFault::kFieldType);
  EXPECT_EQ(WithField("block_size", Float(4)), EventFault::kFieldType);
}

TEST(EventFaultTest, OptionalFieldsOfTheWrongType) {
  for (const char* field :
       {"medium", "lora_name", "kv_cache_spec_kind", "locality", "ownership", "session_id"}) {
    EXPECT_EQ(WithField(field, Int(1)), EventFault::kFieldType) << field;
    EXPECT_EQ(WithField(field, Raw("a2c080")), EventFault::kInvalidUtf8) << field;
    EXPECT_EQ(WithField(field, Nil()), EventFault::kNone) << field;
  }
  for (const char* field : {"lora_id", "group_idx", "kv_cache_spec_sliding_window"}) {
    EXPECT_EQ(WithField(field, Text("1")), EventFault::kFieldType) << field;
    EXPECT_EQ(WithField(field, Raw("c3")), EventFault::kFieldType) << field;
    EXPECT_EQ(WithField(field, Uint(1ull << 63)), EventFault::kFieldRange) << field;
    EXPECT_EQ(WithField(field, Nil()), EventFault::kNone) << field;
  }
  EXPECT_EQ(WithField("group_idx", Int(-1)), EventFault::kFieldRange);
}

TEST(EventFaultTest, ExtraKeys) {
  EXPECT_EQ(WithField("extra_keys", Text("salt")), EventFault::kFieldType);
  EXPECT_EQ(WithField("extra_keys", Array({Text("salt")})), EventFault::kFieldType);
  EXPECT_EQ(WithField("extra_keys", Array({})), EventFault::kExtraKeys);
  EXPECT_EQ(WithField("extra_keys", Array({Nil(), Nil()})), EventFault::kExtraKeys);
  EXPECT_EQ(WithField("extra_keys", Array({Array({Raw("a1ff")})})), EventFault::kInvalidUtf8);
  EXPECT_EQ(WithField("extra_keys", Array({Array({Array({Raw("a1ff"), Int(0)})})})),
            EventFault::kInvalidUtf8);
  EXPECT_EQ(WithField("extra_keys", Nil()), EventFault::kNone);
}

TEST(EventFaultTest, Keys) {
  EXPECT_EQ(FaultOf(Raw("820102a474797065b0416c6c426c6f636b73436c6561726564")),
            EventFault::kKeyType);
  EXPECT_EQ(FaultOf(Raw("82a474797065b0416c6c426c6f636b73436c6561726564c4016101")),
            EventFault::kKeyType);
  EXPECT_EQ(FaultOf(Raw("82a474797065b0416c6c426c6f636b73436c6561726564a1ff01")),
            EventFault::kInvalidUtf8);
  const auto clear = Text("AllBlocksCleared");
  EXPECT_EQ(FaultOf(Map({{"type", clear}, {"type", clear}})), EventFault::kDuplicateKey);
  EXPECT_EQ(FaultOf(Map({{"x", Nil()}, {"type", clear}, {"x", Nil()}})), EventFault::kDuplicateKey);
  std::vector<std::pair<std::string, Write>> many = {{"type", clear}};
  while (many.size() < kMapKeysMax) many.emplace_back("k" + std::to_string(many.size()), Nil());
  EXPECT_EQ(FaultOf(Map(many)), EventFault::kNone);
  many.emplace_back("one more", Nil());
  EXPECT_EQ(FaultOf(Map(many)), EventFault::kTooManyKeys);
}

TEST(EventFaultTest, ManyRejectedEventsAreAllCounted) {
  MsgpackWriter writer;
  constexpr std::uint32_t kBad = 10000;
  writer.WriteArrayHeader(2);
  writer.WriteDouble(1);
  writer.WriteArrayHeader(kBad);
  for (std::uint32_t i = 0; i < kBad; ++i) writer.WriteNil();
  const auto batch = wire_test::Decode(PublisherType::kVllm, writer.text());
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->rejected.size(), kRejectedDetailsMax);
  EXPECT_EQ(batch->RejectedTotal(), kBad);
}

TEST(EventFaultTest, EveryFaultHasAWordOfItsOwn) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < kEventFaultCount; ++i) {
    const auto word = ToString(static_cast<EventFault>(i));
    EXPECT_NE(word, "unknown") << i;
    EXPECT_EQ(std::count(words.begin(), words.end(), word), 0) << word;
    words.push_back(word);
  }
}

}  // namespace
}  // namespace conductor
