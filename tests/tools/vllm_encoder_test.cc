#include "tools/vllm_encoder.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/sim_test_util.h"

namespace conductor::enginesim {
namespace {

using Json = nlohmann::json;

// Golden frames whose events can be said in the encoder's terms, with their era.
struct GoldenFrame {
  const char* name;
  Era era;
  bool signed_hashes = false;
};

constexpr GoldenFrame kGoldenFrames[] = {
    {"vllm_0_9_0_stored_signed_int", Era::kA, true},
    {"vllm_0_9_0_removed_and_cleared", Era::kA, true},
    {"vllm_0_11_stored_int_medium_dp", Era::kB011},
    {"vllm_0_11_stored_bytes32", Era::kB011},
    {"vllm_0_15_stored_lora_name", Era::kB015},
    {"vllm_late_array_all_slots", Era::kBAll},
    {"vllm_late_array_removed_group", Era::kB},
    {"vllm_late_array_removed_group", Era::kBAll},
    {"vllm_0_26_map_capture_shape", Era::kC},
    {"vllm_map_minimal_defaults_omitted", Era::kC},
    {"vllm_map_bytes32_lora_salt_extra_keys", Era::kC},
    {"vllm_map_bytes16_xxhash", Era::kC},
    {"vllm_map_mixed_int_gpu_bytes_cpu", Era::kC},
    {"vllm_main_map_locality_ownership_session", Era::kC},
    {"vllm_map_sliding_window_group", Era::kC},
    {"vllm_map_dp_rank_nil", Era::kC},
    {"vllm_empty_event_list", Era::kB},
    {"vllm_empty_event_list", Era::kC},
    {"vllm_unknown_medium", Era::kC},
    {"vllm_map_envelope_unreleased", Era::kMap},
};

WireHash ToHash(const std::string& decimal, bool as_signed) {
  const std::uint64_t value = std::stoull(decimal);
  if (as_signed) return static_cast<std::int64_t>(value);
  return value;
}

std::vector<WireHash> ToHashes(const Json& op, bool as_signed) {
  std::vector<WireHash> hashes;
  if (op.contains("full_hashes")) {
    for (const auto& hex : op["full_hashes"]) hashes.emplace_back(FromHex(hex.get<std::string>()));
    return hashes;
  }
  for (const auto& hash : op["hashes"]) {
    hashes.push_back(ToHash(hash.get<std::string>(), as_signed));
  }
  return hashes;
}

template <typename T>
void ReadOptional(const Json& op, const char* field, std::optional<T>& out) {
  out.reset();
  if (op.contains(field)) out = op[field].get<T>();
}

BlockStoredEvent ToStored(const Json& op, bool as_signed) {
  BlockStoredEvent event;
  event.block_hashes = ToHashes(op, as_signed);
  if (op.contains("full_parent")) {
    event.parent_block_hash = FromHex(op["full_parent"].get<std::string>());
  } else if (!op["parent"].is_null()) {
    event.parent_block_hash = ToHash(op["parent"].get<std::string>(), as_signed);
  }
  event.token_ids = op["token_ids"].get<std::vector<std::int32_t>>();
  event.block_size = op["block_size"];
  ReadOptional(op, "lora_id", event.lora_id);
  ReadOptional(op, "medium", event.medium);
  ReadOptional(op, "lora_name", event.lora_name);
  ReadOptional(op, "group_idx", event.group_idx);
  ReadOptional(op, "spec_kind", event.spec_kind);
  ReadOptional(op, "sliding_window", event.sliding_window);
  ReadOptional(op, "locality", event.locality);
  ReadOptional(op, "ownership", event.ownership);
  ReadOptional(op, "session_id", event.session_id);
  if (op.contains("extra_keys")) {
    std::vector<ExtraKeys> blocks;
    for (const auto& keys : op["extra_keys"]) {
      blocks.emplace_back();
      for (const auto& key : keys) {
        blocks.back().push_back({ExtraKey::Kind::kText, key.get<std::string>(), 0});
      }
    }
    event.extra_keys = blocks;
  }
  return event;
}

EventBatch ToBatch(const Json& expected, bool as_signed) {
  EventBatch batch;
  batch.ts = expected["batch"]["ts"];
  if (!expected["batch"]["dp_rank"].is_null()) batch.dp_rank = expected["batch"]["dp_rank"];
  for (const Json& op : expected["ops"]) {
    if (op["op"] == "clear") {
      batch.events.emplace_back(AllBlocksClearedEvent{});
    } else if (op["op"] == "store") {
      batch.events.emplace_back(ToStored(op, as_signed));
    } else {
      BlockRemovedEvent event;
      event.block_hashes = ToHashes(op, as_signed);
      ReadOptional(op, "medium", event.medium);
      ReadOptional(op, "group_idx", event.group_idx);
      ReadOptional(op, "locality", event.locality);
      ReadOptional(op, "ownership", event.ownership);
      batch.events.emplace_back(event);
    }
  }
  return batch;
}

TEST(VllmEncoderTest, WritesTheGoldenFramesByteForByte) {
  const Json golden = ReadGolden("frames_visible.json");
  // The nested golden lists hold what the visible file says of its two mixed events.
  std::map<std::string, Json> by_name;
  for (const Json& entry : golden["entries"]) by_name[entry["name"]] = entry;
  for (const GoldenFrame& frame : kGoldenFrames) {
    SCOPED_TRACE(frame.name);
    ASSERT_TRUE(by_name.contains(frame.name));
    const Json& entry = by_name[frame.name];
    const EventBatch batch = ToBatch(entry["expected"], frame.signed_hashes);
    EXPECT_EQ(Hex(EncodeBatch(frame.era, batch)), entry["frames"][2].get<std::string>());
  }
}

TEST(VllmEncoderTest, LaterArraysWriteEverySlot) {
  BlockStoredEvent stored;
  stored.block_hashes = {WireHash(std::uint64_t{1})};
  stored.token_ids = {1};
  stored.block_size = 1;
  BlockRemovedEvent removed;
  removed.block_hashes = {WireHash(std::uint64_t{1})};
  const EventBatch batch{.ts = 1, .events = {stored, removed}, .dp_rank = 0};
  // Envelope of 3; stored of 1 + 9 slots with nil extra_keys and group_idx; removed of 1 + 3.
  EXPECT_EQ(Hex(EncodeBatch(Era::kB, batch)),
            "93cb3ff0000000000000929aab426c6f636b53746f7265649101c0910101c0a3475055c0c0c0"
            "94ac426c6f636b52656d6f7665649101a3475055c000");
}

TEST(VllmEncoderTest, ExtraKeysKeepTheirKinds) {
  BlockStoredEvent stored;
  stored.block_hashes = {WireHash(std::uint64_t{1})};
  stored.token_ids = {1};
  stored.block_size = 1;
  stored.extra_keys = {{{ExtraKey::Kind::kInteger, "", 7},
                        {ExtraKey::Kind::kItem, "img", -3},
                        {ExtraKey::Kind::kText, "s", 0},
                        {ExtraKey::Kind::kBytes, "\xff", 0}}};
  const EventBatch batch{.ts = 1, .events = {stored}, .dp_rank = 0};
  EXPECT_NE(Hex(EncodeBatch(Era::kC, batch)).find("91940792a3696d67fda173c401ff"),
            std::string::npos);
}

TEST(VllmEncoderTest, EraWordsRoundTripAndOthersAreRefused) {
  for (const char* word : {"a", "b0.11", "b0.15", "b", "b-all", "c", "map"}) {
    EXPECT_EQ(ToString(ParseEra(word).value()), word);
  }
  const auto wrong = ParseEra("d");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(wrong.error().message,
            "era: expected one of a, b0.11, b0.15, b, b-all, c, map, got 'd'");
}

TEST(VllmEncoderTest, ErasKnowWhichNewerFieldsTheyHave) {
  EXPECT_FALSE(HasExtraKeys(Era::kB015));
  EXPECT_TRUE(HasExtraKeys(Era::kB));
  EXPECT_TRUE(HasExtraKeys(Era::kC));
  EXPECT_FALSE(HasLoraName(Era::kB011));
  EXPECT_TRUE(HasLoraName(Era::kB015));
}

}  // namespace
}  // namespace conductor::enginesim
