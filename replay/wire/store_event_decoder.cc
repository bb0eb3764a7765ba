#include "replay/wire/store_event_decoder.h"

#include <iterator>
#include <utility>

#include "src/limits.h"

namespace conductor {
namespace {

using Kind = StoreEvent::Kind;

std::optional<Kind> KindOf(std::string_view tag, bool legacy) {
  if (tag == (legacy ? "BlockStored" : "stored")) return Kind::kStored;
  if (tag == (legacy ? "BlockRemoved" : "removed")) return Kind::kRemoved;
  if (tag == (legacy ? "AllBlocksCleared" : "cleared")) return Kind::kCleared;
  return std::nullopt;
}

DecodeFault Conflict(std::string_view field, std::string_view expected) {
  return {EventFault::kConflict, field, expected, "another"};
}

}  // namespace

void AppendPart(const StoreEvent& event, std::string* part) {
  if (event.key.HasName() || event.object_key.empty()) return AppendPart(event.key, part);
  part->append("|object");
  if (event.object_key.size() <= kObjectKeyBytesMax) part->append("=").append(event.object_key);
}

std::string PartOf(const StoreEvent& event) {
  std::string part;
  AppendPart(event, &part);
  return part;
}

DecodeFault StoreEventDecoder::Decode(StoreEvent* event) {
  event_ = event;
  fields_seen_ = 0;
  legacy_kind_.reset();
  legacy_type_known_ = true;
  connector_hash_.reset();
  seq_hash_.reset();
  legacy_hash_.reset();
  std::uint32_t pairs = 0;
  if (auto fault = ReadMapPairs(reader_, "", &pairs)) return fault;
  MapKeys seen;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    std::string_view key;
    if (auto fault = ReadMapKey(reader_, &seen, &key)) return fault;
    if (auto fault = ReadField(FieldOfKey(key))) return fault;
  }
  if (auto fault = CheckComplete()) return fault;
  if (auto fault = CheckLegacyType()) return fault;
  if (event_->kind != Kind::kCleared) return FillName();
  event_->medium = Medium::kUnknown;
  event_->object_key = {};
  return {};
}

StoreEventDecoder::Field StoreEventDecoder::FieldOfKey(std::string_view key) {
  struct KnownKey {
    std::string_view name;
    Field field;
  };
  static constexpr KnownKey kKeys[] = {
      {"event_id", Field::kEventId},
      {"timestamp", Field::kTimestamp},
      {"event_type", Field::kEventType},
      {"type", Field::kLegacyType},
      {"model_name", Field::kModelName},
      {"block_size", Field::kBlockSize},
      {"additional_salt", Field::kAdditionalSalt},
      {"lora_name", Field::kLoraName},
      {"tenant_id", Field::kTenantId},
      {"backend_id", Field::kBackendId},
      {"medium", Field::kMedium},
      {"dp_rank", Field::kIgnoredNatural},
      {"group_id", Field::kGroupId},
      {"object_key", Field::kObjectKey},
      {"connector_block_hash", Field::kConnectorHash},
      {"cache_prefix", Field::kIgnoredText},
      {"tp_rank", Field::kIgnoredNatural},
      {"head_or_tp_rank", Field::kIgnoredNatural},
      {"pcp_rank", Field::kIgnoredNatural},
      {"dcp_rank", Field::kIgnoredNatural},
      {"pp_rank", Field::kIgnoredNatural},
      {"layer_id", Field::kIgnoredNatural},
      {"seq_hashes", Field::kSeqHashes},
      {"block_hashes", Field::kLegacyHashes},
      {"base_block_idx", Field::kIgnoredNatural},
      {"parent_hash", Field::kIgnored},
      {"token_ids", Field::kIgnored},
      {"parent_block_hash", Field::kIgnored},
  };
  // Events have their keys in this order, with gaps: the next is looked for behind the last.
  for (std::size_t looked = 0; looked < std::size(kKeys); ++looked) {
    if (next_key_ >= std::size(kKeys)) next_key_ = 0;
    const KnownKey& known = kKeys[next_key_++];
    if (known.name == key) return known.field;
  }
  return Field::kIgnored;
}

DecodeFault StoreEventDecoder::ReadField(Field field) {
  fields_seen_ |= 1u << static_cast<unsigned>(field);
  switch (field) {
    case Field::kEventType:
      return ReadEventType();
    case Field::kLegacyType:
      return ReadLegacyType();
    case Field::kEventId:
      return ReadNatural("event_id", &event_->event_id);
    case Field::kTimestamp:
      return ReadTimestamp();
    case Field::kTenantId:
      return ReadName("tenant_id", &event_->tenant_id);
    case Field::kBackendId:
      return ReadName("backend_id", &event_->backend_id);
    case Field::kMedium:
      return ReadMedium();
    case Field::kModelName:
      return ReadOptionalText(reader_, "model_name", kNameBytesMax, &event_->model_name);
    case Field::kLoraName:
      return ReadOptionalText(reader_, "lora_name", kNameBytesMax, &event_->lora_name);
    case Field::kAdditionalSalt:
      return ReadOptionalText(reader_, "additional_salt", kNameBytesMax, &event_->additional_salt);
    case Field::kGroupId:
      return ReadOptionalText(reader_, "group_id", kNameBytesMax, &event_->group_id);
    case Field::kBlockSize:
      return ReadOptionalBlockSize();
    case Field::kObjectKey:
      return ReadObjectKey();
    case Field::kConnectorHash:
      return ReadConnectorHash();
    case Field::kSeqHashes:
      return ReadHash("seq_hashes", false, &seq_hash_);
    case Field::kLegacyHashes:
      return ReadHash("block_hashes", true, &legacy_hash_);
    case Field::kIgnoredNatural: {
      std::optional<std::int64_t> unused;
      return ReadOptionalNatural(reader_, "a rank or index", &unused);
    }
    case Field::kIgnoredText: {
      std::string_view unused;
      return ReadTextOrNil(reader_, "cache_prefix", &unused);
    }
    case Field::kIgnored:
      break;
  }
  return SkipValue(reader_);
}

DecodeFault StoreEventDecoder::ReadEventType() {
  std::string_view tag;
  if (auto fault = ReadName("event_type", &tag)) return fault;
  const auto kind = KindOf(tag, false);
  if (!kind)
    return {EventFault::kUnknownTag, "event_type", "that of a known event", "another text"};
  event_->kind = *kind;
  return {};
}

DecodeFault StoreEventDecoder::ReadLegacyType() {
  std::string_view tag;
  if (auto fault = ReadTextOrNil(reader_, "type", &tag)) return fault;
  if (tag.data() == nullptr) return {};
  legacy_kind_ = KindOf(tag, true);
  legacy_type_known_ = legacy_kind_.has_value();
  return {};
}

DecodeFault StoreEventDecoder::ReadTimestamp() {
  std::uint64_t milliseconds = 0;
  if (auto fault = ReadNatural("timestamp", &milliseconds)) return fault;
  if (milliseconds == batch_timestamp_) return {};
  return Conflict("timestamp", "that of the batch");
}

DecodeFault StoreEventDecoder::ReadNatural(std::string_view field, std::uint64_t* value) {
  MsgpackInteger integer;
  if (reader_.TryInteger(&integer) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kFieldType, field, "an integer");
  }
  if (integer.negative) {
    return {EventFault::kFieldRange, field, "an integer from 0", "a negative one"};
  }
  *value = integer.bits;
  return {};
}

DecodeFault StoreEventDecoder::ReadName(std::string_view field, std::string_view* text) {
  std::string_view read;
  if (reader_.PeekType() == MsgpackType::kNil) {
    return Mistyped(reader_, EventFault::kFieldType, field, "text");
  }
  if (auto fault = ReadTextOrNil(reader_, field, &read)) return fault;
  if (read.size() > kNameBytesMax) {
    return {EventFault::kFieldRange, field, "at most kNameBytesMax bytes", "more"};
  }
  *text = read;
  return {};
}

DecodeFault StoreEventDecoder::ReadMedium() {
  std::string_view medium;
  if (auto fault = ReadTextOrNil(reader_, "medium", &medium)) return fault;
  // Nil belongs to a clear alone.
  if (medium.data() == nullptr) fields_seen_ &= ~(1u << static_cast<unsigned>(Field::kMedium));
  if (medium == "cpu") event_->medium = Medium::kCpu;
  if (medium == "disk") event_->medium = Medium::kDisk;
  return {};
}

DecodeFault StoreEventDecoder::ReadOptionalBlockSize() {
  if (reader_.TryNil() == MsgpackFault::kNone) return {};
  return ReadBlockSize(reader_, &event_->block_size.emplace());
}

DecodeFault StoreEventDecoder::ReadObjectKey() {
  std::string_view key;
  if (reader_.PeekType() == MsgpackType::kNil) {
    return Mistyped(reader_, EventFault::kFieldType, "object_key", "text");
  }
  if (auto fault = ReadTextOrNil(reader_, "object_key", &key)) return fault;
  event_->object_key = key;
  event_->key = ParseObjectKey(key, strategy_);
  return {};
}

DecodeFault StoreEventDecoder::ReadConnectorHash() {
  std::string_view text;
  if (auto fault = ReadTextOrNil(reader_, "connector_block_hash", &text)) return fault;
  if (text.data() == nullptr) return {};
  connector_hash_ = ParseHashText(text);
  if (connector_hash_) return {};
  return {EventFault::kHashType, "connector_block_hash", "16 hex digits or more", "another text"};
}

DecodeFault StoreEventDecoder::ReadHash(std::string_view field, bool negative_too,
                                        std::optional<std::uint64_t>* hash) {
  std::uint32_t count = 0;
  if (reader_.TryArrayHeader(&count) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kFieldType, field, "an array");
  }
  if (count == 0) return {};
  if (count > 1) return {EventFault::kFieldRange, field, "at most one hash", "more"};
  MsgpackInteger integer;
  if (reader_.TryInteger(&integer) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kHashType, field, "an integer", 0);
  }
  if (integer.negative && !negative_too) {
    return {EventFault::kHashType, field, "an unsigned integer", "a negative one", 0};
  }
  *hash = integer.bits;
  return {};
}

DecodeFault StoreEventDecoder::CheckComplete() const {
  struct Required {
    Field field;
    std::string_view name;
    bool of_clear;
  };
  constexpr Required kRequired[] = {
      {Field::kEventType, "event_type", true}, {Field::kEventId, "event_id", true},
      {Field::kTimestamp, "timestamp", true},  {Field::kTenantId, "tenant_id", true},
      {Field::kBackendId, "backend_id", true}, {Field::kMedium, "medium", false},
  };
  for (const Required& required : kRequired) {
    if (Saw(required.field) || (event_->kind == Kind::kCleared && !required.of_clear)) continue;
    return {EventFault::kMissingField, required.name, "the field", "nothing"};
  }
  const bool about_an_object = Saw(Field::kObjectKey) || Saw(Field::kSeqHashes) ||
                               Saw(Field::kLegacyHashes) || connector_hash_.has_value();
  if (event_->kind != Kind::kCleared && !about_an_object) {
    return {EventFault::kMissingField, "object_key", "the field, or hashes", "nothing"};
  }
  return {};
}

DecodeFault StoreEventDecoder::CheckLegacyType() const {
  if (legacy_type_known_ && legacy_kind_.value_or(event_->kind) == event_->kind) return {};
  return Conflict("type", "the one of event_type");
}

// The key is the truth; hashes beside it must agree, and stand in where it says nothing.
DecodeFault StoreEventDecoder::FillName() {
  const ObjectKey& key = event_->key;
  if (Saw(Field::kSeqHashes) && Saw(Field::kLegacyHashes) && seq_hash_ != legacy_hash_) {
    return Conflict("block_hashes", "that of seq_hashes");
  }
  const auto hash = Saw(Field::kSeqHashes) ? seq_hash_ : legacy_hash_;
  if (key.HasName()) {
    event_->name = key.name;
    if (connector_hash_ && connector_hash_->projected != key.low64) {
      return Conflict("connector_block_hash", "the one of object_key");
    }
    if (hash && *hash != key.low64 && *hash != key.name.projected) {
      return Conflict("seq_hashes", "the hash of object_key");
    }
  } else if (connector_hash_) {
    if (hash && *hash != connector_hash_->projected) {
      return Conflict("seq_hashes", "the connector_block_hash");
    }
    // It is a hash of vLLM: to an SGLang pool such an object is a stranger.
    if (strategy_ == HashStrategy::kVllmV1) event_->name = connector_hash_;
  } else if (hash) {
    event_->name = BlockName{*hash, {}};
  }
  return {};
}

}  // namespace conductor
