// What a piece of memory takes from the heap, for gauges: glibc puts 8 bytes before each piece,
// rounds to 16, and gives no less than 32.
#pragma once

#include <algorithm>
#include <cstddef>

namespace conductor {

constexpr std::size_t HeapBytes(std::size_t size) {
  return size == 0 ? 0 : std::max<std::size_t>(32, (size + 8 + 15) / 16 * 16);
}

}  // namespace conductor
