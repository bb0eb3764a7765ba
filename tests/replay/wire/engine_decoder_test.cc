// Envelopes, and what each era of vLLM events decodes to.
#include "replay/wire/engine_decoder.h"

#include <gtest/gtest.h>

#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::Array;
using wire_test::Bin;
using wire_test::Cleared;
using wire_test::Decode;
using wire_test::DecodeVllm;
using wire_test::Float;
using wire_test::Int;
using wire_test::Ints;
using wire_test::Map;
using wire_test::Nil;
using wire_test::Raw;
using wire_test::ReasonOf;
using wire_test::Slots;
using wire_test::StoredMap;
using wire_test::Text;
using wire_test::Uint;
using wire_test::Write;

constexpr auto kVllm = PublisherType::kVllm;

std::string Bytes(const Write& write) {
  MsgpackWriter writer;
  write(writer);
  return std::move(writer).Take();
}

std::string Reason(const Write& payload) {
  return ReasonOf(Decode(kVllm, Bytes(payload)));
}

std::vector<Write> StoredSlots(std::size_t count) {
  std::vector<Write> slots = {
      Ints({11}), Nil(), Ints({1, 2, 3, 4}), Int(4), Nil(), Nil(), Nil(), Nil(), Nil(),
      Nil(),      Nil()};
  slots.resize(count);
  return slots;
}

TEST(EnvelopeTest, TwoThreeAndMoreSlotsAreAccepted) {
  const auto two = Decode(kVllm, Bytes(Array({Float(2.5), Array({})})));
  ASSERT_TRUE(two);
  EXPECT_EQ(two->publisher_time_us, 2500000);
  EXPECT_FALSE(two->dp_rank);
  const auto three = Decode(kVllm, Bytes(Array({Float(2.5), Array({}), Int(3)})));
  EXPECT_EQ(three->dp_rank, 3);
  EXPECT_EQ(Reason(Array({Float(1), Array({}), Nil(), Text("later"), Map({})})), "accepted");
}

TEST(EnvelopeTest, IntegersAndSingleFloatsAreTimes) {
  EXPECT_EQ(Decode(kVllm, Bytes(Array({Int(7), Array({})})))->publisher_time_us, 7000000);
  EXPECT_EQ(Decode(kVllm, Bytes(Array({Raw("ca3fc00000"), Array({})})))->publisher_time_us,
            1500000);
}

TEST(EnvelopeTest, TimesOutsideAnyCalendarSaturate) {
  const auto far = Decode(kVllm, Bytes(Array({Float(1e300), Array({})})));
  ASSERT_TRUE(far);
  EXPECT_EQ(far->publisher_time_us, 9000000000000000000);
  EXPECT_EQ(Decode(kVllm, Bytes(Array({Float(-1e308), Array({})})))->publisher_time_us,
            -9000000000000000000);
}

TEST(EnvelopeTest, MapKeysComeInAnyOrder) {
  const auto batch = Decode(kVllm, Bytes(Map({{"data_parallel_rank", Int(5)},
                                              {"later", Array({Int(1)})},
                                              {"events", Array({Cleared()})},
                                              {"ts", Float(1.0)}})));
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->dp_rank, 5);
  EXPECT_EQ(batch->events.size(), 1u);
  EXPECT_EQ(batch->publisher_time_us, 1000000);
}

TEST(EnvelopeTest, BrokenMapsAreRefused) {
  EXPECT_EQ(Reason(Map({})), "envelope_key");
  EXPECT_EQ(Reason(Map({{"ts", Float(1)}})), "envelope_key");
  EXPECT_EQ(Reason(Map({{"events", Array({})}})), "envelope_key");
  EXPECT_EQ(Reason(Map({{"ts", Float(1)}, {"ts", Float(1)}, {"events", Array({})}})),
            "envelope_key");
  EXPECT_EQ(Reason(Raw("82017f02a0")), "envelope_key");
  std::vector<std::pair<std::string, Write>> many = {{"ts", Float(1)}, {"events", Array({})}};
  while (many.size() <= kMapKeysMax) many.emplace_back("k" + std::to_string(many.size()), Nil());
  EXPECT_EQ(Reason(Map(many)), "envelope_key");
}

TEST(EnvelopeTest, OtherEnvelopesAreRefused) {
  EXPECT_EQ(Reason(Nil()), "envelope_type");
  EXPECT_EQ(Reason(Int(1)), "envelope_type");
  EXPECT_EQ(Reason(Text("BlockStored")), "envelope_type");
  EXPECT_EQ(Reason(Array({})), "envelope_arity");
  EXPECT_EQ(Reason(Array({Float(1)})), "envelope_arity");
  EXPECT_EQ(Reason(Array({Float(1), Nil()})), "events_not_array");
  EXPECT_EQ(Reason(Array({Float(1), Map({})})), "events_not_array");
}

TEST(EnvelopeTest, TimesThatAreNoFiniteNumberAreRefused) {
  EXPECT_EQ(Reason(Array({Nil(), Array({})})), "ts_type");
  EXPECT_EQ(Reason(Array({Text("1"), Array({})})), "ts_type");
  EXPECT_EQ(Reason(Array({Raw("cb7ff0000000000000"), Array({})})), "ts_not_finite");
  EXPECT_EQ(Reason(Array({Raw("cbfff0000000000000"), Array({})})), "ts_not_finite");
  EXPECT_EQ(Reason(Array({Raw("d6ff68211ac0"), Array({})})), "ext_type");
}

TEST(EnvelopeTest, RanksThatAreNoNaturalNumberAreRefused) {
  EXPECT_EQ(Reason(Array({Float(1), Array({}), Int(-1)})), "dp_rank_type");
  EXPECT_EQ(Reason(Array({Float(1), Array({}), Float(1)})), "dp_rank_type");
  EXPECT_EQ(Reason(Array({Float(1), Array({}), Raw("c3")})), "dp_rank_type");
  EXPECT_EQ(Reason(Array({Float(1), Array({}), Uint(UINT64_MAX)})), "dp_rank_type");
}

TEST(EnvelopeTest, MalformedBytesRefuseTheMessageWhateverElseIsWrong) {
  EXPECT_EQ(Reason(Raw("")), "msgpack_truncated");
  EXPECT_EQ(Reason(Raw("c1")), "msgpack_invalid");
  EXPECT_EQ(Reason(Raw("91")), "msgpack_truncated");
  EXPECT_EQ(Reason(Raw("93a0c1c0")), "msgpack_invalid");
  EXPECT_EQ(Reason(Raw("92cb3ff0000000000000909000")), "msgpack_trailing");
  EXPECT_EQ(Reason(Array({Float(1), Array({Cleared(), Raw("9207c1")})})), "msgpack_invalid");
}

TEST(EnvelopeTest, LimitsRefuseTheMessage) {
  const std::string payload = wire_test::Batch({Cleared(), StoredMap(), Cleared()});
  EXPECT_EQ(ReasonOf(Decode(kVllm, payload, {.payload_bytes_max = payload.size()})), "accepted");
  EXPECT_EQ(ReasonOf(Decode(kVllm, payload, {.payload_bytes_max = payload.size() - 1})),
            "payload_size");
  EXPECT_EQ(ReasonOf(Decode(kVllm, payload, {.events_max = 3})), "accepted");
  EXPECT_EQ(ReasonOf(Decode(kVllm, payload, {.events_max = 2})), "batch_limit");
  EXPECT_EQ(ReasonOf(Decode(kVllm, payload, {.items_max = 1})), "accepted");
  EXPECT_EQ(ReasonOf(Decode(kVllm, payload, {.items_max = 0})), "batch_limit");
  const std::string keys = wire_test::Batch({StoredMap({{"extra_keys", Array({Ints({1, 2})})}})});
  EXPECT_EQ(ReasonOf(Decode(kVllm, keys, {.items_max = 4})), "accepted");
  EXPECT_EQ(ReasonOf(Decode(kVllm, keys, {.items_max = 3})), "batch_limit");
}

TEST(EnvelopeTest, StoresAreNotDecodedHere) {
  EXPECT_EQ(ReasonOf(Decode(PublisherType::kMooncake, Bytes(Array({Float(1), Array({})})))),
            "publisher_type");
}

TEST(VllmEventTest, ExtraKeysAreOnTheWireFromTheirSlotOn) {
  for (std::size_t slots = 5; slots <= 11; ++slots) {
    const auto batch = DecodeVllm({Slots("BlockStored", StoredSlots(slots))});
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch->events.size(), 1u) << slots;
    EXPECT_EQ(batch->events[0].extra_keys_on_wire, slots >= 8) << slots;
    EXPECT_TRUE(batch->events[0].extra_keys.empty());
  }
  EXPECT_TRUE(DecodeVllm({StoredMap()})->events.at(0).extra_keys_on_wire);
}

TEST(VllmEventTest, SlotsOfTheWidestArray) {
  auto slots = StoredSlots(11);
  slots[4] = Int(-3);
  slots[5] = Text("STORAGE");
  slots[6] = Text("adapter");
  slots[7] = Array({Array({Text("salt"), Int(7), Bin("digest"), Array({Text("image"), Int(-2)})})});
  slots[8] = Int(2);
  slots[9] = Text("mla_attention");
  slots[10] = Int(1024);
  const auto batch = DecodeVllm({Slots("BlockStored", slots)});
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->events.size(), 1u) << batch->rejected.at(0).text;
  const WireEvent& event = batch->events[0];
  EXPECT_EQ(event.lora_id, -3);
  EXPECT_EQ(event.medium, Medium::kDisk);
  EXPECT_EQ(event.lora_name, "adapter");
  EXPECT_EQ(event.group_idx, 2);
  EXPECT_EQ(event.spec_kind, SpecKind::kMlaAttention);
  EXPECT_EQ(event.sliding_window, 1024);
  const std::vector<ExtraKeyView> expected = {{ExtraKey::Kind::kText, "salt", 0},
                                              {ExtraKey::Kind::kInteger, "", 7},
                                              {ExtraKey::Kind::kBytes, "digest", 0},
                                              {ExtraKey::Kind::kItem, "image", -2}};
  ASSERT_EQ(event.extra_keys.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(event.extra_keys[0], expected));
  EXPECT_FALSE(event.opaque_extra_keys);
}

TEST(VllmEventTest, ExtraKeysKeepTheirBlock) {
  const auto batch = DecodeVllm(
      {StoredMap({{"block_hashes", Ints({1, 2, 3, 4})},
                  {"extra_keys", Array({Nil(), Array({Text("a")}), Array({}), Nil()})}})});
  ASSERT_TRUE(batch);
  const auto& keys = batch->events.at(0).extra_keys;
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_TRUE(keys[0].empty());
  ASSERT_EQ(keys[1].size(), 1u);
  EXPECT_EQ(keys[1][0].text, "a");
  EXPECT_TRUE(keys[2].empty());
  EXPECT_TRUE(keys[3].empty());
}

TEST(VllmEventTest, UnknownExtraKeyShapesAreKeptRaw) {
  for (const auto& shape :
       {Nil(), Float(1.5), Map({{"type", Text("lora")}}), Ints({1, 2, 3}),
        Array({Text("id"), Text("x")}), Raw("d60500000000"), Uint(1ull << 63)}) {
    const auto batch = DecodeVllm({StoredMap({{"extra_keys", Array({Array({shape})})}})});
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch->events.size(), 1u);
    EXPECT_TRUE(batch->events[0].opaque_extra_keys);
    ASSERT_EQ(batch->events[0].extra_keys.size(), 1u);
    const auto keys = batch->events[0].extra_keys[0];
    ASSERT_EQ(keys.size(), 1u);
    EXPECT_EQ(keys[0], (ExtraKeyView{ExtraKey::Kind::kBytes, Bytes(shape), 0}));
  }
}

TEST(VllmEventTest, MediaAndLocalities) {
  const std::vector<std::pair<Write, Medium>> cases = {
      {Nil(), Medium::kDevice},           {Text("GPU"), Medium::kDevice},
      {Text("NPU"), Medium::kDevice},     {Text("CPU"), Medium::kCpu},
      {Text("CPU_PINNED"), Medium::kCpu}, {Text("DISK"), Medium::kDisk},
      {Text("STORAGE"), Medium::kDisk},   {Text("EXTERNAL"), Medium::kExternal},
      {Text("FS"), Medium::kUnknown},     {Text(""), Medium::kUnknown},
      {nullptr, Medium::kDevice}};
  for (const auto& [medium, expected] : cases) {
    const auto batch = DecodeVllm({StoredMap({{"medium", medium}})});
    EXPECT_EQ(batch->events.at(0).medium, expected);
  }
  EXPECT_EQ(DecodeVllm({StoredMap()})->events.at(0).locality, Locality::kNone);
  EXPECT_EQ(DecodeVllm({StoredMap({{"locality", Text("REMOTE")}})})->events.at(0).locality,
            Locality::kRemote);
  EXPECT_EQ(DecodeVllm({StoredMap({{"locality", Text("LOCAL")}})})->events.at(0).locality,
            Locality::kLocal);
}

TEST(VllmEventTest, EmptyTextsAreAbsent) {
  const auto batch = DecodeVllm({StoredMap({{"lora_name", Text("")}})});
  EXPECT_FALSE(batch->events.at(0).lora_name);
}

TEST(VllmEventTest, ArraysAndMapsMixInOneBatch) {
  const auto batch = DecodeVllm({Slots("BlockStored", StoredSlots(5)), StoredMap(),
                                 Slots("BlockRemoved", {Ints({1}), Text("CPU"), Int(3)}),
                                 Map({{"type", Text("AllBlocksCleared")}})});
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->events.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(batch->events[i].index, i);
  EXPECT_EQ(batch->events[2].medium, Medium::kCpu);
  EXPECT_EQ(batch->events[2].group_idx, 3);
}

TEST(VllmEventTest, FieldsOfOtherEventsAndPublishersAreIgnored) {
  const auto batch = DecodeVllm(
      {Map({{"type", Text("BlockRemoved")}, {"block_hashes", Ints({1})}, {"token_ids", Text("?")}}),
       Map({{"type", Text("AllBlocksCleared")}, {"block_hashes", Nil()}}),
       StoredMap({{"cache_salt", Int(1)}})});
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->events.size(), 3u);
  EXPECT_FALSE(batch->events[2].cache_salt);
}

TEST(VllmEventTest, IntegerLimits) {
  const auto batch =
      DecodeVllm({StoredMap({{"block_hashes", Array({Uint(UINT64_MAX), Int(INT64_MIN)})},
                             {"token_ids", Ints({0, INT32_MAX})},
                             {"block_size", Int(INT64_MAX)}})});
  ASSERT_TRUE(batch);
  const WireEvent& event = batch->events.at(0);
  EXPECT_EQ(event.names[0].projected, UINT64_MAX);
  EXPECT_EQ(event.names[1].projected, 1ull << 63);
  EXPECT_EQ(event.token_ids, (std::vector<std::int32_t>{0, INT32_MAX}));
  EXPECT_EQ(event.block_size, INT64_MAX);
}

TEST(VllmEventTest, EventsWithoutHashesOrTokensAreWellFormed) {
  const auto batch = DecodeVllm({StoredMap({{"block_hashes", Array({})}, {"token_ids", Array({})}}),
                                 Slots("BlockRemoved", {Array({})})});
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->events.size(), 2u);
}

// Digests of several small blocks, joined: the log would refuse so long a name.
TEST(EngineDecoderTest, JoinedDigestsKeepTheirProjectionOnly) {
  const std::string digest = "0123456789abcdef01234567ABCDEFGH";
  const auto name = [](const std::string& bytes) {
    const auto batch = DecodeVllm({StoredMap({{"block_hashes", Array({Bin(bytes)})}})});
    return batch->events.at(0).names.at(0);
  };
  EXPECT_EQ(name(digest), (BlockName{0x4142434445464748, digest}));
  EXPECT_EQ(name(digest + digest), (BlockName{0x4142434445464748, ""}));
  EXPECT_EQ(name(digest + digest + digest), (BlockName{0x4142434445464748, ""}));
}

}  // namespace
}  // namespace conductor
