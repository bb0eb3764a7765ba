#include "tools/event_json.h"

#include <gtest/gtest.h>

#include <string>

namespace conductor::enginesim {
namespace {

std::string EventError(const std::string& json) {
  const auto events = ParseEvents(json);
  return events ? "no error" : events.error().message;
}

std::string PromptError(const std::string& json) {
  const auto prompt = ParsePrompt(json);
  return prompt ? "no error" : prompt.error().message;
}

TEST(EventJsonTest, APromptIsAnArrayOrAnObject) {
  EXPECT_EQ(ParsePrompt("[1, -2, 3]")->tokens, (std::vector<std::int32_t>{1, -2, 3}));
  const PromptRequest prompt =
      ParsePrompt(R"({"tokens":[7],"lora_name":"ad-1","salt":"t","extra_keys":[[["i",-1]],null]})")
          .value();
  EXPECT_EQ(prompt.lora_name, "ad-1");
  EXPECT_EQ(prompt.cache_salt, "t");
  ASSERT_EQ(prompt.block_extra_keys.size(), 2u);
  EXPECT_EQ(prompt.block_extra_keys[0], (ExtraKeys{{ExtraKey::Kind::kItem, "i", -1}}));
  EXPECT_TRUE(prompt.block_extra_keys[1].empty());
}

TEST(EventJsonTest, WrongPromptsSayWhatWasExpected) {
  EXPECT_EQ(PromptError("7"), "prompt: expected a JSON array of tokens or an object with tokens");
  EXPECT_EQ(PromptError("[1"), "prompt: expected a JSON array of tokens or an object with tokens");
  EXPECT_EQ(PromptError("[1.5]"), "expected an integer, got 1.5");
  EXPECT_EQ(PromptError("[2147483648]"), "expected an integer of 32 bits, got 2147483648");
  EXPECT_EQ(PromptError(R"({"tokns":[1]})"), "unknown field tokns");
  EXPECT_EQ(PromptError(R"({"salt":1})"), "salt: expected a text, got 1");
}

TEST(EventJsonTest, EventsHaveTheFieldsOfTheWire) {
  const auto events =
      ParseEvents(R"([{"type":"BlockStored","block_hashes":[18446744073709551615,-5,"hex:00fF"],
                       "parent_block_hash":3,"token_ids":[1,2],"block_size":2,"medium":null,
                       "extra_keys":[["s",4,"hex:aa"],null],"group_idx":1},
                      {"type":"BlockRemoved","block_hashes":[11]},
                      {"type":"AllBlocksCleared"}])")
          .value();
  ASSERT_EQ(events.size(), 3u);
  const auto& stored = std::get<BlockStoredEvent>(events[0]);
  EXPECT_EQ(stored.block_hashes[0], WireHash(~std::uint64_t{0}));
  EXPECT_EQ(stored.block_hashes[1], WireHash(std::int64_t{-5}));
  EXPECT_EQ(stored.block_hashes[2], WireHash(std::string("\x00\xff", 2)));
  EXPECT_EQ(stored.parent_block_hash, WireHash(std::uint64_t{3}));
  EXPECT_EQ(stored.medium, std::nullopt);
  EXPECT_EQ((*stored.extra_keys)[0], (ExtraKeys{{ExtraKey::Kind::kText, "s", 0},
                                                {ExtraKey::Kind::kInteger, "", 4},
                                                {ExtraKey::Kind::kBytes, "\xaa", 0}}));
  EXPECT_TRUE((*stored.extra_keys)[1].empty());
  EXPECT_EQ(stored.group_idx, 1);
  EXPECT_EQ(std::get<BlockRemovedEvent>(events[1]).medium, "GPU");
  EXPECT_TRUE(std::holds_alternative<AllBlocksClearedEvent>(events[2]));
}

TEST(EventJsonTest, WrongEventsNameTheEventAndTheField) {
  EXPECT_EQ(EventError("{}"), "events: expected a JSON array of events");
  EXPECT_EQ(EventError("[7]"), "event 0: expected an object with a type, got 7");
  EXPECT_EQ(EventError(R"([{"type":"Moved"}])"),
            "event 0: type: expected BlockStored, BlockRemoved or AllBlocksCleared, got Moved");
  EXPECT_EQ(EventError(R"([{"type":"AllBlocksCleared"},{"type":"BlockRemoved","hash":1}])"),
            "event 1: unknown field hash");
  EXPECT_EQ(EventError(R"([{"type":"BlockRemoved","block_hashes":["ab"]}])"),
            "event 0: block_hashes: expected a hash: an integer or \"hex:...\", got \"ab\"");
  EXPECT_EQ(EventError(R"([{"type":"BlockRemoved","block_hashes":["hex:a"]}])"),
            "event 0: block_hashes: hex: expected an even number of digits, got 1");
  EXPECT_EQ(EventError(R"([{"type":"BlockStored","block_size":9223372036854775808}])"),
            "event 0: block_size: expected an integer below 2^63, got 9223372036854775808");
}

TEST(EventJsonTest, HexIsStrict) {
  EXPECT_EQ(ParseHex("").value(), "");
  EXPECT_EQ(ParseHex("4aFf").value(), "\x4a\xff");
  EXPECT_EQ(ParseHex("0g").error().message, "hex: no digit at place 1");
}

}  // namespace
}  // namespace conductor::enginesim
