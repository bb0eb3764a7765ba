// Every store frame of tests/golden/frames_visible.json against the decoder, and the proof that no
// entry of the file, whoever published it, is left out.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "replay/wire/store_decoder.h"
#include "tests/replay/wire/golden_entry.h"

namespace conductor {
namespace {

using nlohmann::json;
using wire_test::GoldenEntry;
using wire_test::LoadEntries;
using wire_test::Names;
using wire_test::OrNull;
using wire_test::TierWord;
using wire_test::ToHex;
using Syntax = ObjectKey::Syntax;

std::string MediumWord(Medium medium) {
  return medium == Medium::kUnknown ? "?" : TierWord(medium);
}

std::string HashHex(const ObjectKey& key) {
  if (!key.name.digest.empty()) return ToHex(key.name.digest);
  return std::to_string(key.name.projected);
}

// The golden description of a key, from ours: every field it has, and no more.
json Describe(const ObjectKey& key) {
  json all = {{"syntax", ToString(key.syntax)}};
  if (!key.HasName()) return all;
  const bool number = key.syntax == Syntax::kDecimal || key.syntax == Syntax::kHex;
  all[number ? "hash_u64" : "hash_hex"] = HashHex(key);
  if (number) return all;
  if (key.syntax == Syntax::kSglang) {
    all["namespace"] = key.tag.empty() ? json() : json(key.tag);
    all["suffix"] = key.suffix.empty() ? json() : json(key.suffix);
    all["logical_key"] =
        (key.tag.empty() ? "" : std::string(key.tag) + "_") + ToHex(key.name.digest);
    return all;
  }
  const auto add = [&all](const char* name, const auto& value) {
    if (value) all[name] = *value;
  };
  const auto add_text = [&all](const char* name, std::string_view text) {
    if (!text.empty()) all[name] = text;
  };
  const bool vllm = key.syntax == Syntax::kVllm || key.syntax == Syntax::kVllmGroupSuffix;
  add(vllm ? "tp_rank" : "head_or_tp_rank", key.tp_rank);
  add("pp_rank", key.pp_rank);
  add("pcp_rank", key.pcp_rank);
  add("dcp_rank", key.dcp_rank);
  add("layer_id", key.layer_id);
  add("group", key.group);
  add_text("model_name", key.model_name);
  add_text("cache_prefix", key.cache_prefix);
  add_text("cache_role", key.cache_role);
  add_text("cache_family", key.cache_family);
  return all;
}

void ExpectEvent(const json& op, const StoreEvent& event) {
  // A key nobody compares would be a promise nobody keeps.
  const std::set<std::string> known = {"op",         "event_id",        "tenant_id",
                                       "backend_id", "medium",          "tier",
                                       "object_key", "hashes",          "key",
                                       "model_name", "lora_name",       "block_size",
                                       "group_id",   "additional_salt", "connector_block_hash"};
  for (const auto& item : op.items()) EXPECT_TRUE(known.contains(item.key())) << item.key();

  EXPECT_EQ(std::to_string(event.event_id), op["event_id"]);
  EXPECT_EQ(event.tenant_id, op["tenant_id"]);
  EXPECT_EQ(event.backend_id, op["backend_id"]);
  if (op["op"] == "clear") {
    EXPECT_EQ(event.kind, StoreEvent::Kind::kCleared);
    EXPECT_FALSE(event.name);
    return;
  }
  const bool stored = op["op"] == "store";
  EXPECT_TRUE(stored || op["op"] == "remove");
  EXPECT_EQ(event.kind, stored ? StoreEvent::Kind::kStored : StoreEvent::Kind::kRemoved);
  EXPECT_EQ(MediumWord(event.medium), op["tier"]);
  EXPECT_EQ(MediumWord(event.medium), op["medium"]);
  EXPECT_EQ(event.object_key, op["object_key"]);
  EXPECT_EQ(event.name ? Names({*event.name}) : json::array(), op["hashes"]);
  EXPECT_EQ(Describe(event.key), op["key"]);
  EXPECT_EQ(OrNull(event.model_name), op.value("model_name", json()));
  EXPECT_EQ(OrNull(event.lora_name), op.value("lora_name", json()));
  EXPECT_EQ(OrNull(event.block_size), op.value("block_size", json()));
  EXPECT_EQ(OrNull(event.group_id), op.value("group_id", json()));
  EXPECT_EQ(OrNull(event.additional_salt), op.value("additional_salt", json()));
  if (op.contains("connector_block_hash")) {
    EXPECT_EQ(ToHex(event.name.value().digest), op["connector_block_hash"]);
  }
}

void ExpectBatch(const json& expected, const StoreBatch& batch) {
  EXPECT_EQ(batch.publisher_time_us, expected["batch"]["ts"].get<std::int64_t>() * 1000);
  EXPECT_EQ(OrNull(batch.dp_rank), expected["batch"]["dp_rank"]);
  std::map<std::uint32_t, const StoreEvent*> events;
  for (const auto& event : batch.events) events[event.index] = &event;
  std::map<std::uint32_t, const EventError*> rejected;
  for (const auto& error : batch.rejected) rejected[error.index] = &error;

  const json& ops = expected["ops"];
  ASSERT_EQ(events.size() + rejected.size(), ops.size());
  EXPECT_EQ(batch.RejectedTotal(), rejected.size());
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    SCOPED_TRACE("op " + std::to_string(i));
    if (ops[i]["op"] == "reject_event") {
      EXPECT_EQ(ops[i]["index"].get<std::uint32_t>(), i);
      ASSERT_TRUE(rejected.contains(i));
      EXPECT_EQ(ToString(rejected[i]->fault), ops[i]["reason"].get<std::string>())
          << rejected[i]->text;
      continue;
    }
    ASSERT_TRUE(events.contains(i)) << (rejected.contains(i) ? rejected[i]->text : "");
    ExpectEvent(ops[i], *events[i]);
  }
}

TEST(GoldenStoreTest, EveryStoreEntryDecodesAsWritten) {
  std::map<std::string, int> verdicts;
  for (const GoldenEntry& entry : LoadEntries()) {
    if (entry.IsOfEngine()) continue;
    SCOPED_TRACE(entry.name);
    const auto payload = entry.ParseFrames();
    const auto batch = payload ? DecodeStorePayload(entry.strategy, *payload)
                               : Result<StoreBatch>(tl::unexpected(payload.error()));
    ++verdicts[entry.verdict];
    entry.ExpectVerdict(batch);
    if (batch) ExpectBatch(entry.expected, *batch);
  }
  EXPECT_EQ(verdicts["accept"], 53);
  EXPECT_EQ(verdicts["reject_message"], 4);
  EXPECT_EQ(verdicts["either"], 1);
}

// The two tests of entries split them by GoldenEntry::IsOfEngine; the replay tests run every
// transcript. An entry of a publisher nobody knows, or one more than counted, ends here.
TEST(GoldenCoverageTest, EveryEntryIsRunByExactlyOneTest) {
  std::map<PublisherType, int> entries;
  std::set<std::string> names;
  int engines = 0;
  int stores = 0;
  for (const GoldenEntry& entry : LoadEntries()) {
    ++entries[entry.publisher];
    names.insert(entry.name);
    ++(entry.IsOfEngine() ? engines : stores);
  }
  EXPECT_EQ(entries[PublisherType::kVllm], 58);
  EXPECT_EQ(entries[PublisherType::kSglang], 24);
  EXPECT_EQ(entries[PublisherType::kMooncake], 58);
  EXPECT_EQ(engines, 82);
  EXPECT_EQ(stores, 58);
  EXPECT_EQ(names.size(), 140u);
}

TEST(GoldenCoverageTest, EveryTranscriptIsOfAPublisherWithReplay) {
  const json golden = wire_test::LoadGolden("frames_visible.json");
  std::map<std::string, int> transcripts;
  for (const json& transcript : golden["replay"]) {
    ++transcripts[transcript["publisher_type"].get<std::string>()];
  }
  EXPECT_EQ(golden["replay"].size(), 9u);
  EXPECT_EQ(transcripts["vLLM"] + transcripts["SGLang"], 9);
  EXPECT_EQ(transcripts["Mooncake"], 0);
}

}  // namespace
}  // namespace conductor
