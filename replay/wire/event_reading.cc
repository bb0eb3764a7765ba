#include "replay/wire/event_reading.h"

#include <span>

namespace conductor {
namespace {

constexpr std::size_t kProjectionBytes = 8;

std::uint64_t BigEndian64(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::uint8_t byte : bytes.first(kProjectionBytes)) value = value << 8 | byte;
  return value;
}

}  // namespace

std::string Describe(const DecodeFault& fault) {
  std::string text;
  if (!fault.field.empty()) text += fault.field;
  if (fault.item >= 0) text += "[" + std::to_string(fault.item) + "]";
  if (!fault.field.empty()) text += ": ";
  text += "expected ";
  text += fault.expected;
  text += ", got ";
  text += fault.got;
  return text;
}

std::string Describe(const DecodeFault& fault, std::uint32_t event_index) {
  return "event " + std::to_string(event_index) + ": " + Describe(fault);
}

DecodeFault Mistyped(const MsgpackReader& reader, EventFault fault, std::string_view field,
                     std::string_view expected, std::int64_t item) {
  return {fault, field, expected, ToString(reader.PeekType()), item};
}

DecodeFault ReadMapPairs(MsgpackReader& reader, std::string_view field, std::uint32_t* pairs) {
  if (reader.TryMapHeader(pairs) != MsgpackFault::kNone) {
    return Mistyped(reader, field.empty() ? EventFault::kEventType : EventFault::kFieldType, field,
                    "a map");
  }
  if (*pairs > kMapKeysMax) {
    return {EventFault::kTooManyKeys, field, "no more than kMapKeysMax keys", "more"};
  }
  return {};
}

DecodeFault ReadMapKey(MsgpackReader& reader, MapKeys* seen, std::string_view* key) {
  const MsgpackFault fault = reader.TryText(key);
  if (fault == MsgpackFault::kUtf8) {
    return Mistyped(reader, EventFault::kInvalidUtf8, "key", "UTF-8");
  }
  if (fault != MsgpackFault::kNone) return Mistyped(reader, EventFault::kKeyType, "key", "text");
  if (!seen->Add(*key)) return {EventFault::kDuplicateKey, "key", "each key once", "one twice"};
  return {};
}

DecodeFault SkipValue(MsgpackReader& reader) {
  if (reader.TrySkip() == MsgpackFault::kNone) return {};
  return Mistyped(reader, EventFault::kFieldType, "", "a well-formed value");
}

DecodeFault ReadBlockName(MsgpackReader& reader, bool sglang, std::string_view field,
                          std::int64_t item, BlockName* name) {
  if (MsgpackInteger integer; reader.TryInteger(&integer) == MsgpackFault::kNone) {
    if (sglang && !integer.FitsInt64()) {
      return {EventFault::kHashType, field, "an int64", "a larger integer", item};
    }
    name->projected = integer.bits;
    return {};
  }
  std::span<const std::uint8_t> bytes;
  if (reader.TryBytes(&bytes) != MsgpackFault::kNone) {
    return Mistyped(reader, EventFault::kHashType, field, "an integer or bytes", item);
  }
  if (bytes.size() < kProjectionBytes) {
    return {EventFault::kHashTooShort, field, "at least 8 bytes", "fewer", item};
  }
  if (bytes.size() > kBlockNameBytesMax) {
    return {EventFault::kHashTooLong, field, "at most kBlockNameBytesMax bytes", "more", item};
  }
  name->projected = BigEndian64(sglang ? bytes : bytes.last(kProjectionBytes));
  if (bytes.size() > kProjectionBytes && bytes.size() <= kWholeNameBytesMax) {
    name->digest.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return {};
}

DecodeFault ReadTextOrNil(MsgpackReader& reader, std::string_view field, std::string_view* text) {
  *text = {};
  if (reader.TryNil() == MsgpackFault::kNone) return {};
  const MsgpackFault fault = reader.TryText(text);
  if (fault == MsgpackFault::kUtf8) {
    return {EventFault::kInvalidUtf8, field, "UTF-8", "other bytes"};
  }
  if (fault != MsgpackFault::kNone) {
    return Mistyped(reader, EventFault::kFieldType, field, "text or nil");
  }
  return {};
}

DecodeFault ReadOptionalText(MsgpackReader& reader, std::string_view field, std::size_t bytes_max,
                             std::optional<std::string_view>* text) {
  std::string_view read;
  if (auto fault = ReadTextOrNil(reader, field, &read)) return fault;
  if (read.size() > bytes_max) {
    return {EventFault::kFieldRange, field, "a text within its limit", "a longer one"};
  }
  if (!read.empty()) text->emplace(read);
  return {};
}

DecodeFault ReadOptionalInteger(MsgpackReader& reader, std::string_view field,
                                std::optional<std::int64_t>* value) {
  if (reader.TryNil() == MsgpackFault::kNone) return {};
  MsgpackInteger integer;
  if (reader.TryInteger(&integer) != MsgpackFault::kNone) {
    return Mistyped(reader, EventFault::kFieldType, field, "an integer or nil");
  }
  if (!integer.FitsInt64()) return {EventFault::kFieldRange, field, "an int64", "a larger integer"};
  *value = integer.AsInt64();
  return {};
}

DecodeFault ReadOptionalNatural(MsgpackReader& reader, std::string_view field,
                                std::optional<std::int64_t>* value) {
  if (auto fault = ReadOptionalInteger(reader, field, value)) return fault;
  if (value->has_value() && **value < 0) {
    return {EventFault::kFieldRange, field, "an integer from 0", "a negative one"};
  }
  return {};
}

DecodeFault ReadBlockSize(MsgpackReader& reader, std::int64_t* block_size) {
  MsgpackInteger integer;
  if (reader.TryInteger(&integer) != MsgpackFault::kNone) {
    return Mistyped(reader, EventFault::kFieldType, "block_size", "an integer");
  }
  if (integer.negative || integer.bits == 0 || !integer.FitsInt64()) {
    return {EventFault::kBlockSize, "block_size", "a positive integer", "another"};
  }
  *block_size = integer.AsInt64();
  return {};
}

}  // namespace conductor
