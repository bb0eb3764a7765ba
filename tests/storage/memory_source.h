// Reading a snapshot from memory. One thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "storage/snapshot_reader.h"

namespace conductor::storage {

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}

  Result<std::size_t> Read(std::span<char> to) override {
    const std::size_t count = std::min(to.size(), rest_.size());
    std::copy_n(rest_.begin(), count, to.begin());
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

inline Status ReadFromMemory(std::string_view bytes, Seq seq, ImageVisitor& visitor) {
  MemorySource source(bytes);
  return ReadSnapshotBytes({"memory", seq, bytes.size()}, source, visitor);
}

}  // namespace conductor::storage
