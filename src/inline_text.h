// InlineText: a short text or a few bytes, held in place up to `kInline` of them, so that a list of
// what holds such texts is one piece of memory. Longer ones, which are legal and rare, lie on the
// heap.
//
// A value like the std::string it stands for: same order (bytes as unsigned), same spelling.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace conductor {

template <std::size_t kInline>
class InlineText {
 public:
  static constexpr std::size_t kInlineBytes = kInline;

  InlineText() noexcept {}
  // Texts and bytes of every kind: what a std::string_view can be made of.
  template <typename Text>
  requires(std::convertible_to<const Text&, std::string_view> &&
           !std::same_as<std::remove_cvref_t<Text>, InlineText>) InlineText(const Text& text) {
    assign(std::string_view(text));
  }
  InlineText(const InlineText& other) { CopyFrom(other); }
  InlineText(InlineText&& other) noexcept { TakeFrom(other); }
  InlineText& operator=(const InlineText& other) {
    if (this == &other) return *this;
    Free();
    CopyFrom(other);
    return *this;
  }
  InlineText& operator=(InlineText&& other) noexcept {
    if (this == &other) return *this;
    Free();
    TakeFrom(other);
    return *this;
  }
  ~InlineText() { Free(); }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const char* data() const { return IsInline() ? inline_ : heap_; }
  const char* begin() const { return data(); }
  const char* end() const { return data() + size_; }
  operator std::string_view() const { return {data(), size_}; }

  void assign(std::string_view bytes) { assign(bytes.data(), bytes.size()); }
  // `bytes` is not of this text.
  void assign(const char* bytes, std::size_t size) {
    Free();
    size_ = 0;
    if (size == 0) return;
    if (size <= kInlineBytes) {
      std::memset(inline_, 0, kInlineBytes);
    } else {
      heap_ = new char[size];
    }
    size_ = static_cast<std::uint32_t>(size);
    std::memcpy(IsInline() ? inline_ : heap_, bytes, size);
  }

  friend bool operator==(const InlineText& a, const InlineText& b) {
    return std::string_view(a) == std::string_view(b);
  }
  friend std::strong_ordering operator<=>(const InlineText& a, const InlineText& b) {
    return std::string_view(a) <=> std::string_view(b);
  }

 private:
  bool IsInline() const { return size_ <= kInlineBytes; }
  void Free() {
    if (!IsInline()) delete[] heap_;
  }
  // Both expect that nothing is held.
  void CopyFrom(const InlineText& other) {
    size_ = 0;
    if (other.size_ == 0) return;
    if (!other.IsInline()) return assign(other.heap_, other.size_);
    std::memcpy(inline_, other.inline_, kInlineBytes);
    size_ = other.size_;
  }
  void TakeFrom(InlineText& other) noexcept {
    size_ = other.size_;
    if (size_ == 0) return;
    std::memcpy(inline_, other.inline_, kInlineBytes);  // of the heap's bytes: their address
    other.size_ = 0;
  }

  // Invariant: heap_ owns size_ bytes when size_ > kInlineBytes; else all of inline_ is set, unless
  // size_ is 0.
  union {
    char inline_[kInlineBytes];
    char* heap_;
  };
  std::uint32_t size_ = 0;
};

}  // namespace conductor
