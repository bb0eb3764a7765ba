// Engine payloads in few words: Payload({S({11}, {}, A()), R({11})}). Map events of the newest vLLM
// unless `slots` asks for an array event of an older one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "replay/wire/msgpack_writer.h"

namespace conductor::replay_test {

using Tokens = std::vector<std::int32_t>;
using Name = std::variant<std::uint64_t, std::string>;  // an integer, or bytes
using Names = std::vector<Name>;
using Keys = std::vector<std::string>;  // extra keys of one block

// Token blocks of four: [1..4], [5..8], ...
inline Tokens BlockTokens(int first, int blocks = 1) {
  Tokens tokens;
  for (int i = 0; i < 4 * blocks; ++i) tokens.push_back(4 * first + i + 1);
  return tokens;
}
inline Tokens A() {
  return BlockTokens(0);
}
inline Tokens B() {
  return BlockTokens(1);
}
inline Tokens C() {
  return BlockTokens(2);
}

struct EventSpec {
  std::string tag;
  Names names;
  std::optional<Name> parent;
  Tokens tokens;
  int block_size = 4;
  std::optional<std::string> medium;
  std::optional<std::string> lora_name;
  std::optional<int> lora_id;
  std::optional<std::vector<Keys>> extra_keys;
  std::optional<int> group;
  std::optional<std::string> spec_kind;
  std::optional<std::string> locality;
  std::uint32_t slots = 0;  // 0: a map; else an array with so many slots after the tag
};

inline EventSpec S(Names names, std::optional<Name> parent, Tokens tokens) {
  EventSpec event;
  event.tag = "BlockStored";
  event.names = std::move(names);
  event.parent = std::move(parent);
  event.tokens = std::move(tokens);
  return event;
}
inline EventSpec R(Names names) {
  EventSpec event;
  event.tag = "BlockRemoved";
  event.names = std::move(names);
  return event;
}
inline EventSpec Clear() {
  EventSpec event;
  event.tag = "AllBlocksCleared";
  return event;
}

namespace internal {

inline void WriteName(MsgpackWriter& writer, const Name& name) {
  if (const auto* integer = std::get_if<std::uint64_t>(&name)) return writer.WriteUint64(*integer);
  const auto& text = std::get<std::string>(name);
  writer.WriteBytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}
inline void WriteText(MsgpackWriter& writer, const std::optional<std::string>& text) {
  text ? writer.WriteText(*text) : writer.WriteNil();
}
inline void WriteInt(MsgpackWriter& writer, const std::optional<int>& value) {
  value ? writer.WriteInt64(*value) : writer.WriteNil();
}

// The value of one field, by its name on the wire.
inline void WriteField(MsgpackWriter& writer, const EventSpec& event, const std::string& field) {
  if (field == "block_hashes") {
    writer.WriteArrayHeader(static_cast<std::uint32_t>(event.names.size()));
    for (const Name& name : event.names) WriteName(writer, name);
  } else if (field == "parent_block_hash") {
    event.parent ? WriteName(writer, *event.parent) : writer.WriteNil();
  } else if (field == "token_ids") {
    writer.WriteArrayHeader(static_cast<std::uint32_t>(event.tokens.size()));
    for (std::int32_t token : event.tokens) writer.WriteInt64(token);
  } else if (field == "block_size") {
    writer.WriteInt64(event.block_size);
  } else if (field == "lora_id") {
    WriteInt(writer, event.lora_id);
  } else if (field == "medium") {
    WriteText(writer, event.medium);
  } else if (field == "lora_name") {
    WriteText(writer, event.lora_name);
  } else if (field == "group_idx") {
    WriteInt(writer, event.group);
  } else if (field == "kv_cache_spec_kind") {
    WriteText(writer, event.spec_kind);
  } else if (field == "locality") {
    WriteText(writer, event.locality);
  } else if (!event.extra_keys) {
    writer.WriteNil();
  } else {
    writer.WriteArrayHeader(static_cast<std::uint32_t>(event.extra_keys->size()));
    for (const auto& keys : *event.extra_keys) {
      if (keys.empty()) {
        writer.WriteNil();
        continue;
      }
      writer.WriteArrayHeader(static_cast<std::uint32_t>(keys.size()));
      for (const auto& key : keys) writer.WriteText(key);
    }
  }
}

inline void WriteEvent(MsgpackWriter& writer, const EventSpec& event) {
  const bool stored = event.tag == "BlockStored";
  std::vector<std::string> fields;
  if (stored) {
    fields = {
        "block_hashes", "parent_block_hash", "token_ids",  "block_size", "lora_id",
        "medium",       "lora_name",         "extra_keys", "group_idx",  "kv_cache_spec_kind"};
  } else if (event.tag == "BlockRemoved") {
    fields = {"block_hashes", "medium", "group_idx"};
  }
  if (event.slots > 0) {
    writer.WriteArrayHeader(event.slots + 1);
    writer.WriteText(event.tag);
    for (std::uint32_t i = 0; i < event.slots; ++i) WriteField(writer, event, fields[i]);
    return;
  }
  if (event.locality) fields.push_back("locality");
  writer.WriteMapHeader(static_cast<std::uint32_t>(fields.size()) + 1);
  writer.WriteText("type");
  writer.WriteText(event.tag);
  for (const std::string& field : fields) {
    writer.WriteText(field);
    WriteField(writer, event, field);
  }
}

}  // namespace internal

inline std::string Payload(const std::vector<EventSpec>& events, std::optional<int> rank = 0) {
  MsgpackWriter writer;
  writer.WriteArrayHeader(3);
  writer.WriteDouble(1.0);
  writer.WriteArrayHeader(static_cast<std::uint32_t>(events.size()));
  for (const EventSpec& event : events) internal::WriteEvent(writer, event);
  internal::WriteInt(writer, rank);
  return std::move(writer).Take();
}

}  // namespace conductor::replay_test
