// An append-only writer of MessagePack with minimal widths: byte for byte what msgspec, the
// publishers' encoder, writes (floats always as float64). For the engine simulator, for replies
// of the HTTP front end and for tests. The caller keeps its own promise that a header of n is
// followed by n values (2n for a map). One thread per writer.
//
//   MsgpackWriter writer;
//   writer.WriteArrayHeader(2);
//   writer.WriteDouble(1.5);
//   writer.WriteText("BlockRemoved");
//   std::string bytes = std::move(writer).Take();
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "src/check.h"

namespace conductor {

class MsgpackWriter {
 public:
  void WriteNil() { Put(0xc0); }
  void WriteBool(bool value) { Put(value ? 0xc3 : 0xc2); }

  void WriteUint64(std::uint64_t value) {
    if (value <= 0x7f) {
      Put(static_cast<std::uint8_t>(value));
    } else if (value <= UINT8_MAX) {
      Put(0xcc, value, 1);
    } else if (value <= UINT16_MAX) {
      Put(0xcd, value, 2);
    } else if (value <= UINT32_MAX) {
      Put(0xce, value, 4);
    } else {
      Put(0xcf, value, 8);
    }
  }

  void WriteInt64(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    if (value >= 0) {
      WriteUint64(bits);
    } else if (value >= -32) {
      Put(static_cast<std::uint8_t>(bits));
    } else if (value >= INT8_MIN) {
      Put(0xd0, bits, 1);
    } else if (value >= INT16_MIN) {
      Put(0xd1, bits, 2);
    } else if (value >= INT32_MIN) {
      Put(0xd2, bits, 4);
    } else {
      Put(0xd3, bits, 8);
    }
  }

  void WriteDouble(double value) { Put(0xcb, std::bit_cast<std::uint64_t>(value), 8); }

  void WriteText(std::string_view text) {
    CHECK(text.size() <= UINT32_MAX);
    if (text.size() <= 31) {
      Put(static_cast<std::uint8_t>(0xa0 | text.size()));
    } else if (text.size() <= UINT8_MAX) {
      Put(0xd9, text.size(), 1);
    } else if (text.size() <= UINT16_MAX) {
      Put(0xda, text.size(), 2);
    } else {
      Put(0xdb, text.size(), 4);
    }
    buffer_.append(text);
  }

  void WriteBytes(std::span<const std::uint8_t> bytes) {
    CHECK(bytes.size() <= UINT32_MAX);
    if (bytes.size() <= UINT8_MAX) {
      Put(0xc4, bytes.size(), 1);
    } else if (bytes.size() <= UINT16_MAX) {
      Put(0xc5, bytes.size(), 2);
    } else {
      Put(0xc6, bytes.size(), 4);
    }
    WriteRaw(bytes);
  }

  void WriteArrayHeader(std::uint32_t count) { PutHeader(0x90, 0xdc, count); }
  void WriteMapHeader(std::uint32_t pairs) { PutHeader(0x80, 0xde, pairs); }

  // Bytes that are MessagePack already.
  void WriteRaw(std::span<const std::uint8_t> bytes) {
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::string_view text() const { return buffer_; }
  std::span<const std::uint8_t> bytes() const {
    return {reinterpret_cast<const std::uint8_t*>(buffer_.data()), buffer_.size()};
  }
  std::string Take() && { return std::move(buffer_); }

 private:
  void Put(std::uint8_t byte) { buffer_.push_back(static_cast<char>(byte)); }

  void Put(std::uint8_t tag, std::uint64_t number, std::size_t width) {
    Put(tag);
    for (std::size_t i = width; i > 0; --i) Put(static_cast<std::uint8_t>(number >> (8 * (i - 1))));
  }

  void PutHeader(std::uint8_t fix, std::uint8_t wide, std::uint32_t count) {
    if (count <= 15) {
      Put(static_cast<std::uint8_t>(fix | count));
    } else if (count <= UINT16_MAX) {
      Put(wide, count, 2);
    } else {
      Put(static_cast<std::uint8_t>(wide + 1), count, 4);
    }
  }

  std::string buffer_;
};

}  // namespace conductor
