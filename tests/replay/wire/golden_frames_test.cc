// Every engine frame of tests/golden/frames_visible.json against the decoder, and every frame
// damaged.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
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
using wire_test::ReasonOf;
using wire_test::TierWord;
using wire_test::ToHex;

SpecKind SpecKindOf(const json& text) {
  return text.is_null() ? SpecKind::kNone : ParseSpecKind(text.get<std::string>());
}

Locality LocalityOf(const json& text) {
  return text.is_null() ? Locality::kNone : ParseLocality(text.get<std::string>());
}

json Digests(const std::vector<BlockName>& names) {
  json all = json::array();
  for (const auto& name : names) all.push_back(ToHex(name.digest));
  return all;
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

TEST(GoldenFramesTest, EveryEngineEntryDecodesAsWritten) {
  std::map<std::string, int> verdicts;
  for (const GoldenEntry& entry : LoadEntries()) {
    if (!entry.IsOfEngine()) continue;
    SCOPED_TRACE(entry.name);
    const auto payload = entry.ParseFrames();
    auto batch = payload ? DecodeEnginePayload(entry.publisher, *payload)
                         : Result<WireBatch>(tl::unexpected(payload.error()));
    ++verdicts[entry.verdict];
    entry.ExpectVerdict(batch);
    if (batch) ExpectBatch(entry.expected, *batch, entry.publisher);
  }
  EXPECT_EQ(verdicts["accept"], 55);
  EXPECT_EQ(verdicts["reject_message"], 25);
  EXPECT_EQ(verdicts["either"], 2);
}

// Whatever byte is lost from the end, an accepted frame becomes a refused one, never a batch.
TEST(GoldenFramesTest, EveryTruncationIsRefused) {
  std::size_t cuts = 0;
  for (const GoldenEntry& entry : LoadEntries()) {
    if (entry.verdict != "accept") continue;
    const auto& payload = entry.frames[2];
    for (std::size_t length = 0; length < payload.size(); ++length) {
      const auto part = std::span(payload).first(length);
      const std::string reason = entry.IsOfEngine()
                                     ? ReasonOf(DecodeEnginePayload(entry.publisher, part))
                                     : ReasonOf(DecodeStorePayload(entry.strategy, part));
      ASSERT_EQ(reason, "msgpack_truncated") << entry.name << " cut to " << length;
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 20000u);
}

// Damaged frames end in a batch or in a named refusal; sanitizers watch the way there.
TEST(GoldenFramesTest, DamagedFramesAreDecodedOrRefused) {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20260102;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::size_t refused = 0;
  std::size_t decoded = 0;
  for (const GoldenEntry& entry : LoadEntries()) {
    if (entry.frames.size() < 3) continue;
    const auto& payload = entry.frames[2];
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
      for (auto strategy : {HashStrategy::kVllmV1, HashStrategy::kSglang}) {
        const auto batch = DecodeStorePayload(strategy, damaged);
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
