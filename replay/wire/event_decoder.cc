#include "replay/wire/event_decoder.h"

#include <iterator>

#include "src/limits.h"

namespace conductor {

// A key of a map event. A key that belongs to another publisher or another event is ignored.
struct EventDecoder::KnownKey {
  std::string_view name;
  Field field;
  bool stored_only;
  bool vllm;
  bool sglang;
};

DecodeFault EventDecoder::Decode(WireEvent* event) {
  event_ = event;
  fields_seen_ = 0;
  extra_keys_count_ = -1;
  DecodeFault fault;
  switch (reader_.PeekType()) {
    case MsgpackType::kArray:
      fault = DecodeArray();
      break;
    case MsgpackType::kMap:
      fault = DecodeMap();
      break;
    default:
      return Mistyped(reader_, EventFault::kEventType, "", "an array or a map");
  }
  if (fault) return fault;
  return CheckComplete();
}

DecodeFault EventDecoder::DecodeArray() {
  std::uint32_t slots = 0;
  if (reader_.TryArrayHeader(&slots) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kEventType, "", "an array");
  }
  if (slots == 0) return {EventFault::kMissingField, "type", "the event's tag", "nothing"};
  if (auto fault = ReadTag("type")) return fault;
  constexpr std::uint32_t kExtraKeysSlot = 8;
  if (event_->kind == WireEvent::Kind::kStored) {
    event_->extra_keys_on_wire = sglang_ || slots > kExtraKeysSlot;
  }
  for (std::uint32_t slot = 1; slot < slots; ++slot) {
    if (auto fault = ReadField(FieldOfSlot(slot))) return fault;
  }
  return {};
}

DecodeFault EventDecoder::DecodeMap() {
  std::uint32_t pairs = 0;
  if (auto fault = ReadMapPairs(reader_, "", &pairs)) return fault;
  // Keys come in any order, but what they mean depends on the tag. It is almost always first.
  const std::size_t first_key = reader_.Offset();
  if (auto fault = FindTag(pairs)) return fault;
  reader_.Seek(first_key);
  event_->extra_keys_on_wire = event_->kind == WireEvent::Kind::kStored;
  MapKeys seen;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    std::string_view key;
    if (auto fault = ReadMapKey(reader_, &seen, &key)) return fault;
    if (auto fault = ReadField(FieldOfKey(key))) return fault;
  }
  return {};
}

// Finds `type`, or else the `event_type` of the RFC's map form.
DecodeFault EventDecoder::FindTag(std::uint32_t pairs) {
  MapKeys seen;
  std::optional<std::size_t> rfc_tag;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    std::string_view key;
    if (auto fault = ReadMapKey(reader_, &seen, &key)) return fault;
    if (key == "type") return ReadTag("type");
    if (key == "event_type") rfc_tag = reader_.Offset();
    if (auto fault = SkipValue(reader_)) return fault;
  }
  if (!rfc_tag) return {EventFault::kMissingField, "type", "the event's tag", "nothing"};
  reader_.Seek(*rfc_tag);
  return ReadTag("event_type");
}

DecodeFault EventDecoder::ReadTag(std::string_view field) {
  std::string_view tag;
  const MsgpackFault fault = reader_.TryText(&tag);
  if (fault == MsgpackFault::kUtf8)
    return Mistyped(reader_, EventFault::kInvalidUtf8, field, "UTF-8");
  if (fault != MsgpackFault::kNone) return Mistyped(reader_, EventFault::kFieldType, field, "text");
  const bool rfc = field == "event_type";
  if (tag == (rfc ? "stored" : "BlockStored")) {
    event_->kind = WireEvent::Kind::kStored;
  } else if (tag == (rfc ? "removed" : "BlockRemoved")) {
    event_->kind = WireEvent::Kind::kRemoved;
  } else if (tag == (rfc ? "cleared" : "AllBlocksCleared")) {
    event_->kind = WireEvent::Kind::kCleared;
  } else {
    return {EventFault::kUnknownTag, field, "the tag of a known event", "another text"};
  }
  return {};
}

DecodeFault EventDecoder::ReadMetadata() {
  if (reader_.TryNil() == MsgpackFault::kNone) return {};
  std::uint32_t pairs = 0;
  if (auto fault = ReadMapPairs(reader_, "metadata", &pairs)) return fault;
  MapKeys seen;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    std::string_view key;
    if (auto fault = ReadMapKey(reader_, &seen, &key)) return fault;
    const Field field = key == "cache_salt" ? Field::kCacheSalt : Field::kIgnored;
    if (auto fault = ReadField(field)) return fault;
  }
  return {};
}

EventDecoder::Field EventDecoder::FieldOfSlot(std::uint32_t slot) const {
  constexpr Field kVllmStored[] = {Field::kHashes,    Field::kParent,    Field::kTokens,
                                   Field::kBlockSize, Field::kLoraId,    Field::kMedium,
                                   Field::kLoraName,  Field::kExtraKeys, Field::kGroup,
                                   Field::kSpecKind,  Field::kWindow};
  constexpr Field kSglangStored[] = {Field::kHashes,    Field::kParent, Field::kTokens,
                                     Field::kBlockSize, Field::kLoraId, Field::kMedium,
                                     Field::kMetadata};
  constexpr Field kVllmRemoved[] = {Field::kHashes, Field::kMedium, Field::kGroup};
  constexpr Field kSglangRemoved[] = {Field::kHashes, Field::kMedium};
  const auto at = [slot](const auto& fields) {
    return slot <= std::size(fields) ? fields[slot - 1] : Field::kIgnored;
  };
  switch (event_->kind) {
    case WireEvent::Kind::kStored:
      return sglang_ ? at(kSglangStored) : at(kVllmStored);
    case WireEvent::Kind::kRemoved:
      return sglang_ ? at(kSglangRemoved) : at(kVllmRemoved);
    case WireEvent::Kind::kCleared:
      break;
  }
  return Field::kIgnored;
}

EventDecoder::Field EventDecoder::FieldOfKey(std::string_view key) const {
  constexpr KnownKey kKeys[] = {
      {"block_hashes", Field::kHashes, false, true, true},
      {"parent_block_hash", Field::kParent, true, true, true},
      {"token_ids", Field::kTokens, true, true, true},
      {"block_size", Field::kBlockSize, true, true, true},
      {"lora_id", Field::kLoraId, true, true, true},
      {"medium", Field::kMedium, false, true, true},
      {"lora_name", Field::kLoraName, true, true, false},
      {"extra_keys", Field::kExtraKeys, true, true, false},
      {"group_idx", Field::kGroup, false, true, false},
      {"kv_cache_spec_kind", Field::kSpecKind, true, true, false},
      {"kv_cache_spec_sliding_window", Field::kWindow, true, true, false},
      {"locality", Field::kLocality, false, true, false},
      {"ownership", Field::kIgnoredText, false, true, false},
      {"session_id", Field::kIgnoredText, true, true, true},
      {"cache_salt", Field::kCacheSalt, true, false, true},
  };
  if (event_->kind == WireEvent::Kind::kCleared) return Field::kIgnored;
  for (const KnownKey& known : kKeys) {
    if (known.name != key) continue;
    if (known.stored_only && event_->kind != WireEvent::Kind::kStored) break;
    return (sglang_ ? known.sglang : known.vllm) ? known.field : Field::kIgnored;
  }
  return Field::kIgnored;
}

DecodeFault EventDecoder::ReadField(Field field) {
  fields_seen_ |= 1u << static_cast<unsigned>(field);
  switch (field) {
    case Field::kHashes:
      return ReadHashes();
    case Field::kParent:
      return ReadParent();
    case Field::kTokens:
      return ReadTokens();
    case Field::kBlockSize:
      return ReadBlockSize(reader_, &event_->block_size);
    case Field::kLoraId:
      return ReadOptionalInteger(reader_, "lora_id", &event_->lora_id);
    case Field::kLoraName:
      return ReadOptionalText(reader_, "lora_name", kNameBytesMax, &event_->lora_name);
    case Field::kExtraKeys:
      return ReadExtraKeys();
    case Field::kGroup:
      return ReadOptionalNatural(reader_, "group_idx", &event_->group_idx);
    case Field::kWindow:
      return ReadOptionalNatural(reader_, "kv_cache_spec_sliding_window", &event_->sliding_window);
    case Field::kCacheSalt:
      return ReadOptionalText(reader_, "cache_salt", kSaltBytesMax, &event_->cache_salt);
    case Field::kMetadata:
      return ReadMetadata();
    case Field::kIgnored:
      return SkipValue(reader_);
    case Field::kMedium:
    case Field::kSpecKind:
    case Field::kLocality:
    case Field::kIgnoredText:
      break;
  }
  std::string_view name = "an ignored text";
  if (field == Field::kMedium) name = "medium";
  if (field == Field::kSpecKind) name = "kv_cache_spec_kind";
  if (field == Field::kLocality) name = "locality";
  std::string_view text;
  if (auto fault = ReadTextOrNil(reader_, name, &text)) return fault;
  if (text.data() == nullptr) return {};
  if (field == Field::kMedium) event_->medium = ParseMedium(text);
  if (field == Field::kSpecKind) event_->spec_kind = ParseSpecKind(text);
  if (field == Field::kLocality) event_->locality = ParseLocality(text);
  return {};
}

DecodeFault EventDecoder::CheckComplete() const {
  constexpr std::string_view kRequired[] = {"block_hashes", "parent_block_hash", "token_ids",
                                            "block_size"};
  std::size_t required = 0;
  if (event_->kind == WireEvent::Kind::kStored) required = std::size(kRequired);
  if (event_->kind == WireEvent::Kind::kRemoved) required = 1;
  for (std::size_t i = 0; i < required; ++i) {
    if ((fields_seen_ >> i & 1u) == 0) {
      return {EventFault::kMissingField, kRequired[i], "the field", "nothing"};
    }
  }
  if (extra_keys_count_ >= 0 &&
      static_cast<std::uint64_t>(extra_keys_count_) != event_->names.size()) {
    return {EventFault::kExtraKeys, "extra_keys", "one entry per hash", "another number of them"};
  }
  return {};
}

}  // namespace conductor
