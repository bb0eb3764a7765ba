// What the decoders of engine events, store events and snapshot messages share: how one wrong
// value is described, the keys of a map, block names, texts and integers. The inside of the
// decoders, which alone include it.
//
// Every function reads one value at the reader. On success the reader stands behind it; after a
// fault it stands anywhere, and the caller seeks back and skips the event. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
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
// "token_ids[2]: expected an integer, got text".
std::string Describe(const DecodeFault& fault);

// The keys of one map, to find the duplicates among them: also among keys nobody knows.
class MapKeys {
 public:
  // False when the key was there before. At most kMapKeysMax keys.
  bool Add(std::string_view key) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (keys_[i] == key) return false;
    }
    keys_[count_++] = key;
    return true;
  }

 private:
  std::array<std::string_view, kMapKeysMax> keys_;
  std::size_t count_ = 0;
};

// The value at the reader is not the expected one.
DecodeFault Mistyped(const MsgpackReader& reader, EventFault fault, std::string_view field,
                     std::string_view expected, std::int64_t item = -1);

// At most kMapKeysMax pairs.
DecodeFault ReadMapPairs(MsgpackReader& reader, std::string_view field, std::uint32_t* pairs);
DecodeFault ReadMapKey(MsgpackReader& reader, MapKeys* seen, std::string_view* key);
DecodeFault SkipValue(MsgpackReader& reader);

// `sglang` decides which integers are hashes and which end of a digest is its projection.
DecodeFault ReadBlockName(MsgpackReader& reader, bool sglang, std::string_view field,
                          std::int64_t item, BlockName* name);

// Nil leaves `text` null.
DecodeFault ReadTextOrNil(MsgpackReader& reader, std::string_view field, std::string_view* text);
// Nil and "" leave it empty. `bytes_max`: more are out of range.
DecodeFault ReadOptionalText(MsgpackReader& reader, std::string_view field, std::size_t bytes_max,
                             std::optional<std::string_view>* text);
DecodeFault ReadOptionalInteger(MsgpackReader& reader, std::string_view field,
                                std::optional<std::int64_t>* value);
DecodeFault ReadOptionalNatural(MsgpackReader& reader, std::string_view field,
                                std::optional<std::int64_t>* value);
DecodeFault ReadBlockSize(MsgpackReader& reader, std::int64_t* block_size);

}  // namespace conductor
