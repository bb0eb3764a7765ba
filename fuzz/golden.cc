#include "fuzz/golden.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/check.h"

namespace conductor::fuzz {
namespace {

using nlohmann::json;

json LoadGolden() {
  std::ifstream file(CONDUCTOR_SOURCE_DIR "/tests/golden/frames_visible.json");
  CHECK(file.good());
  return json::parse(file);
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Message FromHex(const json& parts) {
  Message message;
  for (const json& part : parts) message.push_back(FromHex(part.get<std::string>()));
  return message;
}

HashStrategy StrategyOf(const std::string& profile) {
  if (profile.starts_with("sglang_bigram")) return HashStrategy::kSglangBigram;
  return profile.starts_with("sglang") ? HashStrategy::kSglang : HashStrategy::kVllmV1;
}

}  // namespace

std::vector<GoldenFrame> LoadGoldenFrames() {
  std::vector<GoldenFrame> frames;
  const json golden = LoadGolden();
  for (const json& entry : golden["entries"]) {
    GoldenFrame& frame = frames.emplace_back();
    const auto publisher = ParsePublisherType(entry["publisher_type"].get<std::string>());
    CHECK(publisher);
    frame.publisher = *publisher;
    frame.strategy = StrategyOf(entry["hash_profile"].get<std::string>());
    frame.parts = FromHex(entry["frames"]);
    const json ops = entry["expected"].value("ops", json::array());
    for (const json& op : ops) {
      if (op.contains("block_size") && op["block_size"].is_number()) {
        frame.block_size = static_cast<std::uint8_t>(op["block_size"].get<std::int64_t>());
      }
      if (op.contains("object_key") && op["object_key"].is_string()) {
        frame.object_keys.push_back(op["object_key"].get<std::string>());
      }
    }
  }
  CHECK(!frames.empty());
  return frames;
}

std::vector<std::vector<Message>> LoadGoldenReplays() {
  std::vector<std::vector<Message>> replays;
  const json golden = LoadGolden();
  for (const json& transcript : golden["replay"]) {
    std::vector<Message>& messages = replays.emplace_back();
    for (const json& message : transcript["response_messages"]) {
      messages.push_back(FromHex(message));
      // A REQ socket has taken the delimiter that a DEALER delivers.
      if (transcript["client_socket"] == "REQ") {
        messages.back().insert(messages.back().begin(), std::string());
      }
    }
  }
  CHECK(!replays.empty());
  return replays;
}

}  // namespace conductor::fuzz
