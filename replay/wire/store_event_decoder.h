// Decodes the events of one store batch, one at a time; the inside of store_decoder.h, which alone
// includes it. One decoder per batch, one thread. As EventDecoder: on success the reader stands
// behind the event, after a fault anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/wire/event_reading.h"
#include "replay/wire/store_event.h"

namespace conductor {

class StoreEventDecoder {
 public:
  // `items_max` is what the whole batch may spend on hashes.
  StoreEventDecoder(HashStrategy strategy, MsgpackReader* reader, std::uint64_t items_max)
      : strategy_(strategy), reader_(*reader), items_left_(items_max) {}

  // Before the first event.
  void set_batch_timestamp(std::uint64_t milliseconds) { batch_timestamp_ = milliseconds; }

  // `event` is freshly constructed.
  DecodeFault Decode(StoreEvent* event);
  // The last fault was the batch's limit, not the event's.
  bool LimitExceeded() const { return limit_exceeded_; }

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

  static Field FieldOfKey(std::string_view key);
  bool Saw(Field field) const { return fields_seen_ >> static_cast<unsigned>(field) & 1u; }

  DecodeFault ReadField(Field field);
  DecodeFault ReadEventType();
  DecodeFault ReadLegacyType();
  DecodeFault ReadTimestamp();
  DecodeFault ReadNatural(std::string_view field, std::uint64_t* value);
  // Of at most kNameBytesMax bytes.
  DecodeFault ReadName(std::string_view field, std::string* text);
  DecodeFault ReadOptionalName(std::string_view field, std::optional<std::string>* text);
  DecodeFault ReadMedium();
  DecodeFault ReadOptionalBlockSize();
  DecodeFault ReadObjectKey();
  DecodeFault ReadConnectorHash();
  DecodeFault ReadHashes(std::string_view field, bool negative_too,
                         std::vector<std::uint64_t>* hashes);
  DecodeFault CheckComplete() const;
  DecodeFault CheckLegacyType() const;
  DecodeFault FillNames();

  const HashStrategy strategy_;
  MsgpackReader& reader_;
  std::uint64_t items_left_;
  std::uint64_t batch_timestamp_ = 0;
  bool limit_exceeded_ = false;

  // Of the event being decoded.
  StoreEvent* event_ = nullptr;
  std::uint32_t fields_seen_ = 0;  // bit per Field
  std::optional<StoreEvent::Kind> legacy_kind_;
  bool legacy_type_known_ = true;
  std::optional<BlockName> connector_hash_;
  std::vector<std::uint64_t> seq_hashes_, legacy_hashes_;
};

}  // namespace conductor
