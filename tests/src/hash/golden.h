// Reading the golden vectors of tests/golden.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/types.h"

namespace conductor {

inline nlohmann::json LoadGolden(const std::string& name) {
  std::ifstream file(std::string(CONDUCTOR_SOURCE_DIR) + "/tests/golden/" + name);
  return nlohmann::json::parse(file);
}

// A text field that may be null.
inline std::string TextOr(const nlohmann::json& object, const std::string& field,
                          const std::string& otherwise) {
  return object.at(field).is_null() ? otherwise : object.at(field).get<std::string>();
}

inline std::vector<std::int32_t> TokensOf(const nlohmann::json& tokens) {
  if (tokens.is_array()) return tokens.get<std::vector<std::int32_t>>();
  return std::vector<std::int32_t>(tokens.at("count").get<std::size_t>(),
                                   tokens.at("value").get<std::int32_t>());
}

inline std::string Repeat(const std::string& text, std::size_t count) {
  std::string repeated;
  for (std::size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

inline std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline ExtraKey Text(std::string text) {
  return {ExtraKey::Kind::kText, std::move(text), 0};
}
inline ExtraKey Integer(std::int64_t value) {
  return {ExtraKey::Kind::kInteger, "", value};
}
inline ExtraKey Item(std::string identifier, std::int64_t offset) {
  return {ExtraKey::Kind::kItem, std::move(identifier), offset};
}
inline ExtraKey Bytes(std::string bytes) {
  return {ExtraKey::Kind::kBytes, std::move(bytes), 0};
}

// The keys as make_golden.py writes them.
inline ExtraKeys KeysOf(const nlohmann::json& array) {
  ExtraKeys keys;
  for (const auto& entry : array) {
    const std::string kind = entry.at("kind");
    if (kind == "text") {
      keys.push_back(Text(Repeat(entry.at("text"), entry.at("repeat"))));
    } else if (kind == "integer") {
      keys.push_back(Integer(std::stoll(entry.at("integer").get<std::string>())));
    } else if (kind == "item") {
      keys.push_back(Item(entry.at("text"), std::stoll(entry.at("integer").get<std::string>())));
    } else {
      keys.push_back(Bytes(Repeat(FromHex(entry.at("hex")), entry.at("repeat"))));
    }
  }
  return keys;
}

}  // namespace conductor
