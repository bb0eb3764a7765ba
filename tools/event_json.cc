#include "tools/event_json.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace conductor::enginesim {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kHexPrefix = "hex:";
constexpr std::size_t kShownBytesMax = 80;  // of a wrong value in an error text

tl::unexpected<Error> Expected(const std::string& what, const Json& got) {
  std::string shown = got.dump();
  if (shown.size() > kShownBytesMax) shown = shown.substr(0, kShownBytesMax) + "...";
  return MakeError(ErrorCode::kInvalidArgument, "expected " + what + ", got " + shown);
}

// One overload for each type of field.
Status Read(const Json& json, std::int64_t& out) {
  if (!json.is_number_integer()) return Expected("an integer", json);
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) {
    return Expected("an integer below 2^63", json);
  }
  out = json.get<std::int64_t>();
  return {};
}

Status Read(const Json& json, bool& out) {
  if (!json.is_boolean()) return Expected("true or false", json);
  out = json.get<bool>();
  return {};
}

Status Read(const Json& json, std::string& out) {
  if (!json.is_string()) return Expected("a text", json);
  out = json.get<std::string>();
  return {};
}

Status Read(const Json& json, std::int32_t& out) {
  std::int64_t wide = 0;
  CONDUCTOR_RETURN_IF_ERROR(Read(json, wide));
  if (wide < std::numeric_limits<std::int32_t>::min() ||
      wide > std::numeric_limits<std::int32_t>::max()) {
    return Expected("an integer of 32 bits", json);
  }
  out = static_cast<std::int32_t>(wide);
  return {};
}

Status Read(const Json& json, WireHash& out) {
  if (json.is_number_unsigned()) {
    out = json.get<std::uint64_t>();
  } else if (json.is_number_integer()) {
    out = json.get<std::int64_t>();
  } else if (json.is_string() && json.get_ref<const std::string&>().starts_with(kHexPrefix)) {
    CONDUCTOR_ASSIGN_OR_RETURN(
        out, ParseHex(std::string_view(json.get_ref<const std::string&>()).substr(4)));
  } else {
    return Expected("a hash: an integer or \"hex:...\"", json);
  }
  return {};
}

Status Read(const Json& json, Digest& out) {
  std::string hex;
  CONDUCTOR_RETURN_IF_ERROR(Read(json, hex));
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string bytes, ParseHex(hex));
  if (bytes.size() != out.size()) return Expected("64 hex digits", json);
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return {};
}

Status Read(const Json& json, ExtraKey& out) {
  if (json.is_array() && json.size() == 2) {
    out.kind = ExtraKey::Kind::kItem;
    CONDUCTOR_RETURN_IF_ERROR(Read(json[0], out.text));
    return Read(json[1], out.integer);
  }
  if (json.is_number_integer()) {
    out.kind = ExtraKey::Kind::kInteger;
    return Read(json, out.integer);
  }
  CONDUCTOR_RETURN_IF_ERROR(Read(json, out.text));
  if (out.text.starts_with(kHexPrefix)) {
    out.kind = ExtraKey::Kind::kBytes;
    CONDUCTOR_ASSIGN_OR_RETURN(out.text, ParseHex(std::string_view(out.text).substr(4)));
  }
  return {};
}

template <typename T>
Status Read(const Json& json, std::vector<T>& out) {
  // The keys of a block without keys are null.
  if (std::is_same_v<T, ExtraKey> && json.is_null()) return {};
  if (!json.is_array()) return Expected("an array", json);
  out.reserve(json.size());
  for (const Json& entry : json) {
    T value{};
    CONDUCTOR_RETURN_IF_ERROR(Read(entry, value));
    out.push_back(std::move(value));
  }
  return {};
}

template <typename T>
Status Read(const Json& json, std::optional<T>& out) {
  out.reset();
  if (json.is_null()) return {};
  T value{};
  CONDUCTOR_RETURN_IF_ERROR(Read(json, value));
  out = std::move(value);
  return {};
}

// The fields an object may have, each with where it goes.
class Fields {
 public:
  template <typename T>
  Fields& Add(const std::string& name, T& out) {
    readers_[name] = [&out](const Json& json) { return Read(json, out); };
    return *this;
  }

  Status ReadFrom(const Json& object) const {
    for (const auto& [name, value] : object.items()) {
      const auto reader = readers_.find(name);
      if (reader == readers_.end()) {
        return MakeError(ErrorCode::kInvalidArgument, "unknown field " + name);
      }
      if (Status status = reader->second(value); !status) {
        return MakeError(ErrorCode::kInvalidArgument, name + ": " + status.error().message);
      }
    }
    return {};
  }

 private:
  std::map<std::string, std::function<Status(const Json&)>> readers_;
};

Result<EngineEvent> ReadEvent(const Json& json) {
  if (!json.is_object() || !json.contains("type")) {
    return Expected("an object with a type", json);
  }
  std::string type;
  CONDUCTOR_RETURN_IF_ERROR(Read(json["type"], type));
  Fields fields;
  fields.Add("type", type);
  if (type == "BlockStored") {
    BlockStoredEvent event;
    fields.Add("block_hashes", event.block_hashes)
        .Add("parent_block_hash", event.parent_block_hash)
        .Add("token_ids", event.token_ids)
        .Add("block_size", event.block_size)
        .Add("lora_id", event.lora_id)
        .Add("medium", event.medium)
        .Add("lora_name", event.lora_name)
        .Add("extra_keys", event.extra_keys)
        .Add("group_idx", event.group_idx)
        .Add("kv_cache_spec_kind", event.spec_kind)
        .Add("kv_cache_spec_sliding_window", event.sliding_window)
        .Add("locality", event.locality)
        .Add("ownership", event.ownership)
        .Add("session_id", event.session_id)
        .Add("cache_salt", event.cache_salt)
        .Add("bigram", event.bigram);
    CONDUCTOR_RETURN_IF_ERROR(fields.ReadFrom(json));
    return event;
  }
  if (type == "BlockRemoved") {
    BlockRemovedEvent event;
    fields.Add("block_hashes", event.block_hashes)
        .Add("medium", event.medium)
        .Add("group_idx", event.group_idx)
        .Add("locality", event.locality)
        .Add("ownership", event.ownership);
    CONDUCTOR_RETURN_IF_ERROR(fields.ReadFrom(json));
    return event;
  }
  if (type == "AllBlocksCleared") {
    CONDUCTOR_RETURN_IF_ERROR(fields.ReadFrom(json));
    return AllBlocksClearedEvent{};
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   "type: expected BlockStored, BlockRemoved or AllBlocksCleared, got " + type);
}

Result<StoreEvent> ReadStoreEvent(const Json& json) {
  if (!json.is_object() || !json.contains("event_type")) {
    return Expected("an object with an event_type", json);
  }
  StoreEvent event;
  std::string type;
  Fields fields;
  fields.Add("event_type", type)
      .Add("medium", event.medium)
      .Add("object_key", event.object_key)
      .Add("group_id", event.group_id);
  CONDUCTOR_RETURN_IF_ERROR(fields.ReadFrom(json));
  if (type != "stored" && type != "removed" && type != "cleared") {
    return MakeError(ErrorCode::kInvalidArgument,
                     "event_type: expected stored, removed or cleared, got " + type);
  }
  event.kind = type == "stored"    ? StoreEvent::Kind::kStored
               : type == "removed" ? StoreEvent::Kind::kRemoved
                                   : StoreEvent::Kind::kCleared;
  return event;
}

template <typename Event>
Result<std::vector<Event>> ReadEvents(std::string_view json_text,
                                      Result<Event> (*read)(const Json&)) {
  const Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) {
    return MakeError(ErrorCode::kInvalidArgument, "events: expected a JSON array of events");
  }
  std::vector<Event> events;
  for (const Json& entry : json) {
    Result<Event> event = read(entry);
    if (!event) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "event " + std::to_string(events.size()) + ": " + event.error().message);
    }
    events.push_back(std::move(*event));
  }
  return events;
}

}  // namespace

Result<PromptRequest> ParsePrompt(std::string_view json_text) {
  const Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  PromptRequest request;
  if (json.is_array()) {
    CONDUCTOR_RETURN_IF_ERROR(Read(json, request.tokens));
    return request;
  }
  if (!json.is_object()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "prompt: expected a JSON array of tokens or an object with tokens");
  }
  Fields fields;
  fields.Add("tokens", request.tokens)
      .Add("lora_name", request.lora_name)
      .Add("salt", request.cache_salt)
      .Add("extra_keys", request.block_extra_keys);
  CONDUCTOR_RETURN_IF_ERROR(fields.ReadFrom(json));
  return request;
}

Result<std::vector<EngineEvent>> ParseEvents(std::string_view json_text) {
  return ReadEvents<EngineEvent>(json_text, ReadEvent);
}

Result<std::vector<StoreEvent>> ParseStoreEvents(std::string_view json_text) {
  return ReadEvents<StoreEvent>(json_text, ReadStoreEvent);
}

Result<BlockList> ParseBlocks(std::string_view json_text) {
  const Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  BlockList blocks;
  if (json.is_array()) {
    CONDUCTOR_RETURN_IF_ERROR(Read(json, blocks.digests));
    return blocks;
  }
  if (!json.is_object()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "blocks: expected a JSON array of digests or an object with hashes");
  }
  Fields fields;
  fields.Add("hashes", blocks.digests).Add("medium", blocks.medium);
  CONDUCTOR_RETURN_IF_ERROR(fields.ReadFrom(json));
  return blocks;
}

Result<std::string> ParseHex(std::string_view hex) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  if (hex.size() % 2 != 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "hex: expected an even number of digits, got " + std::to_string(hex.size()));
  }
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "hex: no digit at place " + std::to_string(high < 0 ? i : i + 1));
    }
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

std::string ToHex(const Digest& digest) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace conductor::enginesim
