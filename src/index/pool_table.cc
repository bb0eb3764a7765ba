#include "src/index/pool_table.h"

#include "src/limits.h"

namespace conductor {

PoolId PoolTable::Find(const std::string& backend_id, const std::string& tenant_id) const {
  const auto found = ids_.find({backend_id, tenant_id});
  return found == ids_.end() ? 0 : found->second;
}

PoolId PoolTable::FindOrAdd(const std::string& backend_id, const std::string& tenant_id) {
  if (const PoolId known = Find(backend_id, tenant_id)) return known;
  if (mixes_.size() > kPoolsMax) return 0;
  const auto id = static_cast<PoolId>(mixes_.size());
  // The length first: no two pairs have the same bytes.
  const std::string bytes = std::to_string(backend_id.size()) + ":" + backend_id + tenant_id;
  mixes_.push_back(FactMix(bytes.data(), bytes.size()));
  ids_[{backend_id, tenant_id}] = id;
  return id;
}

}  // namespace conductor
