#include "tools/store_encoder.h"

#include <array>
#include <charconv>
#include <utility>

#include "replay/wire/msgpack_writer.h"

namespace conductor::enginesim {
namespace {

using Kind = StoreEvent::Kind;

constexpr std::array<std::string_view, 3> kEras{"m1", "m2", "m3"};
constexpr std::size_t kHashDigits = 16;  // of the 64 bits that are published

std::string_view TypeOf(Kind kind) {
  return kind == Kind::kStored    ? "BlockStored"
         : kind == Kind::kRemoved ? "BlockRemoved"
                                  : "AllBlocksCleared";
}

std::string_view EventTypeOf(Kind kind) {
  return kind == Kind::kStored ? "stored" : kind == Kind::kRemoved ? "removed" : "cleared";
}

// The hash that a publisher of this era puts beside the key.
std::optional<std::uint64_t> HashOf(StoreEra era, const StoreEvent& event) {
  if (era == StoreEra::kM3) return std::nullopt;
  if (event.number || era == StoreEra::kM1) return event.number;
  const std::optional<std::string>& hex = event.fields.connector_block_hash;
  if (!hex || hex->size() < kHashDigits) return std::nullopt;
  std::uint64_t low64 = 0;
  std::from_chars(hex->data() + hex->size() - kHashDigits, hex->data() + hex->size(), low64, 16);
  return low64;
}

// The entries of one event's map, in wire order. Collected before they are written, because the
// map's header comes first.
class EventMap {
 public:
  explicit EventMap(MsgpackWriter& out) : out_(out) {}

  void Text(std::string_view name, std::string_view text) {
    Name(name);
    body_.WriteText(text);
  }
  void Number(std::string_view name, std::uint64_t number) {
    Name(name);
    body_.WriteUint64(number);
  }
  void Nil(std::string_view name) {
    Name(name);
    body_.WriteNil();
  }
  void TextOrNil(std::string_view name, const std::string& text) {
    text.empty() ? Nil(name) : Text(name, text);
  }
  void TextOrNil(std::string_view name, const std::optional<std::string>& text) {
    text ? Text(name, *text) : Nil(name);
  }
  template <typename T>
  void NumberIfThere(std::string_view name, const std::optional<T>& number) {
    if (number) Number(name, *number);
  }
  void TextIfThere(std::string_view name, const std::optional<std::string>& text) {
    if (text) Text(name, *text);
  }
  void Hashes(std::string_view name, const std::optional<std::uint64_t>& hash, bool as_signed) {
    Name(name);
    body_.WriteArrayHeader(hash ? 1 : 0);
    if (hash && as_signed) body_.WriteInt64(static_cast<std::int64_t>(*hash));
    if (hash && !as_signed) body_.WriteUint64(*hash);
  }
  void Finish() {
    out_.WriteMapHeader(pairs_);
    out_.WriteRaw(body_.bytes());
  }

 private:
  void Name(std::string_view name) {
    ++pairs_;
    body_.WriteText(name);
  }

  MsgpackWriter& out_;
  MsgpackWriter body_;
  std::uint32_t pairs_ = 0;
};

// Everything up to the rank, which is all that a clear has.
void WriteCommon(EventMap& map, StoreEra era, const StoreConfig& config, const StoreEvent& event) {
  const bool m1 = era == StoreEra::kM1;
  const bool of_key = era == StoreEra::kM2 && !event.fields.model_name.empty();
  m1 ? map.Nil("model_name")
     : map.TextOrNil("model_name", of_key ? event.fields.model_name : config.model_name);
  m1 || config.block_size == 0 ? map.Nil("block_size")
                               : map.Number("block_size", config.block_size);
  map.TextOrNil("additional_salt", m1 ? std::string() : config.additional_salt);
  map.TextOrNil("lora_name", m1 ? std::string() : config.lora_name);
  map.Text("tenant_id", config.tenant_id);
  map.Text("backend_id", config.backend_id);
  if (m1) map.TextOrNil("group_id", event.group_id);
  map.TextOrNil("medium", event.kind == Kind::kCleared ? std::string() : event.medium);
  m1 ? map.Nil("dp_rank") : map.Number("dp_rank", config.dp_rank);
}

void WriteKeyFields(EventMap& map, const KeyFields& fields) {
  map.TextIfThere("connector_block_hash", fields.connector_block_hash);
  map.TextIfThere("cache_prefix", fields.cache_prefix);
  map.NumberIfThere("tp_rank", fields.tp_rank);
  map.NumberIfThere("head_or_tp_rank", fields.head_or_tp_rank);
  map.NumberIfThere("pcp_rank", fields.pcp_rank);
  map.NumberIfThere("dcp_rank", fields.dcp_rank);
  map.NumberIfThere("pp_rank", fields.pp_rank);
  map.NumberIfThere("layer_id", fields.layer_id);
}

void WriteObject(EventMap& map, StoreEra era, const StoreConfig& config, const StoreEvent& event) {
  const bool stored = event.kind == Kind::kStored;
  if (era != StoreEra::kM1) {
    const bool of_key = era == StoreEra::kM2 && event.fields.group;
    map.TextOrNil("group_id", of_key ? event.fields.group : event.group_id);
  }
  if (config.object_keys) map.Text("object_key", event.object_key);
  if (era == StoreEra::kM2) WriteKeyFields(map, event.fields);
  const std::optional<std::uint64_t> hash = HashOf(era, event);
  map.Hashes("seq_hashes", hash, false);
  if (config.legacy) map.Hashes("block_hashes", hash, era == StoreEra::kM1);
  era == StoreEra::kM1&& stored ? map.Number("base_block_idx", 0) : map.Nil("base_block_idx");
  if (!stored) return;
  map.Nil("parent_hash");
  map.Nil("token_ids");
  if (config.legacy) map.Nil("parent_block_hash");
}

}  // namespace

Result<StoreEra> ParseStoreEra(std::string_view text) {
  for (std::size_t i = 0; i < kEras.size(); ++i) {
    if (kEras[i] == text) return static_cast<StoreEra>(i);
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   "era: expected one of m1, m2, m3, got '" + std::string(text) + "'");
}

std::string_view ToString(StoreEra era) {
  return kEras[static_cast<std::size_t>(era)];
}

std::string EncodeStoreBatch(StoreEra era, const StoreConfig& config, const StoreBatch& batch) {
  MsgpackWriter out;
  out.WriteArrayHeader(3);
  out.WriteUint64(batch.timestamp_ms);
  out.WriteArrayHeader(static_cast<std::uint32_t>(batch.events.size()));
  std::uint64_t event_id = batch.first_event_id;
  for (const StoreEvent& event : batch.events) {
    EventMap map(out);
    map.Number("event_id", event_id++);
    map.Number("timestamp", batch.timestamp_ms);
    map.Text("event_type", EventTypeOf(event.kind));
    if (config.legacy) map.Text("type", TypeOf(event.kind));
    WriteCommon(map, era, config, event);
    if (event.kind != Kind::kCleared) WriteObject(map, era, config, event);
    map.Finish();
  }
  out.WriteUint64(config.dp_rank);
  return std::move(out).Take();
}

}  // namespace conductor::enginesim
