#include "tools/store_encoder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/tools/sim_test_util.h"

namespace conductor::enginesim {
namespace {

using Json = nlohmann::json;

constexpr int kGoldenBatches = 43;  // of stores, without those that hold a wrong event

// Its removed event has a configured block size, its cleared event none: no single master sends
// both. captured_dev_12 and captured_dev_13 are the same two events from a real one.
constexpr const char* kTwoConfigurations = "mooncake_dev_removed_then_cleared";

std::optional<StoreEra> EraOf(const Json& entry) {
  const std::string era = entry["era"];
  if (entry["publisher_type"] != "Mooncake" || entry["expected"]["verdict"] != "accept") return {};
  if (era.starts_with("store main")) return StoreEra::kM1;
  if (era.starts_with("store dev")) return StoreEra::kM2;
  if (era.starts_with("store newest")) return StoreEra::kM3;
  return {};
}

// What the operator of the golden frame's master had configured.
StoreConfig ConfigOf(const std::string& name, StoreEra era) {
  StoreConfig config;
  config.block_size = 16;
  if (era == StoreEra::kM3) config.model_name = "Qwen/Qwen2.5-7B-Instruct";
  if (name.starts_with("captured_")) config.model_name = "fallback-model";
  if (name == "mooncake_dev_stored_vllm_no_group_disk_lora") {
    config.additional_salt = "w8a8";
    config.lora_name = "ad-1";
  }
  if (name == "mooncake_new_removed_minimal_no_legacy") config.legacy = false;
  if (name == "mooncake_new_stored_config_unset") {
    config.model_name.clear();
    config.block_size = 0;
  }
  return config;
}

void ReadRank(const Json& key, const char* name, std::optional<std::uint32_t>& out) {
  if (key.contains(name)) out = key[name].get<std::uint32_t>();
}

KeyFields FieldsOf(const Json& op) {
  const Json& key = op["key"];
  KeyFields fields;
  const bool read = std::set<std::string>{"vllm", "vllm_ascend", "vllm_ascend_layer"}.contains(
                        key["syntax"].get<std::string>()) &&
                    !key.contains("cache_role");
  if (op["object_key"] == "model-e@pcp0@dcp0@head_or_tp_rank:0@pp_rank:0@not-a-hash") {
    // A master reads the ranks before it finds that there is no hash.
    fields.model_name = "model-e";
    fields.head_or_tp_rank = fields.pcp_rank = fields.dcp_rank = fields.pp_rank = 0;
  }
  if (!read) return fields;
  fields.model_name = key["model_name"];
  fields.connector_block_hash = key["hash_hex"].get<std::string>();
  if (key.contains("cache_prefix")) fields.cache_prefix = key["cache_prefix"].get<std::string>();
  if (key.contains("group")) fields.group = std::to_string(key["group"].get<int>());
  ReadRank(key, "tp_rank", fields.tp_rank);
  ReadRank(key, "head_or_tp_rank", fields.head_or_tp_rank);
  ReadRank(key, "pcp_rank", fields.pcp_rank);
  ReadRank(key, "dcp_rank", fields.dcp_rank);
  ReadRank(key, "pp_rank", fields.pp_rank);
  ReadRank(key, "layer_id", fields.layer_id);
  return fields;
}

StoreEvent ToEvent(const Json& op) {
  StoreEvent event;
  if (op["op"] == "clear") {
    event.kind = StoreEvent::Kind::kCleared;
    return event;
  }
  event.kind = op["op"] == "store" ? StoreEvent::Kind::kStored : StoreEvent::Kind::kRemoved;
  event.medium = op["medium"];
  event.object_key = op["object_key"];
  event.fields = FieldsOf(op);
  if (op.contains("group_id") && !event.fields.group) event.group_id = op["group_id"];
  if (op["key"].contains("hash_u64")) {
    event.number = std::stoull(op["key"]["hash_u64"].get<std::string>());
  }
  return event;
}

TEST(StoreEncoderTest, WritesTheGoldenFramesByteForByte) {
  const Json golden = ReadGolden("frames_visible.json");
  int batches = 0;
  for (const Json& entry : golden["entries"]) {
    const std::optional<StoreEra> era = EraOf(entry);
    if (!era || entry["name"] == kTwoConfigurations) continue;
    const std::string name = entry["name"];
    SCOPED_TRACE(name);
    const Json& expected = entry["expected"];
    const Json& first = expected["ops"][0];
    StoreBatch batch{.timestamp_ms = expected["batch"]["ts"],
                     .first_event_id = std::stoull(first["event_id"].get<std::string>())};
    for (const Json& op : expected["ops"]) batch.events.push_back(ToEvent(op));
    EXPECT_EQ(Hex(EncodeStoreBatch(*era, ConfigOf(name, *era), batch)),
              entry["frames"][2].get<std::string>());
    ++batches;
  }
  EXPECT_EQ(batches, kGoldenBatches);
}

TEST(StoreEncoderTest, WithoutTheFlagThereIsNoObjectKey) {
  StoreEvent event;
  event.object_key = "secret";
  const StoreBatch batch{.timestamp_ms = 1, .events = {event}};
  EXPECT_NE(EncodeStoreBatch(StoreEra::kM2, {}, batch).find("secret"), std::string::npos);
  EXPECT_EQ(EncodeStoreBatch(StoreEra::kM2, {.object_keys = false}, batch).find("secret"),
            std::string::npos);
}

TEST(StoreEncoderTest, EraWordsRoundTripAndOthersAreRefused) {
  for (const char* word : {"m1", "m2", "m3"}) {
    EXPECT_EQ(ToString(ParseStoreEra(word).value()), word);
  }
  const auto wrong = ParseStoreEra("m4");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(wrong.error().message, "era: expected one of m1, m2, m3, got 'm4'");
}

}  // namespace
}  // namespace conductor::enginesim
