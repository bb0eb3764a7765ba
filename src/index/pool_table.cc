#include "src/index/pool_table.h"

#include "src/limits.h"

namespace conductor {

PoolId PoolTable::Find(std::string_view backend_id, std::string_view tenant_id) const {
  const auto found = ids_.find(Before::Texts(backend_id, tenant_id));
  return found == ids_.end() ? 0 : found->second;
}

PoolId PoolTable::FindOrAdd(std::string_view backend_id, std::string_view tenant_id) {
  if (const PoolId known = Find(backend_id, tenant_id)) return known;
  if (mixes_.size() > kPoolsMax) return 0;
  const auto id = static_cast<PoolId>(mixes_.size());
  // The length first: no two pairs have the same bytes.
  std::string bytes = std::to_string(backend_id.size()) + ":";
  bytes.append(backend_id).append(tenant_id);
  mixes_.push_back(FactMix(bytes.data(), bytes.size()));
  ids_.emplace(std::pair(std::string(backend_id), std::string(tenant_id)), id);
  return id;
}

}  // namespace conductor
