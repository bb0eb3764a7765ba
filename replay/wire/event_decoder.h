// Decodes the events of one engine batch, one at a time; the inside of engine_decoder.h, which
// alone includes it. One decoder per batch, one thread.
//
// The reader stands at an event. On success it stands behind it. After a fault it stands
// anywhere: the caller seeks back, skips the event, and so learns whether the bytes themselves
// are malformed. Nothing is reserved beyond what the bytes that are there pay for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "replay/wire/event.h"
#include "replay/wire/msgpack_reader.h"
#include "src/types.h"

namespace conductor {

// Why an event is dropped, cheap to hand up; worded only once it is certain.
struct DecodeFault {
  EventFault fault = EventFault::kNone;
  // Static texts.
  std::string_view field = {};
  std::string_view expected = {};
  std::string_view got = {};
  std::int64_t item = -1;  // index inside the field, or -1

  explicit operator bool() const { return fault != EventFault::kNone; }
};

// "event 1: token_ids[2]: expected an integer, got text".
std::string Describe(const DecodeFault& fault, std::uint32_t event_index);

class EventDecoder {
 public:
  // `items_max` is what the whole batch may spend on names and extra keys.
  EventDecoder(PublisherType publisher, MsgpackReader* reader, std::uint64_t items_max)
      : sglang_(publisher == PublisherType::kSglang), reader_(*reader), items_left_(items_max) {}

  // `event` is freshly constructed.
  DecodeFault Decode(WireEvent* event);
  // The last fault was the batch's limit, not the event's.
  bool LimitExceeded() const { return limit_exceeded_; }

 private:
  // What a slot of an array event or a key of a map event means.
  enum class Field : std::uint8_t {
    kHashes,
    kParent,
    kTokens,
    kBlockSize,
    kLoraId,
    kMedium,
    kLoraName,
    kExtraKeys,
    kGroup,
    kSpecKind,
    kWindow,
    kLocality,
    kCacheSalt,
    kMetadata,     // SGLang's last slot: a map that holds the salt
    kIgnoredText,  // text or nil, of no use to us
    kIgnored,      // anything
  };
  struct KnownKey;
  class SeenKeys;

  // event_decoder.cc: shapes.
  DecodeFault DecodeArray();
  DecodeFault DecodeMap();
  DecodeFault ReadTag(std::string_view field);
  DecodeFault FindTag(std::uint32_t pairs);
  DecodeFault ReadKey(SeenKeys* seen, std::string_view* key);
  DecodeFault ReadMetadata();
  DecodeFault ReadField(Field field);
  DecodeFault CheckComplete() const;
  Field FieldOfSlot(std::uint32_t slot) const;
  Field FieldOfKey(std::string_view key) const;

  // event_fields.cc: values.
  DecodeFault ReadHashes();
  DecodeFault ReadHash(std::string_view field, std::int64_t item, BlockName* name);
  DecodeFault ReadParent();
  DecodeFault ReadTokens();
  DecodeFault ReadToken(std::int64_t item, std::int32_t* token);
  DecodeFault ReadBlockSize();
  DecodeFault ReadExtraKeys();
  DecodeFault ReadExtraKey(std::int64_t item, ExtraKey* key);
  MsgpackFault ReadItemKey(ExtraKey* key);
  // Nil leaves `text` null.
  DecodeFault ReadTextOrNil(std::string_view field, std::string_view* text);
  DecodeFault ReadOptionalText(std::string_view field, std::optional<std::string>* text);
  DecodeFault ReadOptionalInteger(std::string_view field, std::optional<std::int64_t>* value);
  DecodeFault ReadOptionalNatural(std::string_view field, std::optional<std::int64_t>* value);
  DecodeFault Skip();
  // The value at the reader is not the expected one.
  DecodeFault Mistyped(EventFault fault, std::string_view field, std::string_view expected,
                       std::int64_t item = -1) const;
  bool Spend(std::uint64_t items);

  const bool sglang_;
  MsgpackReader& reader_;
  std::uint64_t items_left_;
  bool limit_exceeded_ = false;

  // Of the event being decoded.
  WireEvent* event_ = nullptr;
  std::uint32_t fields_seen_ = 0;       // bit per Field
  std::int64_t extra_keys_count_ = -1;  // entries on the wire; -1 for nil or absent
};

}  // namespace conductor
