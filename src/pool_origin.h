// PoolOrigin: what a store says with every object and rarely changes from one to the next. A frame
// keeps the few different ones once, and its objects say which by number, so that an object is no
// allocation. The log spells them out with each object.
//
// Plain values; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace conductor {

// Whose object it is and which context its block belongs to. An empty text, or block size 0: the
// registration's.
struct PoolOrigin {
  std::string backend_id, tenant_id, model_name, lora_name;
  std::uint32_t block_size = 0;

  bool operator==(const PoolOrigin&) const = default;
};

// The same, borrowed.
struct PoolOriginText {
  std::string_view backend_id, tenant_id, model_name, lora_name;
  std::uint32_t block_size = 0;

  bool Is(const PoolOrigin& other) const {
    return backend_id == other.backend_id && tenant_id == other.tenant_id &&
           model_name == other.model_name && lora_name == other.lora_name &&
           block_size == other.block_size;
  }
};

// How many of the last origins an object's is compared with: objects of more that take turns repeat
// theirs, which costs memory and nothing else.
inline constexpr std::size_t kOriginsCompared = 8;

// The number of `text` among `origins`, which it may join.
inline std::uint32_t OriginNumber(const PoolOriginText& text, std::vector<PoolOrigin>& origins) {
  const std::size_t end = origins.size();
  for (std::size_t back = 1; back <= std::min(end, kOriginsCompared); ++back) {
    if (text.Is(origins[end - back])) return static_cast<std::uint32_t>(end - back);
  }
  origins.push_back({std::string(text.backend_id), std::string(text.tenant_id),
                     std::string(text.model_name), std::string(text.lora_name), text.block_size});
  return static_cast<std::uint32_t>(end);
}

}  // namespace conductor
