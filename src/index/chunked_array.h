// ChunkedArray: a table that grows without ever moving an element, so that readers can hold ids
// and references while the writer grows it. Ids are dense; 0 is never handed out (it means "none").
// One writer; readers call operator[] only for ids they got from published data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/check.h"

namespace conductor {

template <typename T, std::size_t kChunkBits, std::size_t kChunkCountMax>
class ChunkedArray {
 public:
  ChunkedArray() : chunks_(new std::atomic<T*>[kChunkCountMax]()) {}
  ~ChunkedArray() {
    for (std::size_t i = 0; i < chunks_used_; ++i) delete[] chunks_[i].load();  // filled in order
  }
  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;

  // Acquire pairs with the release in Allocate: a reader sees the constructed chunk.
  T& operator[](std::uint32_t id) const {
    return chunks_[id >> kChunkBits].load(std::memory_order_acquire)[id & kChunkMask];
  }

  bool HasRoom() const { return !free_.empty() || next_ >> kChunkBits < kChunkCountMax; }
  // A free id: recycled, or new. The element is as the last user left it.
  std::uint32_t Allocate() {
    if (!free_.empty()) {
      const std::uint32_t id = free_.back();
      free_.pop_back();
      return id;
    }
    const std::uint32_t id = next_++;
    const std::size_t chunk = id >> kChunkBits;
    CHECK(chunk < kChunkCountMax);
    if (chunks_[chunk].load(std::memory_order_relaxed) == nullptr) {
      chunks_[chunk].store(new T[std::size_t{1} << kChunkBits](), std::memory_order_release);
      ++chunks_used_;
    }
    return id;
  }

  // Only when no reader can hold `id` any more (RetireList).
  void Release(std::uint32_t id) { free_.push_back(id); }

  // Gives the memory back when no id is in use: then no reader has one, and they begin anew.
  void ShrinkIfEmpty() {
    if (chunks_used_ == 0 || free_.size() + 1 < next_) return;
    for (std::size_t i = 0; i < chunks_used_; ++i) {
      delete[] chunks_[i].exchange(nullptr, std::memory_order_acq_rel);
    }
    chunks_used_ = 0;
    next_ = 1;
    free_ = {};
  }

  // Ids handed out so far are below this.
  std::uint32_t end_id() const { return next_; }
  std::size_t bytes() const {
    return chunks_used_ * (sizeof(T) << kChunkBits) + free_.capacity() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::uint32_t kChunkMask = (std::uint32_t{1} << kChunkBits) - 1;
  std::unique_ptr<std::atomic<T*>[]> chunks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 1;
  std::size_t chunks_used_ = 0;
};

}  // namespace conductor
