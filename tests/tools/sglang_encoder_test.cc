#include "tools/sglang_encoder.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/sim_test_util.h"

namespace conductor::enginesim {
namespace {

using Json = nlohmann::json;

struct GoldenFrame {
  const char* name;
  SglangEra era;
};

// Every SGLang frame of the golden file, with the eras that write it.
constexpr GoldenFrame kGoldenFrames[] = {
    {"sglang_old_array_5_slots", SglangEra::kS1},
    {"sglang_array_medium_rank", SglangEra::kS2},
    {"sglang_array_medium_rank", SglangEra::kS3},
    {"sglang_array_salt_metadata", SglangEra::kS3},
    {"sglang_array_bigram_pairs", SglangEra::kS2},
    {"sglang_array_bigram_pairs", SglangEra::kS3},
    {"sglang_map_stored_removed_cleared", SglangEra::kS4},
    {"sglang_map_optionals_omitted", SglangEra::kS4},
    {"sglang_map_salt_session_cpu", SglangEra::kS4},
    {"sglang_map_int64_limits", SglangEra::kS4},
    {"sglang_map_disk_external", SglangEra::kS4},
    {"sglang_map_partial_page", SglangEra::kS4},
    {"sglang_topic_epoch_marker", SglangEra::kS4},
    {"sglang_snapshot_barrier", SglangEra::kS4},
};

std::vector<WireHash> ToHashes(const Json& hashes) {
  std::vector<WireHash> out;
  for (const auto& hash : hashes) {
    out.emplace_back(static_cast<std::int64_t>(std::stoull(hash.get<std::string>())));
  }
  return out;
}

std::optional<std::string> TextOf(const Json& op, const char* field) {
  if (!op.contains(field)) return std::nullopt;
  return op[field].get<std::string>();
}

BlockStoredEvent ToStored(const Json& op) {
  BlockStoredEvent event;
  event.block_hashes = ToHashes(op["hashes"]);
  if (!op["parent"].is_null()) event.parent_block_hash = ToHashes({op["parent"]})[0];
  if (op.contains("token_pairs")) {
    event.bigram = true;
    for (const auto& pair : op["token_pairs"]) event.token_ids.push_back(pair[0]);
    event.token_ids.push_back(op["token_pairs"].back()[1]);
  } else {
    event.token_ids = op["token_ids"].get<std::vector<std::int32_t>>();
  }
  event.block_size = op["block_size"];
  event.medium = TextOf(op, "medium");
  event.cache_salt = TextOf(op, "cache_salt");
  event.session_id = TextOf(op, "session_id");
  return event;
}

EventBatch ToBatch(const Json& expected) {
  EventBatch batch;
  batch.ts = expected["batch"]["ts"];
  if (!expected["batch"]["dp_rank"].is_null()) batch.dp_rank = expected["batch"]["dp_rank"];
  for (const Json& op : expected["ops"]) {
    if (op["op"] == "clear") {
      batch.events.emplace_back(AllBlocksClearedEvent{});
    } else if (op["op"] == "store") {
      batch.events.emplace_back(ToStored(op));
    } else {
      BlockRemovedEvent event;
      event.block_hashes = ToHashes(op["hashes"]);
      event.medium = TextOf(op, "medium");
      batch.events.emplace_back(event);
    }
  }
  return batch;
}

TEST(SglangEncoderTest, WritesTheGoldenFramesByteForByte) {
  std::map<std::string, Json> by_name;
  const Json golden = ReadGolden("frames_visible.json");
  for (const Json& entry : golden["entries"]) by_name[entry["name"]] = entry;
  for (const GoldenFrame& frame : kGoldenFrames) {
    SCOPED_TRACE(frame.name);
    ASSERT_TRUE(by_name.contains(frame.name));
    const Json& entry = by_name[frame.name];
    EXPECT_EQ(Hex(EncodeSglangBatch(frame.era, ToBatch(entry["expected"]))),
              entry["frames"][2].get<std::string>());
  }
}

TEST(SglangEncoderTest, UnsignedHashesAreWrittenAsTheSameSignedBits) {
  BlockRemovedEvent removed;
  removed.block_hashes = {WireHash(~std::uint64_t{0})};
  removed.medium.reset();
  const EventBatch batch{.ts = 1, .events = {removed}, .dp_rank = 0};
  EXPECT_EQ(Hex(EncodeSglangBatch(SglangEra::kS2, batch)),
            "93cb3ff00000000000009193ac426c6f636b52656d6f76656491ffc000");
}

TEST(SglangEncoderTest, ASaltThatAnEraDoesNotHaveIsLeftOut) {
  BlockStoredEvent stored;
  stored.block_hashes = {WireHash(std::int64_t{1})};
  stored.token_ids = {1};
  stored.block_size = 1;
  EventBatch plain{.ts = 1, .events = {stored}, .dp_rank = 0};
  stored.cache_salt = "t";
  EventBatch salted{.ts = 1, .events = {stored}, .dp_rank = 0};
  EXPECT_EQ(EncodeSglangBatch(SglangEra::kS2, plain), EncodeSglangBatch(SglangEra::kS2, salted));
  EXPECT_NE(EncodeSglangBatch(SglangEra::kS3, plain), EncodeSglangBatch(SglangEra::kS3, salted));
  // An empty salt is none.
  stored.cache_salt = "";
  salted.events = {stored};
  for (const SglangEra era : {SglangEra::kS3, SglangEra::kS4}) {
    EXPECT_EQ(EncodeSglangBatch(era, plain), EncodeSglangBatch(era, salted));
  }
}

TEST(SglangEncoderTest, EraWordsRoundTripAndOthersAreRefused) {
  for (const char* word : {"s1", "s2", "s3", "s4"}) {
    EXPECT_EQ(ToString(ParseSglangEra(word).value()), word);
  }
  const auto wrong = ParseSglangEra("s5");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(wrong.error().message, "era: expected one of s1, s2, s3, s4, got 's5'");
}

}  // namespace
}  // namespace conductor::enginesim
