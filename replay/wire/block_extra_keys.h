// The extra keys of an engine batch's blocks. All of a batch lie in two flat arrays, so that
// neither a block nor an event has lists of its own; their texts stay in the payload.
//
// The batch owns the store; an event holds the part that is about its blocks. Both are good while
// batch and payload live. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/hash/extra_key_list.h"

namespace conductor {

struct ExtraKeyStore {
  std::vector<ExtraKeyView> keys;
  // Of each event that has keys: where its first block's keys begin, then where each block's end.
  std::vector<std::uint32_t> bounds;
};

// Empty (no block has extra keys), or one list per name.
class BlockExtraKeys {
 public:
  BlockExtraKeys() = default;
  // `blocks` + 1 bounds, from `first_bound` on. Nothing moves the store itself.
  BlockExtraKeys(const ExtraKeyStore& store, std::size_t first_bound, std::size_t blocks)
      : store_(&store), first_bound_(first_bound), blocks_(blocks) {}

  std::size_t size() const { return blocks_; }
  bool empty() const { return blocks_ == 0; }
  std::span<const ExtraKeyView> operator[](std::size_t block) const {
    const std::uint32_t begin = store_->bounds[first_bound_ + block];
    const std::uint32_t end = store_->bounds[first_bound_ + block + 1];
    return std::span(store_->keys).subspan(begin, end - begin);
  }

 private:
  const ExtraKeyStore* store_ = nullptr;
  std::size_t first_bound_ = 0;
  std::size_t blocks_ = 0;
};

}  // namespace conductor
