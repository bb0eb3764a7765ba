// Decodes the events of one store batch, one at a time; the inside of store_decoder.h, which alone
// includes it. One decoder per batch, one thread. As EventDecoder: on success the reader stands
// behind the event, after a fault anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "replay/wire/event_reading.h"
#include "replay/wire/store_event.h"

namespace conductor {

class StoreEventDecoder {
 public:
  StoreEventDecoder(HashStrategy strategy, MsgpackReader* reader)
      : strategy_(strategy), reader_(*reader) {}

  // Before the first event.
  void set_batch_timestamp(std::uint64_t milliseconds) { batch_timestamp_ = milliseconds; }

  // `event` is freshly constructed.
  DecodeFault Decode(StoreEvent* event);
  // Its events are small: only their number has a limit.
  bool LimitExceeded() const { return false; }

 private:
  // Keys we look at; the others are skipped.
  enum class Field : std::uint8_t {
    kEventType,
    kLegacyType,
    kEventId,
    kTimestamp,
    kTenantId,
    kBackendId,
    kMedium,
    kModelName,
    kLoraName,
    kAdditionalSalt,
    kGroupId,
    kBlockSize,
    kObjectKey,
    kConnectorHash,
    kSeqHashes,
    kLegacyHashes,
    kIgnoredNatural,  // nil or an integer from 0: repeats what the key says
    kIgnoredText,     // nil or text
    kIgnored,         // anything
  };

  Field FieldOfKey(std::string_view key);
  bool Saw(Field field) const { return fields_seen_ >> static_cast<unsigned>(field) & 1u; }

  DecodeFault ReadField(Field field);
  DecodeFault ReadEventType();
  DecodeFault ReadLegacyType();
  DecodeFault ReadTimestamp();
  DecodeFault ReadNatural(std::string_view field, std::uint64_t* value);
  // Of at most kNameBytesMax bytes.
  DecodeFault ReadName(std::string_view field, std::string_view* text);
  DecodeFault ReadMedium();
  DecodeFault ReadOptionalBlockSize();
  DecodeFault ReadObjectKey();
  DecodeFault ReadConnectorHash();
  // A list of at most one.
  DecodeFault ReadHash(std::string_view field, bool negative_too,
                       std::optional<std::uint64_t>* hash);
  DecodeFault CheckComplete() const;
  DecodeFault CheckLegacyType() const;
  DecodeFault FillName();

  const HashStrategy strategy_;
  MsgpackReader& reader_;
  std::uint64_t batch_timestamp_ = 0;
  std::size_t next_key_ = 0;  // of the known ones, where the search goes on

  // Of the event being decoded.
  StoreEvent* event_ = nullptr;
  std::uint32_t fields_seen_ = 0;  // bit per Field
  std::optional<StoreEvent::Kind> legacy_kind_;
  bool legacy_type_known_ = true;
  std::optional<BlockName> connector_hash_;
  std::optional<std::uint64_t> seq_hash_, legacy_hash_;
};

}  // namespace conductor
