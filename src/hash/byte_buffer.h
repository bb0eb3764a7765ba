// A growing run of bytes that starts on the stack, for values that are serialised only to be
// hashed. A block of up to a few hundred tokens never touches the heap. Owned and used by one
// thread, inside one call.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace conductor {

class ByteBuffer {
 public:
  // Enough for the CBOR or pickle form of 384 tokens without extra keys.
  static constexpr std::size_t kInlineBytes = 2048;

  ByteBuffer() : data_(inline_) {}  // The bytes stay uninitialised on purpose.
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;

  std::size_t size() const { return size_; }
  std::uint8_t* data() { return data_; }
  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

  // Room for `count` more bytes. The pointer is where they go and is valid until the next call;
  // SetEnd() says how far the caller wrote.
  std::uint8_t* Reserve(std::size_t count) {
    if (capacity_ - size_ < count) [[unlikely]]
      Grow(count);
    return data_ + size_;
  }
  void SetEnd(const std::uint8_t* end) { size_ = static_cast<std::size_t>(end - data_); }

  void Put(std::uint8_t byte) {
    *Reserve(1) = byte;
    ++size_;
  }
  void Append(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return;
    std::memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }

  // `bytes` (1, 2, 4 or 8) low bytes of the value.
  void PutBigEndian(std::uint64_t value, int bytes) {
    std::uint8_t* out = Reserve(8);
    for (int i = 0; i < bytes; ++i) {
      out[i] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
    }
    size_ += static_cast<std::size_t>(bytes);
  }
  void PutLittleEndian(std::uint64_t value, int bytes) {
    std::uint8_t* out = Reserve(8);
    for (int i = 0; i < bytes; ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
    size_ += static_cast<std::size_t>(bytes);
  }

 private:
  void Grow(std::size_t count) {
    const std::size_t wanted = size_ + count;
    const std::size_t capacity = wanted > 2 * capacity_ ? wanted : 2 * capacity_;
    std::unique_ptr<std::uint8_t[]> bigger(new std::uint8_t[capacity]);
    std::memcpy(bigger.get(), data_, size_);
    heap_ = std::move(bigger);
    data_ = heap_.get();
    capacity_ = capacity;
  }

  std::uint8_t* data_;
  std::size_t size_ = 0;  // Invariant: size_ <= capacity_.
  std::size_t capacity_ = kInlineBytes;
  std::unique_ptr<std::uint8_t[]> heap_;
  std::uint8_t inline_[kInlineBytes];
};

}  // namespace conductor
