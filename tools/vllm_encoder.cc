#include "tools/vllm_encoder.h"

#include <array>
#include <cstddef>
#include <utility>

#include "replay/wire/msgpack_writer.h"

namespace conductor::enginesim {
namespace {

struct EraWord {
  Era era;
  std::string_view word;
  std::uint32_t stored_slots;   // array fields after the tag; 0: maps
  std::uint32_t removed_slots;  // likewise
};

constexpr std::array<EraWord, 7> kEras{{
    {Era::kA, "a", 5, 1},
    {Era::kB011, "b0.11", 6, 2},
    {Era::kB015, "b0.15", 7, 2},
    {Era::kB, "b", 9, 3},
    {Era::kBAll, "b-all", 11, 3},
    {Era::kC, "c", 0, 0},
    {Era::kMap, "map", 0, 0},
}};

const EraWord& Describe(Era era) {
  return kEras[static_cast<std::size_t>(era)];
}
bool HasMaps(Era era) {
  return Describe(era).stored_slots == 0;
}

std::span<const std::uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// One function per wire type; nil for what is absent.
void Write(MsgpackWriter& out, const WireHash& hash) {
  if (const auto* number = std::get_if<std::uint64_t>(&hash)) {
    out.WriteUint64(*number);
  } else if (const auto* integer = std::get_if<std::int64_t>(&hash)) {
    out.WriteInt64(*integer);
  } else {
    out.WriteBytes(Bytes(std::get<std::string>(hash)));
  }
}

void Write(MsgpackWriter& out, const std::vector<WireHash>& hashes) {
  out.WriteArrayHeader(static_cast<std::uint32_t>(hashes.size()));
  for (const WireHash& hash : hashes) Write(out, hash);
}

void Write(MsgpackWriter& out, std::int64_t value) {
  out.WriteInt64(value);
}
void Write(MsgpackWriter& out, const std::string& text) {
  out.WriteText(text);
}

void Write(MsgpackWriter& out, const std::vector<std::int32_t>& tokens) {
  out.WriteArrayHeader(static_cast<std::uint32_t>(tokens.size()));
  for (const std::int32_t token : tokens) out.WriteInt64(token);
}

void Write(MsgpackWriter& out, const ExtraKey& key) {
  switch (key.kind) {
    case ExtraKey::Kind::kText:
      out.WriteText(key.text);
      return;
    case ExtraKey::Kind::kInteger:
      out.WriteInt64(key.integer);
      return;
    case ExtraKey::Kind::kItem:
      out.WriteArrayHeader(2);
      out.WriteText(key.text);
      out.WriteInt64(key.integer);
      return;
    case ExtraKey::Kind::kBytes:
      out.WriteBytes(Bytes(key.text));
      return;
  }
}

void Write(MsgpackWriter& out, const std::vector<ExtraKeys>& blocks) {
  out.WriteArrayHeader(static_cast<std::uint32_t>(blocks.size()));
  for (const ExtraKeys& keys : blocks) {
    if (keys.empty()) {
      out.WriteNil();
      continue;
    }
    out.WriteArrayHeader(static_cast<std::uint32_t>(keys.size()));
    for (const ExtraKey& key : keys) Write(out, key);
  }
}

template <typename T>
void Write(MsgpackWriter& out, const std::optional<T>& value) {
  if (value) {
    Write(out, *value);
  } else {
    out.WriteNil();
  }
}

// Writes the fields of an event in declaration order, as array slots or as map entries. Two passes
// over the same list of fields: the first counts, because the header comes before the fields.
class FieldSink {
 public:
  FieldSink(MsgpackWriter& out, Era era, std::uint32_t slots)
      : out_(out), era_(era), slots_(slots) {}

  template <typename Fields>
  void WriteEvent(std::string_view tag, const Fields& fields) {
    count_ = 0;
    counting_ = true;
    fields(*this);
    if (HasMaps(era_)) {
      out_.WriteMapHeader(count_ + 1);
      out_.WriteText("type");
    } else {
      out_.WriteArrayHeader(count_ + 1);
    }
    out_.WriteText(tag);
    count_ = 0;
    counting_ = false;
    fields(*this);
  }

  // A field that maps always carry, nil included.
  template <typename T>
  void Required(std::string_view name, const T& value) {
    Field(name, value, true);
  }
  // A field that maps leave out when it is nil.
  template <typename T>
  void Omittable(std::string_view name, const std::optional<T>& value) {
    Field(name, value, value.has_value());
  }
  // A field that no array release has.
  template <typename T>
  void MapOnly(std::string_view name, const std::optional<T>& value) {
    if (HasMaps(era_)) Omittable(name, value);
  }

 private:
  template <typename T>
  void Field(std::string_view name, const T& value, bool in_map) {
    const bool maps = HasMaps(era_);
    if (maps ? !in_map : count_ >= slots_) return;
    ++count_;
    if (counting_) return;
    if (maps) out_.WriteText(name);
    Write(out_, value);
  }

  MsgpackWriter& out_;
  Era era_;
  std::uint32_t slots_;
  std::uint32_t count_ = 0;
  bool counting_ = false;
};

void WriteEvent(MsgpackWriter& out, Era era, const BlockStoredEvent& event) {
  FieldSink(out, era, Describe(era).stored_slots).WriteEvent("BlockStored", [&](FieldSink& sink) {
    sink.Required("block_hashes", event.block_hashes);
    sink.Required("parent_block_hash", event.parent_block_hash);
    sink.Required("token_ids", event.token_ids);
    sink.Required("block_size", event.block_size);
    sink.Required("lora_id", event.lora_id);
    sink.Required("medium", event.medium);
    sink.Required("lora_name", event.lora_name);
    sink.Omittable("extra_keys", event.extra_keys);
    sink.Omittable("group_idx", event.group_idx);
    sink.Omittable("kv_cache_spec_kind", event.spec_kind);
    sink.Omittable("kv_cache_spec_sliding_window", event.sliding_window);
    sink.MapOnly("locality", event.locality);
    sink.MapOnly("ownership", event.ownership);
    sink.MapOnly("session_id", event.session_id);
  });
}

void WriteEvent(MsgpackWriter& out, Era era, const BlockRemovedEvent& event) {
  FieldSink(out, era, Describe(era).removed_slots).WriteEvent("BlockRemoved", [&](FieldSink& sink) {
    sink.Required("block_hashes", event.block_hashes);
    sink.Required("medium", event.medium);
    sink.Omittable("group_idx", event.group_idx);
    sink.MapOnly("locality", event.locality);
    sink.MapOnly("ownership", event.ownership);
  });
}

void WriteEvent(MsgpackWriter& out, Era era, const AllBlocksClearedEvent&) {
  FieldSink(out, era, 0).WriteEvent("AllBlocksCleared", [](FieldSink&) {});
}

}  // namespace

Result<Era> ParseEra(std::string_view text) {
  std::string known;
  for (const EraWord& entry : kEras) {
    if (entry.word == text) return entry.era;
    known += (known.empty() ? "" : ", ") + std::string(entry.word);
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   "era: expected one of " + known + ", got '" + std::string(text) + "'");
}

std::string_view ToString(Era era) {
  return Describe(era).word;
}

bool HasExtraKeys(Era era) {
  return HasMaps(era) || Describe(era).stored_slots >= 8;
}
bool HasLoraName(Era era) {
  return HasMaps(era) || Describe(era).stored_slots >= 7;
}

std::string EncodeBatch(Era era, const EventBatch& batch) {
  MsgpackWriter out;
  const bool map = era == Era::kMap;
  const auto name = [&](std::string_view key) {
    if (map) out.WriteText(key);
  };
  // msgspec's maps leave out a field that equals its default, and the rank's default is nil.
  const std::uint32_t map_fields = batch.dp_rank ? 3 : 2;
  if (map) {
    out.WriteMapHeader(map_fields);
  } else {
    out.WriteArrayHeader(era == Era::kA ? 2 : 3);
  }
  name("ts");
  out.WriteDouble(batch.ts);
  name("events");
  out.WriteArrayHeader(static_cast<std::uint32_t>(batch.events.size()));
  for (const EngineEvent& event : batch.events) {
    std::visit([&](const auto& value) { WriteEvent(out, era, value); }, event);
  }
  if (era != Era::kA && (!map || batch.dp_rank)) {
    name("data_parallel_rank");
    Write(out, batch.dp_rank);
  }
  return std::move(out).Take();
}

}  // namespace conductor::enginesim
