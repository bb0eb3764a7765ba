// How long after our own restart a stream waits before it asks its publisher what was missed: so
// that a thousand publishers are not asked in the same moment.
#pragma once

#include <cstdint>

#include "src/types.h"

namespace conductor {

// From 0 to `ms_max`, spread evenly over the streams: splitmix64 of the id. The same at each start.
constexpr std::int64_t ReplayJitterMs(StreamId stream, std::uint32_t ms_max) {
  std::uint64_t mixed = stream + 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return static_cast<std::int64_t>((mixed ^ (mixed >> 31)) % (std::uint64_t{ms_max} + 1));
}

}  // namespace conductor
