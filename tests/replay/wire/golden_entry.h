// The entries of tests/golden/frames_visible.json as the tests of both decoders read them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "replay/wire/frame.h"
#include "tests/replay/wire/wire_test_util.h"

namespace conductor::wire_test {

inline std::string TierWord(Medium medium) {
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

inline nlohmann::json Names(const std::vector<BlockName>& names) {
  auto all = nlohmann::json::array();
  for (const auto& name : names) all.push_back(std::to_string(name.projected));
  return all;
}

template <typename T>
nlohmann::json OrNull(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

// One captured message and what it means.
struct GoldenEntry {
  std::string name;
  PublisherType publisher = PublisherType::kVllm;
  HashStrategy strategy = HashStrategy::kVllmV1;  // of a store's object keys
  std::vector<Bytes> frames;
  std::string verdict;
  nlohmann::json expected;

  bool IsOfEngine() const { return publisher != PublisherType::kMooncake; }

  // The payload; the number and the topic are compared where they are given.
  Result<ByteView> ParseFrames() const {
    const std::vector<ByteView> parts(frames.begin(), frames.end());
    CONDUCTOR_ASSIGN_OR_RETURN(const WireFrame frame, ParseLiveFrame(parts));
    if (expected.contains("seq")) {
      EXPECT_EQ(std::to_string(frame.seq), expected["seq"].get<std::string>());
      const std::string topic(frame.topic.begin(), frame.topic.end());
      EXPECT_EQ(ToHex(topic), expected["topic_hex"].get<std::string>());
    }
    return frame.payload;
  }

  void ExpectRefusal(const Error& error) const {
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(error.message.empty());
    // The notes of the golden file allow the other word here.
    if (name == "bad_deep_nesting_root" && error.reason == "depth_limit") return;
    EXPECT_EQ(error.reason, expected.value("reason", "ts_type")) << error.message;
  }

  template <typename Batch>
  void ExpectVerdict(const Result<Batch>& batch) const {
    if (verdict == "reject_message") {
      EXPECT_FALSE(batch);
    } else if (verdict == "accept") {
      EXPECT_TRUE(batch) << batch.error().message;
    } else {
      EXPECT_EQ(verdict, "either");
    }
    if (!batch) ExpectRefusal(batch.error());
  }
};

inline std::vector<GoldenEntry> LoadEntries() {
  const nlohmann::json golden = LoadGolden("frames_visible.json");
  CHECK(golden["entries"].size() == golden["count"].get<std::size_t>());
  std::vector<GoldenEntry> entries;
  for (const nlohmann::json& json : golden["entries"]) {
    GoldenEntry& entry = entries.emplace_back();
    entry.name = json["name"];
    const auto publisher = ParsePublisherType(json["publisher_type"].get<std::string>());
    CHECK(publisher);
    entry.publisher = *publisher;
    const bool sglang = json["hash_profile"].get<std::string>().starts_with("sglang");
    entry.strategy = sglang ? HashStrategy::kSglang : HashStrategy::kVllmV1;
    for (const auto& frame : json["frames"]) {
      entry.frames.push_back(FromHex(frame.get<std::string>()));
    }
    entry.expected = json["expected"];
    entry.verdict = entry.expected["verdict"];
  }
  return entries;
}

}  // namespace conductor::wire_test
