// Protobuf's wire format written from its end to its beginning: a nested message's length is known
// when its content has been written, so one pass over the facts is enough and no tree of messages
// is built. Fields are put in descending order of their numbers, elements from the last to the
// first; the bytes are those that protobuf itself writes. Owned by one call, one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace conductor::storage {

class BackwardWriter {
 public:
  explicit BackwardWriter(std::size_t bytes_expected)
      : capacity_(bytes_expected), buffer_(new char[capacity_]), begin_(capacity_) {}

  // Bytes so far; a message begun at `mark` = size() has size() - mark bytes.
  std::size_t size() const { return capacity_ - begin_; }
  std::string_view bytes() const { return {buffer_.get() + begin_, size()}; }

  // Room for `count` bytes in front of the rest, which the caller fills at once.
  char* Prepend(std::size_t count) {
    if (begin_ < count) [[unlikely]]
      Grow(count);
    begin_ -= count;
    return buffer_.get() + begin_;
  }
  void PutRaw(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(Prepend(bytes.size()), bytes.data(), bytes.size());
  }
  void PutVarint(std::uint64_t value) {
    char spelled[kVarintBytesMax];
    std::size_t count = 0;
    for (; value >= 0x80; value >>= 7) spelled[count++] = static_cast<char>(value | 0x80);
    spelled[count++] = static_cast<char>(value);
    std::memcpy(Prepend(count), spelled, count);
  }
  void PutFixed64(std::uint64_t value) { StoreFixed64(value, Prepend(8)); }
  static void StoreFixed64(std::uint64_t value, char* to) {
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(to, &value, sizeof(value));
  }

  // Whole fields. Those without presence leave their default out.
  void Varint(int field, std::uint64_t value) {
    if (value == 0) return;
    PutVarint(value);
    Tag(field, kVarint);
  }
  void Fixed64(int field, std::uint64_t value) {
    if (value == 0) return;
    PutFixed64(value);
    Tag(field, kFixed64);
  }
  void Bytes(int field, std::string_view bytes) {
    if (!bytes.empty()) PresentBytes(field, bytes);
  }
  void PresentBytes(int field, std::string_view bytes) {
    PutRaw(bytes);
    PutVarint(bytes.size());
    Tag(field, kLength);
  }
  // Everything since `mark` was the content of a message or of a packed list.
  void EndLength(int field, std::size_t mark) {
    PutVarint(size() - mark);
    Tag(field, kLength);
  }

 private:
  static constexpr std::size_t kVarintBytesMax = 10;
  static constexpr unsigned kVarint = 0, kFixed64 = 1, kLength = 2;

  void Tag(int field, unsigned type) { PutVarint(static_cast<unsigned>(field) << 3 | type); }
  void Grow(std::size_t count) {
    const std::size_t used = size();
    const std::size_t bigger = 2 * capacity_ + count;
    std::unique_ptr<char[]> buffer(new char[bigger]);
    std::memcpy(buffer.get() + bigger - used, buffer_.get() + begin_, used);
    buffer_ = std::move(buffer);
    capacity_ = bigger;
    begin_ = bigger - used;
  }

  std::size_t capacity_;
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_;  // Invariant: the bytes are [begin_, capacity_).
};

}  // namespace conductor::storage
