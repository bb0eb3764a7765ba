// How many different parts of a block a pool must have, by its registration's totals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/limits.h"
#include "src/registration.h"

namespace conductor {

// One, unless the registration names totals. A dimension of total 0 or 1 tells nothing apart.
inline std::size_t PartSlotsNeeded(const PoolParts& totals) {
  std::uint64_t needed = 1;
  for (const auto& [dimension, total] : totals) {
    if (total > 1) needed = std::min<std::uint64_t>(needed * total, kPartsPerBlockMax);
  }
  return needed;
}

}  // namespace conductor
