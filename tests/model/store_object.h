// One object of a store with all that is said of it, for tests that apply it alone: the frame keeps
// its origin, the event the rest.
#pragma once

#include <cstdint>
#include <string>

#include "src/fact.h"

namespace conductor {

struct StoreObject {
  Tier tier = Tier::kCpuShare;
  std::string backend_id, tenant_id, model_name, lora_name;
  std::uint32_t block_size = 0;
  BlockName name;
  std::string part;
};
// The same object, removed.
struct GoneObject {
  StoreObject object;
};

// `PoolEvent`: PoolStored or PoolRemoved.
template <typename PoolEvent>
void AddTo(Frame& frame, const StoreObject& object) {
  PoolEvent event;
  event.tier = object.tier;
  event.origin = OriginNumber(
      {object.backend_id, object.tenant_id, object.model_name, object.lora_name, object.block_size},
      frame.origins);
  event.name = object.name;
  event.part = object.part;
  frame.events.emplace_back(std::move(event));
}

}  // namespace conductor
