// PoolPlaces: where the objects of the frame at hand belong. The objects of a frame come from few
// origins; each is looked up once. Owned by the state, for the time of one frame.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/check.h"
#include "src/index/context_table.h"
#include "src/index/pool_table.h"
#include "src/pool_origin.h"

namespace conductor {

class PoolPlaces {
 public:
  // 0: not known yet. What is known stays true: no id is ever given to another key.
  struct Place {
    ContextId context = 0;
    PoolId pool = 0;
  };

  // `origins` outlive the frame's events.
  void Begin(std::span<const PoolOrigin> origins) {
    origins_ = origins;
    places_.assign(origins.size(), {});
  }
  const PoolOrigin& origin(std::size_t number) const {
    CHECK(number < origins_.size());  // the log takes no other record
    return origins_[number];
  }
  Place& place(std::size_t number) { return places_[number]; }

 private:
  std::span<const PoolOrigin> origins_;
  std::vector<Place> places_;  // kept for its room
};

}  // namespace conductor
