// FieldWriter, FieldReader: integers of fixed width, little-endian, and texts with their length, to
// the end of a string and from the front of one. After anything unexpected the reader's ok() is
// false and stays so, and every value is 0. Views point into the bytes. One call, one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "src/index/mix.h"

namespace conductor::storage {

static_assert(std::endian::native == std::endian::little);

template <typename Int>
concept FixedInt = std::is_integral_v<Int> && !std::is_same_v<Int, bool>;

class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  template <FixedInt Int>
  void Put(Int value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <FixedInt Int>
  void PutArray(std::span<const Int> values) {
    out_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void PutSum(Sum128 value) {
    Put(static_cast<std::uint64_t>(value));
    Put(static_cast<std::uint64_t>(value >> 64));
  }
  void PutBytes(std::string_view bytes) { out_.append(bytes); }
  void PutBytes(std::span<const std::uint8_t> bytes) { PutArray(bytes); }
  // The caller checked that it is short enough.
  void PutText(std::string_view text) {
    Put(static_cast<std::uint16_t>(text.size()));
    PutBytes(text);
  }

 private:
  std::string& out_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

  template <FixedInt Int>
  Int Take() {
    Int value = 0;
    const std::string_view bytes = TakeBytes(sizeof(value));
    if (ok_) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  // Into `values`, which has room for them.
  template <FixedInt Int>
  void TakeArray(std::span<Int> values) {
    const std::string_view bytes = TakeBytes(values.size_bytes());
    if (ok_ && !bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  Sum128 TakeSum() {
    const Sum128 low = Take<std::uint64_t>();
    return low | Sum128{Take<std::uint64_t>()} << 64;
  }
  std::string_view TakeBytes(std::size_t count) {
    if (!ok_ || count > bytes_.size()) [[unlikely]] {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view bytes = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return bytes;
  }
  std::string_view TakeText() { return TakeBytes(Take<std::uint16_t>()); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace conductor::storage
