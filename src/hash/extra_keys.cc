#include "src/hash/extra_keys.h"

#include <charconv>
#include <string>

namespace conductor {
namespace {

constexpr std::string_view kLoraIdPrefix = "lora_id:";

// Old releases list an adapter by its number.
ExtraKey AdapterKey(std::string_view lora_name) {
  if (const std::optional<std::int64_t> id = LoraIdOfName(lora_name)) {
    return {ExtraKey::Kind::kInteger, "", *id};
  }
  return {ExtraKey::Kind::kText, std::string(lora_name), 0};
}

}  // namespace

ExtraKeys EngineExtraKeys(std::string_view lora_name, std::uint64_t block_index,
                          std::span<const ExtraKey> block_keys, std::string_view cache_salt) {
  ExtraKeys keys;
  const bool salted = block_index == 0 && !cache_salt.empty();
  if (lora_name.empty() && block_keys.empty() && !salted) return keys;

  keys.reserve(block_keys.size() + 2);
  if (!lora_name.empty()) {
    const ExtraKey adapter = AdapterKey(lora_name);
    keys.push_back(adapter);
    // Whoever passes an engine's own list has it there already.
    if (!block_keys.empty() && block_keys.front() == adapter) block_keys = block_keys.subspan(1);
  }
  for (const ExtraKey& key : block_keys) {
    if (key.kind != ExtraKey::Kind::kBytes) keys.push_back(key);
  }
  const ExtraKey salt{ExtraKey::Kind::kText, std::string(cache_salt), 0};
  if (salted && (keys.empty() || keys.back() != salt || block_keys.empty())) keys.push_back(salt);
  for (const ExtraKey& key : block_keys) {
    if (key.kind == ExtraKey::Kind::kBytes) keys.push_back(key);
  }
  return keys;
}

std::optional<std::int64_t> LoraIdOfName(std::string_view lora_name) {
  if (!lora_name.starts_with(kLoraIdPrefix)) return std::nullopt;
  const std::string_view digits = lora_name.substr(kLoraIdPrefix.size());
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  // "lora_id:07" and "lora_id:-0" are names of their own.
  if (std::to_string(id) != digits) return std::nullopt;
  return id;
}

std::string LoraNameOfId(std::int64_t lora_id) {
  return std::string(kLoraIdPrefix) + std::to_string(lora_id);
}

}  // namespace conductor
