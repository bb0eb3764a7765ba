// Decodes the events of one engine batch, one at a time; the inside of engine_decoder.h, which
// alone includes it. One decoder per batch, one thread.
//
// The reader stands at an event. On success it stands behind it. After a fault it stands
// anywhere: the caller seeks back, skips the event, and so learns whether the bytes themselves
// are malformed. Nothing is reserved beyond what the bytes that are there pay for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "replay/wire/event.h"
#include "replay/wire/event_reading.h"
#include "replay/wire/msgpack_reader.h"
#include "src/types.h"

namespace conductor {

class EventDecoder {
 public:
  // `items_max` is what the whole batch may spend on names and extra keys; `extra_keys` is the
  // batch's place for the keys.
  EventDecoder(PublisherType publisher, MsgpackReader* reader, std::uint64_t items_max,
               std::unique_ptr<ExtraKeyStore>* extra_keys)
      : sglang_(publisher == PublisherType::kSglang),
        reader_(*reader),
        items_left_(items_max),
        extra_keys_(*extra_keys) {}

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

  // event_decoder.cc: shapes.
  DecodeFault DecodeArray();
  DecodeFault DecodeMap();
  DecodeFault ReadTag(std::string_view field);
  DecodeFault FindTag(std::uint32_t pairs);
  DecodeFault ReadMetadata();
  DecodeFault ReadField(Field field);
  DecodeFault CheckComplete() const;
  Field FieldOfSlot(std::uint32_t slot) const;
  Field FieldOfKey(std::string_view key) const;

  // event_fields.cc: values.
  DecodeFault ReadHashes();
  DecodeFault ReadParent();
  DecodeFault ReadTokens();
  DecodeFault ReadPlainTokens(std::uint32_t count);
  DecodeFault ReadToken(std::int64_t item, std::int32_t* token);
  DecodeFault ReadExtraKeys();
  DecodeFault ReadKeysOfBlock(std::uint32_t block);
  DecodeFault ReadExtraKey(std::int64_t item, ExtraKeyView* key);
  MsgpackFault ReadItemKey(ExtraKeyView* key);
  bool Spend(std::uint64_t items);

  const bool sglang_;
  MsgpackReader& reader_;
  std::uint64_t items_left_;
  bool limit_exceeded_ = false;
  std::unique_ptr<ExtraKeyStore>& extra_keys_;

  // Of the event being decoded.
  WireEvent* event_ = nullptr;
  std::uint32_t fields_seen_ = 0;       // bit per Field
  std::int64_t extra_keys_count_ = -1;  // entries on the wire; -1 for nil or absent
};

}  // namespace conductor
