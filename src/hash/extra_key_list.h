// The extra keys of one block where they lie: in a list of their own, or as a decoder's views into
// a payload. Hashes and fingerprints read them through ExtraKeyList, so that a block of an event
// costs no list and no text of its own.
//
// Neither type owns anything: what they point to outlives them. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string_view>

#include "src/types.h"

namespace conductor {

// An ExtraKey whose text lies elsewhere.
struct ExtraKeyView {
  ExtraKey::Kind kind = ExtraKey::Kind::kText;
  std::string_view text;
  std::int64_t integer = 0;

  bool operator==(const ExtraKeyView&) const = default;
};

class ExtraKeyList {
 public:
  ExtraKeyList() = default;
  ExtraKeyList(const ExtraKeys& keys) : ExtraKeyList(std::span<const ExtraKey>(keys)) {}
  ExtraKeyList(std::span<const ExtraKey> keys) : keys_(keys.data()), size_(keys.size()) {}
  ExtraKeyList(std::span<const ExtraKeyView> keys) : views_(keys.data()), size_(keys.size()) {}
  // For arguments spelled out at a call, whose values live until it returns.
  ExtraKeyList(std::initializer_list<ExtraKey> keys)
      : ExtraKeyList(std::span<const ExtraKey>(std::data(keys), keys.size())) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  ExtraKeyView operator[](std::size_t i) const {
    const std::size_t at = i < gap_ ? i : i + 1;
    if (views_ != nullptr) return views_[at];
    return {keys_[at].kind, keys_[at].text, keys_[at].integer};
  }

  ExtraKeyList WithoutFirst() const {
    ExtraKeyList rest = *this;
    if (keys_ != nullptr) ++rest.keys_;
    if (views_ != nullptr) ++rest.views_;
    --rest.size_;
    return rest;
  }
  // Leaves out the key at `i`; of a list that lacks none yet.
  ExtraKeyList Without(std::size_t i) const {
    ExtraKeyList rest = *this;
    rest.gap_ = i;
    --rest.size_;
    return rest;
  }

 private:
  // At most one of the two is set.
  const ExtraKey* keys_ = nullptr;
  const ExtraKeyView* views_ = nullptr;
  std::size_t size_ = 0;
  std::size_t gap_ = SIZE_MAX;  // index of the key that is left out
};

}  // namespace conductor
