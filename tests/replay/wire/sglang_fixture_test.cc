// Payloads that SGLang's own struct definitions wrote, with the hashes its own library computed.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using nlohmann::json;
using wire_test::KeepHex;

Result<WireBatch> DecodeHex(const json& hex) {
  return DecodeEnginePayload(PublisherType::kSglang, KeepHex(hex.get<std::string>()));
}

std::string Signed(const BlockName& name) {
  return std::to_string(static_cast<std::int64_t>(name.projected));
}

json SignedAll(const std::vector<BlockName>& names) {
  json all = json::array();
  for (const auto& name : names) all.push_back(Signed(name));
  return all;
}

Medium MediumOf(const json& event) {
  return event.contains("medium") ? ParseMedium(event["medium"].get<std::string>())
                                  : Medium::kDevice;
}

void ExpectEvent(const json& expected, const WireEvent& event) {
  const auto type = expected["type"].get<std::string>();
  if (type == "AllBlocksCleared") {
    EXPECT_EQ(event.kind, WireEvent::Kind::kCleared);
    return;
  }
  EXPECT_EQ(SignedAll(event.names), expected["block_hashes"]);
  EXPECT_EQ(event.medium, MediumOf(expected));
  if (type == "BlockRemoved") {
    EXPECT_EQ(event.kind, WireEvent::Kind::kRemoved);
    return;
  }
  EXPECT_EQ(event.kind, WireEvent::Kind::kStored);
  EXPECT_EQ(event.parent ? json(Signed(*event.parent)) : json(), expected["parent_block_hash"]);
  EXPECT_EQ(json(event.token_ids), expected["token_ids"]);
  EXPECT_EQ(json(event.block_size), expected["block_size"]);
  EXPECT_EQ(event.lora_id ? json(*event.lora_id) : json(), expected["lora_id"]);
  EXPECT_EQ(event.cache_salt ? json(*event.cache_salt) : json(),
            expected.value("cache_salt", json()));
}

TEST(SglangFixtureTest, EveryCaseDecodesAsWritten) {
  const json fixture = wire_test::LoadGolden("published_fixtures/sglang_map_event_vectors.json");
  std::size_t cases = 0;
  for (const json& entry : fixture["cases"]) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    ++cases;
    const auto batch = DecodeHex(entry["payload_hex"]);
    ASSERT_TRUE(batch) << batch.error().message;
    const json& expected = entry["expected"];
    EXPECT_EQ(batch->publisher_time_us, std::llround(expected["ts"].get<double>() * 1e6));
    EXPECT_EQ(batch->dp_rank ? json(*batch->dp_rank) : json(), expected["attn_dp_rank"]);
    EXPECT_EQ(batch->RejectedTotal(), 0u);
    ASSERT_EQ(batch->events.size(), expected["events"].size());
    for (std::size_t i = 0; i < batch->events.size(); ++i) {
      ExpectEvent(expected["events"][i], batch->events[i]);
    }
  }
  EXPECT_EQ(cases, 6u);
}

TEST(SglangFixtureTest, TiersOfOnePromptDecode) {
  const json fixture = wire_test::LoadGolden("published_fixtures/sglang_map_event_vectors.json");
  const json& chain = fixture["integration"];
  std::size_t payloads = 0;
  for (const json& publish : chain["tier_publishes"]) {
    ++payloads;
    const auto batch = DecodeHex(publish["payload_hex"]);
    ASSERT_TRUE(batch) << batch.error().message;
    ASSERT_EQ(batch->events.size(), 1u);
    const WireEvent& event = batch->events[0];
    EXPECT_EQ(event.medium, MediumOf(publish));
    const auto blocks = publish["block_count"].get<std::size_t>();
    ASSERT_EQ(event.names.size(), blocks);
    EXPECT_EQ(event.token_ids.size(), blocks * chain["block_size"].get<std::size_t>());
    for (std::size_t i = 0; i < blocks; ++i) {
      EXPECT_EQ(Signed(event.names[i]), chain["block_hashes_signed"][i].get<std::string>());
    }
  }
  EXPECT_GE(payloads, 3u);
}

}  // namespace
}  // namespace conductor
