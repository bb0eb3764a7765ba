// Shared by the wire tests: hex, golden files, and short ways to spell payloads and events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/wire/engine_decoder.h"
#include "replay/wire/msgpack_writer.h"
#include "src/check.h"

namespace conductor::wire_test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes FromHex(std::string_view hex) {
  CHECK(hex.size() % 2 == 0);
  Bytes bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

inline std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned char byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

inline std::span<const std::uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline nlohmann::json LoadGolden(const std::string& name) {
  std::ifstream file(std::string(CONDUCTOR_SOURCE_DIR) + "/tests/golden/" + name);
  CHECK(file.good());
  return nlohmann::json::parse(file);
}

using Write = std::function<void(MsgpackWriter&)>;

// [1.0, [events...], 0]
inline std::string Batch(std::initializer_list<Write> events) {
  MsgpackWriter writer;
  writer.WriteArrayHeader(3);
  writer.WriteDouble(1.0);
  writer.WriteArrayHeader(static_cast<std::uint32_t>(events.size()));
  for (const Write& event : events) event(writer);
  writer.WriteInt64(0);
  return std::move(writer).Take();
}

// One value, as its writer spells it.
inline Write Nil() {
  return [](MsgpackWriter& w) { w.WriteNil(); };
}
inline Write Int(std::int64_t value) {
  return [=](MsgpackWriter& w) { w.WriteInt64(value); };
}
inline Write Uint(std::uint64_t value) {
  return [=](MsgpackWriter& w) { w.WriteUint64(value); };
}
inline Write Float(double value) {
  return [=](MsgpackWriter& w) { w.WriteDouble(value); };
}
inline Write Text(std::string value) {
  return [value = std::move(value)](MsgpackWriter& w) { w.WriteText(value); };
}
inline Write Bin(std::string value) {
  return [value = std::move(value)](MsgpackWriter& w) { w.WriteBytes(AsBytes(value)); };
}
inline Write Raw(std::string_view hex) {
  return [bytes = FromHex(hex)](MsgpackWriter& w) { w.WriteRaw(bytes); };
}
inline Write Array(std::vector<Write> values) {
  return [values = std::move(values)](MsgpackWriter& w) {
    w.WriteArrayHeader(static_cast<std::uint32_t>(values.size()));
    for (const Write& value : values) value(w);
  };
}
inline Write Ints(std::vector<std::int64_t> values) {
  std::vector<Write> all;
  for (std::int64_t value : values) all.push_back(Int(value));
  return Array(std::move(all));
}
inline Write Map(std::vector<std::pair<std::string, Write>> pairs) {
  return [pairs = std::move(pairs)](MsgpackWriter& w) {
    w.WriteMapHeader(static_cast<std::uint32_t>(pairs.size()));
    for (const auto& [key, value] : pairs) {
      w.WriteText(key);
      value(w);
    }
  };
}

// An array event: the tag and its slots.
inline Write Slots(std::string tag, std::vector<Write> slots) {
  slots.insert(slots.begin(), Text(std::move(tag)));
  return Array(std::move(slots));
}
inline Write Cleared() {
  return Slots("AllBlocksCleared", {});
}

// A valid map event of BlockStored with one block; `changes` replace, add, or (null) remove keys.
inline Write StoredMap(const std::vector<std::pair<std::string, Write>>& changes = {}) {
  std::vector<std::pair<std::string, Write>> pairs = {
      {"type", Text("BlockStored")}, {"block_hashes", Ints({11})},
      {"parent_block_hash", Nil()},  {"token_ids", Ints({1, 2, 3, 4})},
      {"block_size", Int(4)},        {"lora_id", Nil()},
      {"medium", Text("GPU")}};
  for (const auto& [key, value] : changes) {
    const auto at = std::find_if(pairs.begin(), pairs.end(),
                                 [&key = key](const auto& pair) { return pair.first == key; });
    if (at == pairs.end()) {
      if (value) pairs.emplace_back(key, value);
    } else if (value) {
      at->second = value;
    } else {
      pairs.erase(at);
    }
  }
  return Map(std::move(pairs));
}

// Batches point into their payloads: kept as long as the program runs.
inline std::string_view Keep(std::string payload) {
  static auto* const kept = new std::deque<std::string>;
  return kept->emplace_back(std::move(payload));
}

inline std::span<const std::uint8_t> KeepHex(std::string_view hex) {
  static auto* const kept = new std::deque<Bytes>;
  return kept->emplace_back(FromHex(hex));
}

inline Result<WireBatch> Decode(PublisherType publisher, std::string_view payload,
                                const WireLimits& limits = {}) {
  return DecodeEnginePayload(publisher, AsBytes(payload), limits);
}

inline Result<WireBatch> DecodeVllm(std::initializer_list<Write> events) {
  return Decode(PublisherType::kVllm, Keep(Batch(events)));
}
inline Result<WireBatch> DecodeSglang(std::initializer_list<Write> events) {
  return Decode(PublisherType::kSglang, Keep(Batch(events)));
}

// The reason of a refused message, or "accepted".
template <typename T>
std::string ReasonOf(const Result<T>& result) {
  return result ? "accepted" : result.error().reason;
}

}  // namespace conductor::wire_test
