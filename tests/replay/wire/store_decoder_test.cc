// What a store's frame may say, and each way it can be wrong: a message as a whole, one event
// alone.
#include "replay/wire/store_decoder.h"

#include <gtest/gtest.h>

#include "tests/replay/wire/counting_new.h"
#include "tests/replay/wire/store_messages.h"

namespace conductor {
namespace {

using wire_test::Array;
using wire_test::AsBytes;
using wire_test::Bin;
using wire_test::Float;
using wire_test::Int;
using wire_test::Ints;
using wire_test::Map;
using wire_test::Nil;
using wire_test::Raw;
using wire_test::ReasonOf;
using wire_test::Text;
using wire_test::Uint;
using wire_test::Write;
using Kind = StoreEvent::Kind;

using namespace wire_test::store;  // NOLINT: short spellings of messages

Result<StoreBatch> Decode(const std::string& payload, const WireLimits& limits = {},
                          HashStrategy strategy = HashStrategy::kVllmV1) {
  return DecodeStorePayload(strategy, AsBytes(wire_test::Keep(payload)), limits);
}

// The one event of a batch.
StoreEvent One(const Write& event, HashStrategy strategy = HashStrategy::kVllmV1) {
  const auto batch = Decode(Batch({event}), {}, strategy);
  EXPECT_TRUE(batch) << batch.error().message;
  if (batch && batch->events.size() == 1) return batch->events[0];
  ADD_FAILURE() << "dropped: " << (batch ? batch->rejected.at(0).text : "");
  return {};
}

// The fault of `event` between two good ones, which must both stand.
EventFault FaultOf(const Write& event) {
  const auto batch = Decode(Batch({ClearedMap(), event, StoredMap()}));
  EXPECT_TRUE(batch) << batch.error().message;
  if (!batch) return EventFault::kNone;
  if (batch->rejected.empty()) {
    EXPECT_EQ(batch->events.size(), 3u);
    return EventFault::kNone;
  }
  EXPECT_EQ(batch->events.size(), 2u);
  EXPECT_EQ(batch->events.back().index, 2u);
  EXPECT_EQ(batch->rejected.size(), 1u);
  EXPECT_EQ(batch->rejected[0].text.rfind("event 1: ", 0), 0u) << batch->rejected[0].text;
  return batch->rejected[0].fault;
}
EventFault With(const std::string& field, const Write& value) {
  return FaultOf(StoredMap({{field, value}}));
}

TEST(StoreDecoderTest, OnlyTheKeyNamesTheBlock) {
  const StoreEvent event = One(StoredMap({{"model_name", Text("org/model")},
                                          {"block_size", Int(16)},
                                          {"lora_name", Text("ad")},
                                          {"additional_salt", Text("w8a8")},
                                          {"group_id", Text("7")},
                                          {"medium", Text("disk")}}));
  EXPECT_EQ(event.kind, Kind::kStored);
  EXPECT_EQ(event.medium, Medium::kDisk);
  EXPECT_EQ(event.model_name, "org/model");
  EXPECT_EQ(event.block_size, 16);
  EXPECT_EQ(event.lora_name, "ad");
  EXPECT_EQ(event.group_id, "7");
  EXPECT_EQ(event.name, (BlockName{kName, ""}));
  EXPECT_EQ(PartOf(event), "tp=0@pp=0@pcp=0@dcp=0|");
}

TEST(StoreDecoderTest, NilEmptyAndAbsentTextsAreTheSame) {
  for (const auto& value : {Nil(), Text(""), Write()}) {
    const StoreEvent event =
        One(StoredMap({{"model_name", value}, {"lora_name", value}, {"group_id", value}}));
    EXPECT_FALSE(event.model_name);
    EXPECT_FALSE(event.lora_name);
    EXPECT_FALSE(event.group_id);
  }
  EXPECT_FALSE(One(StoredMap({{"block_size", Nil()}})).block_size);
}

// Without the flag for keys the first releases send hashes alone, in two spellings.
TEST(StoreDecoderTest, HashesNameTheBlockWhenTheKeyIsLeftOut) {
  const BlockName name = {15760518052499183552u, ""};
  const auto seq = Array({Uint(15760518052499183552u)});
  const auto legacy = Ints({-2686226021210368064});
  const Pairs both = {{"object_key", nullptr}, {"seq_hashes", seq}, {"block_hashes", legacy}};
  EXPECT_EQ(One(StoredMap(both)).name, name);
  EXPECT_EQ(One(StoredMap({{"object_key", nullptr}, {"seq_hashes", seq}})).name, name);
  EXPECT_EQ(
      One(StoredMap({{"object_key", nullptr}, {"seq_hashes", nullptr}, {"block_hashes", legacy}}))
          .name,
      name);
  EXPECT_EQ(PartOf(One(StoredMap(both))), "|");
}

TEST(StoreDecoderTest, HashesStandInForAKeyOfNoKnownForm) {
  const StoreEvent event =
      One(StoredMap({{"object_key", Text("later form")}, {"seq_hashes", Array({Uint(kName)})}}));
  EXPECT_EQ(event.name, (BlockName{kName, ""}));
  EXPECT_EQ(PartOf(event), "|object=later form");
  const StoreEvent connector =
      One(StoredMap({{"object_key", Text("later form")},
                     {"connector_block_hash", Text("0011223344556677fedcba9876543210")},
                     {"seq_hashes", Array({Uint(kName)})}}));
  EXPECT_EQ(connector.name.value().projected, kName);
  EXPECT_EQ(connector.name.value().digest.size(), 16u);
}

TEST(StoreDecoderTest, AnObjectOfNoBlockStandsWithoutAName) {
  const StoreEvent event = One(StoredMap({{"object_key", Text("m@k@0")}}));
  EXPECT_FALSE(event.name);
  EXPECT_EQ(event.object_key, "m@k@0");
  EXPECT_FALSE(One(StoredMap({{"object_key", nullptr}})).name);
}

TEST(StoreDecoderTest, ProjectionFollowsTheStrategy) {
  const std::string hash = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210";
  const Write event = StoredMap({{"object_key", Text(hash + "_0_k")}});
  EXPECT_EQ(One(event, HashStrategy::kSglang).name.value().projected, 0x0011223344556677u);
  EXPECT_TRUE(One(event, HashStrategy::kSglangBigram).name);
  EXPECT_FALSE(One(event).name);
  // Publishers know one end only.
  const Write low =
      StoredMap({{"object_key", Text(hash + "_0_k")}, {"seq_hashes", Array({Uint(kName)})}});
  EXPECT_EQ(One(low, HashStrategy::kSglang).name.value().projected, 0x0011223344556677u);
  const Write stranger = StoredMap({{"connector_block_hash", Text(hash)}});
  EXPECT_FALSE(One(stranger, HashStrategy::kSglang).name);
}

TEST(StoreDecoderTest, UnknownMediaAreKeptApart) {
  EXPECT_EQ(One(StoredMap({{"medium", Text("tape")}})).medium, Medium::kUnknown);
  EXPECT_EQ(One(StoredMap({{"medium", Text("GPU")}})).medium, Medium::kUnknown);
}

TEST(StoreDecoderTest, AClearIsOfBackendAndTenantAlone) {
  for (const Pairs& more : {Pairs{}, Pairs{{"medium", Nil()}, {"type", Text("AllBlocksCleared")}},
                            Pairs{{"object_key", Text(kKey)}, {"medium", Text("cpu")}}}) {
    const StoreEvent event = One(ClearedMap(more));
    EXPECT_EQ(event.kind, Kind::kCleared);
    EXPECT_EQ(event.backend_id, "pool");
    EXPECT_EQ(event.tenant_id, "default");
    EXPECT_FALSE(event.name);
    EXPECT_EQ(event.medium, Medium::kUnknown);
  }
}

TEST(StoreDecoderTest, KeysComeInAnyOrderAndMayBeNew) {
  const auto batch = Decode(Batch({Map({{"later", Array({Nil(), Map({})})},
                                        {"object_key", Text(kKey)},
                                        {"medium", Text("cpu")},
                                        {"backend_id", Text("b")},
                                        {"tenant_id", Text("")},
                                        {"event_type", Text("removed")},
                                        {"timestamp", Int(kTime)},
                                        {"event_id", Uint(UINT64_MAX)}})}));
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->events.size(), 1u) << batch->rejected.at(0).text;
  EXPECT_EQ(batch->events[0].kind, Kind::kRemoved);
  EXPECT_EQ(batch->events[0].event_id, UINT64_MAX);
}

TEST(StoreDecoderTest, Envelopes) {
  const auto reason = [](const Write& value) { return ReasonOf(Decode(Message(value))); };
  const auto none = Array({});
  EXPECT_EQ(reason(Array({Int(kTime), none})), "accepted");
  EXPECT_EQ(reason(Array({Int(kTime), none, Nil()})), "accepted");
  EXPECT_EQ(reason(Array({Int(kTime), none, Int(0), Text("later")})), "accepted");
  EXPECT_EQ(reason(Array({Int(kTime)})), "envelope_arity");
  EXPECT_EQ(reason(Map({{"ts", Int(kTime)}, {"events", none}})), "envelope_type");
  EXPECT_EQ(reason(Nil()), "envelope_type");
  EXPECT_EQ(reason(Array({Int(kTime), Nil()})), "events_not_array");
  EXPECT_EQ(reason(Array({Int(kTime), Map({})})), "events_not_array");
  EXPECT_EQ(reason(Array({Int(-1), none})), "ts_type");
  EXPECT_EQ(reason(Array({Float(1.0), none})), "ts_type");
  EXPECT_EQ(reason(Array({Text("1"), none})), "ts_type");
  EXPECT_EQ(reason(Array({Raw("cb7ff8000000000000"), none})), "ts_not_finite");
  EXPECT_EQ(reason(Array({Raw("d6ff00000000"), none})), "ext_type");
  EXPECT_EQ(reason(Array({Int(kTime), none, Int(-1)})), "dp_rank_type");
  EXPECT_EQ(reason(Array({Int(kTime), none, Text("0")})), "dp_rank_type");
  EXPECT_EQ(ReasonOf(Decode(Batch({}) + std::string(1, '\0'))), "msgpack_trailing");
  EXPECT_EQ(ReasonOf(Decode("")), "msgpack_truncated");
}

TEST(StoreDecoderTest, TheClockSaturates) {
  const auto batch = Decode(Message(Array({Uint(UINT64_MAX), Array({})})));
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->publisher_time_us, 9'000'000'000'000'000'000);
}

TEST(StoreEventFaultTest, AnEventIsAMap) {
  for (const auto& event : {Nil(), Int(1), Text("stored"), Array({Text("BlockStored")})}) {
    EXPECT_EQ(FaultOf(event), EventFault::kEventType);
  }
}

TEST(StoreEventFaultTest, RequiredFields) {
  for (const char* field :
       {"event_id", "timestamp", "event_type", "tenant_id", "backend_id", "medium"}) {
    EXPECT_EQ(With(field, nullptr), EventFault::kMissingField) << field;
  }
  EXPECT_EQ(FaultOf(StoredMap({{"object_key", nullptr}, {"seq_hashes", nullptr}})),
            EventFault::kMissingField);
  EXPECT_EQ(FaultOf(ClearedMap({{"backend_id", nullptr}})), EventFault::kMissingField);
  EXPECT_EQ(With("medium", Nil()), EventFault::kMissingField);
}

TEST(StoreEventFaultTest, Types) {
  for (const char* field : {"event_id", "timestamp", "event_type", "tenant_id", "backend_id",
                            "object_key", "seq_hashes"}) {
    EXPECT_EQ(With(field, Nil()), EventFault::kFieldType) << field;
    EXPECT_EQ(With(field, Float(1)), EventFault::kFieldType) << field;
  }
  for (const char* field : {"medium", "model_name", "lora_name", "additional_salt", "group_id",
                            "type", "connector_block_hash", "cache_prefix"}) {
    EXPECT_EQ(With(field, Int(1)), EventFault::kFieldType) << field;
    EXPECT_EQ(With(field, Bin("cpu")), EventFault::kFieldType) << field;
  }
  for (const char* field : {"block_size", "dp_rank", "tp_rank", "head_or_tp_rank", "pcp_rank",
                            "dcp_rank", "pp_rank", "layer_id", "base_block_idx"}) {
    EXPECT_EQ(With(field, Text("1")), EventFault::kFieldType) << field;
    EXPECT_EQ(With(field, Nil()), EventFault::kNone) << field;
  }
}

TEST(StoreEventFaultTest, Ranges) {
  EXPECT_EQ(With("event_id", Int(-1)), EventFault::kFieldRange);
  EXPECT_EQ(With("timestamp", Int(-1)), EventFault::kFieldRange);
  EXPECT_EQ(With("dp_rank", Int(-1)), EventFault::kFieldRange);
  EXPECT_EQ(With("block_size", Int(0)), EventFault::kBlockSize);
  EXPECT_EQ(With("block_size", Int(-16)), EventFault::kBlockSize);
  EXPECT_EQ(With("tenant_id", Text(std::string(1024, 't'))), EventFault::kNone);
  EXPECT_EQ(With("tenant_id", Text(std::string(1025, 't'))), EventFault::kFieldRange);
  EXPECT_EQ(With("model_name", Text(std::string(1025, 'm'))), EventFault::kFieldRange);
}

TEST(StoreEventFaultTest, TextsAreUtf8) {
  for (const char* field : {"object_key", "tenant_id", "backend_id", "medium", "model_name",
                            "event_type", "connector_block_hash"}) {
    EXPECT_EQ(With(field, Raw("a2c328")), EventFault::kInvalidUtf8) << field;
  }
}

TEST(StoreEventFaultTest, Keys) {
  EXPECT_EQ(FaultOf(Map({{"later", Nil()}, {"later", Nil()}})), EventFault::kDuplicateKey);
  EXPECT_EQ(FaultOf(Raw("8101c0")), EventFault::kKeyType);
  EXPECT_EQ(FaultOf(Raw("81a1ffc0")), EventFault::kInvalidUtf8);
  Pairs many;
  for (int i = 0; i < 65; ++i) many.emplace_back("k" + std::to_string(i), Nil());
  EXPECT_EQ(FaultOf(Map(many)), EventFault::kTooManyKeys);
}

TEST(StoreEventFaultTest, Tags) {
  EXPECT_EQ(With("event_type", Text("moved")), EventFault::kUnknownTag);
  EXPECT_EQ(With("event_type", Text("BlockStored")), EventFault::kUnknownTag);
  EXPECT_EQ(With("event_type", Text("")), EventFault::kUnknownTag);
  EXPECT_EQ(With("type", Text("BlockStored")), EventFault::kNone);
  EXPECT_EQ(With("type", Nil()), EventFault::kNone);
}

TEST(StoreEventFaultTest, Contradictions) {
  EXPECT_EQ(With("type", Text("BlockRemoved")), EventFault::kConflict);
  EXPECT_EQ(With("type", Text("stored")), EventFault::kConflict);
  EXPECT_EQ(FaultOf(ClearedMap({{"type", Text("BlockStored")}})), EventFault::kConflict);
  EXPECT_EQ(With("timestamp", Int(kTime + 1)), EventFault::kConflict);
  EXPECT_EQ(FaultOf(ClearedMap({{"timestamp", Int(1)}})), EventFault::kConflict);
  EXPECT_EQ(With("seq_hashes", Array({Uint(kName)})), EventFault::kNone);
  EXPECT_EQ(With("seq_hashes", Array({Uint(kName - 1)})), EventFault::kConflict);
  EXPECT_EQ(With("seq_hashes", Array({Uint(kName), Uint(kName)})), EventFault::kFieldRange);
  EXPECT_EQ(With("connector_block_hash", Text("0xFEDCBA9876543210")), EventFault::kNone);
  EXPECT_EQ(With("connector_block_hash", Text("fedcba9876543211")), EventFault::kConflict);
  EXPECT_EQ(With("block_hashes", Array({Uint(kName)})), EventFault::kConflict);
  const auto bits = static_cast<std::int64_t>(kName);
  EXPECT_EQ(
      FaultOf(StoredMap({{"seq_hashes", Array({Uint(kName)})}, {"block_hashes", Ints({bits})}})),
      EventFault::kNone);
}

TEST(StoreEventFaultTest, Hashes) {
  for (const auto& hash : {Float(1), Text("1"), Bin("12345678"), Nil(), Raw("c3"), Int(-1)}) {
    EXPECT_EQ(With("seq_hashes", Array({hash})), EventFault::kHashType);
  }
  EXPECT_EQ(With("block_hashes", Array({Float(1)})), EventFault::kHashType);
  for (const char* text : {"", "abc", "fedcba98765432", "fedcba98765432100", "zz"}) {
    EXPECT_EQ(With("connector_block_hash", Text(text)), EventFault::kHashType) << text;
  }
}

TEST(StoreLimitsTest, BatchesBeyondTheLimitsAreRefused) {
  const std::string payload = Batch({StoredMap(), StoredMap()});
  EXPECT_EQ(ReasonOf(Decode(payload, {.store_events_max = 2})), "accepted");
  EXPECT_EQ(ReasonOf(Decode(payload, {.store_events_max = 1})), "batch_limit");
  EXPECT_EQ(ReasonOf(Decode(payload, {.payload_bytes_max = payload.size()})), "accepted");
  EXPECT_EQ(ReasonOf(Decode(payload, {.payload_bytes_max = payload.size() - 1})), "payload_size");
  const std::vector<Write> many(kStoreEventsPerBatchMax, Nil());
  EXPECT_EQ(ReasonOf(Decode(Batch(many))), "accepted");
  const std::vector<Write> more(kStoreEventsPerBatchMax + 1, Nil());
  EXPECT_EQ(ReasonOf(Decode(Batch(more))), "batch_limit");
}

TEST(StoreLimitsTest, DetailsOfRejectedEventsAreBounded) {
  const auto batch = Decode(Batch(std::vector<Write>(kRejectedDetailsMax + 10, Nil())));
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->rejected.size(), kRejectedDetailsMax);
  EXPECT_EQ(batch->RejectedTotal(), kRejectedDetailsMax + 10);
}

// Headers that fit the payload, over bytes that are no hashes; and names by the million.
TEST(StoreLimitsTest, HeadersReserveNothing) {
  constexpr std::size_t kFiller = 1'000'000;
  const std::string nils(kFiller, '\xc0');
  for (const char* field : {"seq_hashes", "block_hashes", "later"}) {
    const Write list = [&](MsgpackWriter& writer) {
      writer.WriteArrayHeader(kFiller);
      writer.WriteRaw(AsBytes(nils));
    };
    const std::string payload = Batch({StoredMap({{field, list}})});
    const std::size_t before = wire_test::AllocatedBytes();
    const auto batch = Decode(payload);
    EXPECT_LT(wire_test::AllocatedBytes() - before, 1u << 20) << field;
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->RejectedTotal(), field == std::string("later") ? 0u : 1u);
  }
}

// These texts reach the log: they name fields, never what stands in them.
TEST(StoreEventFaultTest, TextsRepeatNothingOfTheEvent) {
  for (const auto& event :
       {StoredMap({{"additional_salt", Text("s3cret")}, {"event_id", Nil()}}),
        StoredMap(
            {{"object_key", Text("s3cret")}, {"seq_hashes", Ints({1})}, {"type", Text("s3cret")}}),
        StoredMap({{"event_type", Text("s3cret")}}),
        StoredMap({{"connector_block_hash", Text("s3cret")}})}) {
    const auto batch = Decode(Batch({event}));
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch->rejected.size(), 1u);
    EXPECT_EQ(batch->rejected[0].text.find("s3cret"), std::string::npos) << batch->rejected[0].text;
  }
}

}  // namespace
}  // namespace conductor
