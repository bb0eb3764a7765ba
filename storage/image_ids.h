// ImageIds: what the ids of an image stand for, while its pieces come in: id -> a number, 0 for an
// id that was not seen. Memory is for the ids that were seen, in pages; at most kImageIdsMax.
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/snapshot_format.h"

namespace conductor::storage {

class ImageIds {
 public:
  // 0: not seen, or no id at all.
  std::uint32_t Find(std::uint32_t id) const {
    const std::size_t page = id / kPageIds;
    if (page >= pages_.size() || pages_[page] == nullptr) return 0;
    return (*pages_[page])[id % kPageIds];
  }
  // False: seen before, or out of range. `value` is not 0.
  bool Add(std::uint32_t id, std::uint32_t value) {
    if (id == 0 || id >= kImageIdsMax || Find(id) != 0) return false;
    const std::size_t page = id / kPageIds;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<Page>();
    (*pages_[page])[id % kPageIds] = value;
    return true;
  }

 private:
  static constexpr std::size_t kPageIds = 4096;
  using Page = std::array<std::uint32_t, kPageIds>;

  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace conductor::storage
