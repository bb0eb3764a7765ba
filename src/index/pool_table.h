// PoolTable: the (backend, tenant) pairs that stores have named. An id of it, with the stream and
// the tier, tells one pool's holder from another's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/index/entry.h"
#include "src/index/mix.h"

namespace conductor {

using PoolId = std::uint32_t;  // 0: not a pool

class PoolTable {
 public:
  PoolId Find(const std::string& backend_id, const std::string& tenant_id) const;
  // 0 when kPoolsMax is reached.
  PoolId FindOrAdd(const std::string& backend_id, const std::string& tenant_id);
  // In the order of their texts.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [key, id] : ids_) visit(id, key.first, key.second);
  }
  // Identity by facts; 0 for the id 0.
  Sum128 Mix(PoolId id) const { return mixes_[id]; }

 private:
  std::map<std::pair<std::string, std::string>, PoolId> ids_;
  std::vector<Sum128> mixes_ = std::vector<Sum128>(1);
};

}  // namespace conductor
