// Payloads that promise more than they hold. Each must fail without a large allocation; a
// counting operator new measures it, so no clock and no memory statistics are needed.
#include <gtest/gtest.h>

#include "replay/wire/msgpack_reader.h"
#include "replay/wire/store_decoder.h"
#include "tests/replay/wire/counting_new.h"
#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::AllocatedBytes;
using wire_test::FromHex;
using wire_test::ReasonOf;

constexpr std::size_t kAllowedBytes = 4u << 20;

std::string Repeat(std::string_view hex, std::size_t times) {
  const auto once = FromHex(hex);
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all.append(once.begin(), once.end());
  return all;
}

std::string FromHexText(std::string_view hex) {
  return Repeat(hex, 1);
}

// As a payload, as the value of an unknown key, and where an event, its hashes, its tokens and
// its extra keys belong.
void ExpectDefused(const std::string& bomb) {
  const std::string envelope = FromHexText("93cb3ff0000000000000");
  const auto event = [&](std::string_view key) {
    MsgpackWriter writer;
    writer.WriteRaw(wire_test::AsBytes(envelope));
    writer.WriteArrayHeader(1);
    writer.WriteMapHeader(2);
    writer.WriteText("type");
    writer.WriteText("BlockStored");
    writer.WriteText(key);
    return std::move(writer).Take() + bomb;
  };
  const std::vector<std::string> payloads = {bomb,
                                             envelope + bomb,
                                             envelope + FromHexText("91") + bomb,
                                             event("unknown"),
                                             event("block_hashes"),
                                             event("token_ids"),
                                             event("extra_keys"),
                                             event("lora_name")};
  for (const auto& payload : payloads) {
    for (auto publisher : {PublisherType::kVllm, PublisherType::kSglang}) {
      const std::size_t before = AllocatedBytes();
      const auto batch = wire_test::Decode(publisher, payload);
      EXPECT_LT(AllocatedBytes() - before, kAllowedBytes);
      const std::string reason = ReasonOf(batch);
      EXPECT_TRUE(reason == "msgpack_truncated" || reason == "depth_limit") << reason;
    }
  }
  const std::string store = FromHexText("93cd0001");
  const auto store_event = [&](std::string_view key) {
    MsgpackWriter writer;
    writer.WriteRaw(wire_test::AsBytes(store));
    writer.WriteArrayHeader(1);
    writer.WriteMapHeader(2);
    writer.WriteText("event_type");
    writer.WriteText("stored");
    writer.WriteText(key);
    return std::move(writer).Take() + bomb;
  };
  for (const auto& payload :
       {bomb, store + bomb, store + FromHexText("91") + bomb, store_event("unknown"),
        store_event("seq_hashes"), store_event("block_hashes"), store_event("object_key"),
        store_event("block_size")}) {
    const std::size_t before = AllocatedBytes();
    const auto batch = DecodeStorePayload(HashStrategy::kVllmV1, wire_test::AsBytes(payload));
    EXPECT_LT(AllocatedBytes() - before, kAllowedBytes);
    const std::string reason = ReasonOf(batch);
    EXPECT_TRUE(reason == "msgpack_truncated" || reason == "depth_limit") << reason;
  }
  MsgpackReader reader(wire_test::AsBytes(bomb));
  const std::size_t before = AllocatedBytes();
  EXPECT_FALSE(reader.Skip());
  EXPECT_LT(AllocatedBytes() - before, 4096u);
}

TEST(BombTest, DeepArrays) {
  ExpectDefused(Repeat("91", 100000) + FromHexText("90"));
}
TEST(BombTest, DeepMaps) {
  ExpectDefused(Repeat("81a161", 100000) + FromHexText("80"));
}
TEST(BombTest, HugeArrayHeader) {
  ExpectDefused(FromHexText("ddffffffff"));
}
TEST(BombTest, HugeMapHeader) {
  ExpectDefused(FromHexText("dfffffffff"));
}
TEST(BombTest, ChainOfPlausibleHeaders) {
  ExpectDefused(Repeat("dcffff", 24000));
}
TEST(BombTest, HugeBytesHeader) {
  ExpectDefused(FromHexText("c6ffffffff"));
}
TEST(BombTest, HugeTextHeader) {
  ExpectDefused(FromHexText("db7fffffff78"));
}
TEST(BombTest, HugeExtHeader) {
  ExpectDefused(FromHexText("c9ffffffff05"));
}

// A header that is as long as the payload allows, over bytes that are no such list.
TEST(BombTest, PlausibleHeaderOverOtherBytes) {
  constexpr std::size_t kFiller = 1000000;
  for (const char* key : {"block_hashes", "token_ids", "extra_keys"}) {
    MsgpackWriter writer;
    writer.WriteArrayHeader(2);
    writer.WriteDouble(1);
    writer.WriteArrayHeader(1);
    writer.WriteMapHeader(2);
    writer.WriteText("type");
    writer.WriteText("BlockStored");
    writer.WriteText(key);
    writer.WriteArrayHeader(kFiller);
    for (std::size_t i = 0; i < kFiller; ++i) writer.WriteBool(true);
    const std::size_t before = AllocatedBytes();
    const auto batch = wire_test::Decode(PublisherType::kVllm, writer.text());
    EXPECT_LT(AllocatedBytes() - before, kAllowedBytes) << key;
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->RejectedTotal(), 1u);
  }
}

// Batches beyond the limits are refused by name; a million one-token events are within them.
TEST(BombTest, AMillionEventsAreAccepted) {
  constexpr std::uint32_t kEvents = 1000000;
  MsgpackWriter writer;
  writer.WriteArrayHeader(2);
  writer.WriteDouble(1);
  writer.WriteArrayHeader(kEvents);
  for (std::uint32_t i = 0; i < kEvents; ++i) {
    writer.WriteArrayHeader(6);
    writer.WriteText("BlockStored");
    writer.WriteArrayHeader(1);
    writer.WriteUint64(i);
    writer.WriteNil();
    writer.WriteArrayHeader(1);
    writer.WriteUint64(1);
    writer.WriteUint64(1);
    writer.WriteNil();
  }
  const auto batch = wire_test::Decode(PublisherType::kVllm, writer.text());
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->events.size(), kEvents);
  EXPECT_EQ(batch->events.back().index, kEvents - 1);
}

TEST(BombTest, MoreEventsThanTheLimitAreRefused) {
  MsgpackWriter writer;
  writer.WriteArrayHeader(2);
  writer.WriteDouble(1);
  writer.WriteArrayHeader(kEventsPerBatchMax + 1);
  for (std::uint64_t i = 0; i <= kEventsPerBatchMax; ++i) writer.WriteNil();
  const std::size_t before = AllocatedBytes();
  EXPECT_EQ(ReasonOf(wire_test::Decode(PublisherType::kVllm, writer.text())), "batch_limit");
  EXPECT_LT(AllocatedBytes() - before, kAllowedBytes);
}

TEST(BombTest, MoreNamesThanTheLimitAreRefused) {
  MsgpackWriter writer;
  writer.WriteArrayHeader(2);
  writer.WriteDouble(1);
  writer.WriteArrayHeader(1);
  writer.WriteArrayHeader(2);
  writer.WriteText("BlockRemoved");
  writer.WriteArrayHeader(kItemsPerBatchMax + 1);
  for (std::uint64_t i = 0; i <= kItemsPerBatchMax; ++i) writer.WriteUint64(1);
  const std::size_t before = AllocatedBytes();
  EXPECT_EQ(ReasonOf(wire_test::Decode(PublisherType::kVllm, writer.text())), "batch_limit");
  EXPECT_LT(AllocatedBytes() - before, kAllowedBytes);
}

}  // namespace
}  // namespace conductor
