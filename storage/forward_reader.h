// Protobuf's wire format read front to back, field by field, where the order of the fields is
// known. After anything unexpected ok() is false and stays so, and nothing more is read. Views
// point into the bytes. Owned by one call, one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace conductor::storage {

class ForwardReader {
 public:
  explicit ForwardReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return bytes_.empty(); }
  // Everything was read, and as expected.
  bool Done() const { return ok_ && bytes_.empty(); }
  void Expect(bool condition) { ok_ = ok_ && condition; }

  // Whether a field of this number and type comes next. Numbers below 16: one byte.
  bool NextVarint(int field) const { return Next(field, 0); }
  bool NextFixed64(int field) const { return Next(field, 1); }
  bool NextBytes(int field) const { return Next(field, 2); }

  // Fields without presence: their default when they are not next.
  std::uint64_t Varint(int field) {
    if (!NextVarint(field)) return 0;
    Skip(1);
    return TakeVarint();
  }
  std::uint32_t Varint32(int field) {
    const std::uint64_t value = Varint(field);
    Expect(value <= std::numeric_limits<std::uint32_t>::max());
    return static_cast<std::uint32_t>(value);
  }
  bool Bool(int field) {
    const std::uint64_t value = Varint(field);
    Expect(value <= 1);
    return value == 1;
  }
  std::uint64_t Fixed64(int field) {
    if (!NextFixed64(field)) return 0;
    Skip(1);
    Expect(bytes_.size() >= sizeof(std::uint64_t));
    if (!ok_) return 0;
    const std::uint64_t value = LoadFixed64(bytes_.data());
    Skip(sizeof(value));
    return value;
  }
  std::string_view Bytes(int field) {
    if (!NextBytes(field)) return {};
    Skip(1);
    const std::uint64_t size = TakeVarint();
    Expect(size <= bytes_.size());
    if (!ok_) return {};
    const std::string_view bytes = bytes_.substr(0, size);
    Skip(size);
    return bytes;
  }
  std::uint64_t TakeVarint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      const auto byte = static_cast<std::uint8_t>(bytes_.front());
      Skip(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  static std::uint64_t LoadFixed64(const char* from) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }

 private:
  bool Next(int field, unsigned type) const {
    return ok_ && !bytes_.empty() &&
           static_cast<std::uint8_t>(bytes_.front()) == (static_cast<unsigned>(field) << 3 | type);
  }
  void Skip(std::size_t count) { bytes_.remove_prefix(count); }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace conductor::storage
