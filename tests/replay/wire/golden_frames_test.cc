// Every engine frame of tests/golden/frames_visible.json against the decoder.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "replay/wire/frame.h"
#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using nlohmann::json;
using wire_test::FromHex;
using wire_test::ToHex;

constexpr std::size_t kEngineEntries = 82;  // 58 vLLM and 24 SGLang
constexpr std::size_t kStoreEntries = 58;   // of the store's publisher: another decoder

std::string TierWord(Medium medium) {
  switch (medium) {
    case Medium::kDevice:
      return "gpu";
    case Medium::kCpu:
      return "cpu";
    case Medium::kDisk:
      return "disk";
    case Medium::kExternal:
      return "external";
    case Medium::kUnknown:
      return "unknown";
  }
  return "?";
}

SpecKind SpecKindOf(const json& text) {
  return text.is_null() ? SpecKind::kNone : ParseSpecKind(text.get<std::string>());
}

Locality LocalityOf(const json& text) {
  return text.is_null() ? Locality::kNone : ParseLocality(text.get<std::string>());
}

json Names(const std::vector<BlockName>& names) {
  json all = json::array();
  for (const auto& name : names) all.push_back(std::to_string(name.projected));
  return all;
}

json Digests(const std::vector<BlockName>& names) {
  json all = json::array();
  for (const auto& name : names) all.push_back(ToHex(name.digest));
  return all;
}

template <typename T>
json OrNull(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

// The golden entry of one block against ours; an entry no release has is opaque to us.
void ExpectExtraKeys(const json& expected, const WireEvent& event) {
  bool any = false;
  for (const auto& entry : expected) any = any || (!entry.is_null() && !entry.empty());
  ASSERT_EQ(event.extra_keys.size(), any ? event.names.size() : 0u);
  for (std::size_t block = 0; block < event.extra_keys.size(); ++block) {
    const json& entry = expected[block];
    const auto& keys = event.extra_keys[block];
    ASSERT_EQ(keys.size(), entry.is_null() ? 0u : entry.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (entry[i].is_string()) {
        EXPECT_EQ(keys[i].kind, ExtraKey::Kind::kText);
        EXPECT_EQ(keys[i].text, entry[i].get<std::string>());
      } else {
        EXPECT_EQ(keys[i].kind, ExtraKey::Kind::kBytes);
        EXPECT_TRUE(event.opaque_extra_keys);
        EXPECT_EQ(json::from_msgpack(keys[i].text), entry[i]);
      }
    }
  }
}

void ExpectTokens(const json& op, const WireEvent& event) {
  const json pairs = op.value("token_pairs", json());
  EXPECT_EQ(event.bigram, !pairs.is_null());
  if (pairs.is_null()) {
    EXPECT_EQ(json(event.token_ids), op["token_ids"]);
    return;
  }
  json ours = json::array();
  for (std::size_t i = 0; i + 1 < event.token_ids.size(); i += 2) {
    ours.push_back({event.token_ids[i], event.token_ids[i + 1]});
  }
  EXPECT_EQ(ours, pairs);
}

void ExpectEvent(const json& op, const WireEvent& event, PublisherType publisher) {
  // A key nobody compares would be a promise nobody keeps.
  const std::set<std::string> known = {
      "op",         "hashes",         "tier",        "medium",      "block_size",
      "parent",     "token_ids",      "lora_id",     "lora_name",   "extra_keys",
      "group_idx",  "spec_kind",      "locality",    "ownership",   "session_id",
      "cache_salt", "sliding_window", "full_hashes", "full_parent", "token_pairs"};
  for (const auto& item : op.items()) EXPECT_TRUE(known.contains(item.key())) << item.key();

  if (op["op"] == "clear") {
    EXPECT_EQ(event.kind, WireEvent::Kind::kCleared);
    return;
  }
  EXPECT_EQ(Names(event.names), op["hashes"]);
  EXPECT_EQ(TierWord(event.medium), op["tier"]);
  EXPECT_EQ(OrNull(event.group_idx), op.value("group_idx", json()));
  EXPECT_EQ(event.locality, LocalityOf(op.value("locality", json())));
  if (op.contains("full_hashes")) {
    EXPECT_EQ(Digests(event.names), op["full_hashes"]);
  }
  if (op["op"] == "remove") {
    EXPECT_EQ(event.kind, WireEvent::Kind::kRemoved);
    return;
  }
  ASSERT_EQ(op["op"], "store");
  EXPECT_EQ(event.kind, WireEvent::Kind::kStored);
  EXPECT_EQ(event.parent ? json(std::to_string(event.parent->projected)) : json(), op["parent"]);
  if (op.contains("full_parent")) {
    EXPECT_EQ(ToHex(event.parent->digest), op["full_parent"]);
  }
  EXPECT_EQ(event.block_size, op["block_size"].get<std::int64_t>());
  EXPECT_EQ(OrNull(event.lora_id), op.value("lora_id", json()));
  EXPECT_EQ(OrNull(event.lora_name), op.value("lora_name", json()));
  EXPECT_EQ(OrNull(event.cache_salt), op.value("cache_salt", json()));
  EXPECT_EQ(OrNull(event.sliding_window), op.value("sliding_window", json()));
  EXPECT_EQ(event.spec_kind, SpecKindOf(op.value("spec_kind", json())));
  ExpectTokens(op, event);
  ExpectExtraKeys(op.value("extra_keys", json::array()), event);
  if (publisher == PublisherType::kSglang) {
    EXPECT_TRUE(event.extra_keys_on_wire);
  }
}

void ExpectBatch(const json& expected, const WireBatch& batch, PublisherType publisher) {
  EXPECT_EQ(batch.publisher_time_us, std::llround(expected["batch"]["ts"].get<double>() * 1e6));
  EXPECT_EQ(OrNull(batch.dp_rank), expected["batch"]["dp_rank"]);
  std::map<std::uint32_t, const WireEvent*> events;
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
    ExpectEvent(ops[i], *events[i], publisher);
  }
}

// Frame and payload, as the subscriber does it.
Result<WireBatch> DecodeMessage(const std::vector<wire_test::Bytes>& frames,
                                PublisherType publisher, const json& expected) {
  std::vector<ByteView> parts(frames.begin(), frames.end());
  CONDUCTOR_ASSIGN_OR_RETURN(const Frame frame, ParseLiveFrame(parts));
  if (expected.contains("seq")) {
    EXPECT_EQ(std::to_string(frame.seq), expected["seq"].get<std::string>());
    const std::string topic(frame.topic.begin(), frame.topic.end());
    EXPECT_EQ(ToHex(topic), expected["topic_hex"].get<std::string>());
  }
  return DecodeEnginePayload(publisher, frame.payload);
}

void ExpectRefusal(const json& entry, const Error& error) {
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(error.message.empty());
  const auto reason = entry["expected"]["reason"].get<std::string>();
  // The notes of the golden file allow the other word here.
  if (entry["name"] == "bad_deep_nesting_root" && error.reason == "depth_limit") return;
  EXPECT_EQ(error.reason, reason) << error.message;
}

TEST(GoldenFramesTest, EveryEngineEntryDecodesAsWritten) {
  const json golden = wire_test::LoadGolden("frames_visible.json");
  ASSERT_EQ(golden["entries"].size(), golden["count"].get<std::size_t>());
  std::size_t engines = 0;
  std::size_t stores = 0;
  std::map<std::string, int> verdicts;
  for (const json& entry : golden["entries"]) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    const auto publisher = ParsePublisherType(entry["publisher_type"].get<std::string>());
    ASSERT_TRUE(publisher);
    if (*publisher == PublisherType::kMooncake) {
      ++stores;
      continue;
    }
    ++engines;
    std::vector<wire_test::Bytes> frames;
    for (const json& frame : entry["frames"]) frames.push_back(FromHex(frame.get<std::string>()));
    const json& expected = entry["expected"];
    const auto batch = DecodeMessage(frames, *publisher, expected);
    const auto verdict = expected["verdict"].get<std::string>();
    ++verdicts[verdict];
    if (verdict == "reject_message") {
      ASSERT_FALSE(batch);
      ExpectRefusal(entry, batch.error());
    } else if (verdict == "accept") {
      ASSERT_TRUE(batch) << batch.error().message;
      ExpectBatch(expected, *batch, *publisher);
    } else if (batch) {
      ExpectBatch(expected, *batch, *publisher);
    } else {
      ExpectRefusal(entry, batch.error());
    }
  }
  EXPECT_EQ(engines, kEngineEntries);
  EXPECT_EQ(stores, kStoreEntries);
  EXPECT_EQ(verdicts["accept"], 55);
  EXPECT_EQ(verdicts["reject_message"], 25);
  EXPECT_EQ(verdicts["either"], 2);
}

// Whatever byte is lost from the end, an accepted frame becomes a refused one, never a batch.
TEST(GoldenFramesTest, EveryTruncationIsRefused) {
  const json golden = wire_test::LoadGolden("frames_visible.json");
  std::size_t cuts = 0;
  for (const json& entry : golden["entries"]) {
    const auto publisher = *ParsePublisherType(entry["publisher_type"].get<std::string>());
    if (publisher == PublisherType::kMooncake) continue;
    if (entry["expected"]["verdict"] != "accept") continue;
    const auto payload = FromHex(entry["frames"][2].get<std::string>());
    for (std::size_t length = 0; length < payload.size(); ++length) {
      const auto batch = DecodeEnginePayload(publisher, std::span(payload).first(length));
      ASSERT_EQ(wire_test::ReasonOf(batch), "msgpack_truncated")
          << entry["name"] << " cut to " << length;
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 5000u);
}

// Damaged frames end in a batch or in a named refusal; sanitizers watch the way there.
TEST(GoldenFramesTest, DamagedFramesAreDecodedOrRefused) {
  const json golden = wire_test::LoadGolden("frames_visible.json");
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20260102;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::size_t refused = 0;
  std::size_t decoded = 0;
  for (const json& entry : golden["entries"]) {
    if (entry["frames"].size() < 3) continue;
    const auto payload = FromHex(entry["frames"][2].get<std::string>());
    if (payload.empty() || payload.size() > 4096) continue;
    for (int round = 0; round < 300; ++round) {
      auto damaged = payload;
      for (auto hits = 1 + random() % 3; hits > 0; --hits) {
        damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
      }
      for (auto publisher : {PublisherType::kVllm, PublisherType::kSglang}) {
        const auto batch = DecodeEnginePayload(publisher, damaged);
        ++(batch ? decoded : refused);
        if (!batch) {
          ASSERT_FALSE(batch.error().reason.empty());
        }
      }
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(decoded, 1000u);
}

}  // namespace
}  // namespace conductor
