// PoolTable: the (backend, tenant) pairs that stores have named. An id of it, with the stream and
// the tier, tells one pool's holder from another's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/index/entry.h"
#include "src/index/mix.h"

namespace conductor {

using PoolId = std::uint32_t;  // 0: not a pool

class PoolTable {
 public:
  PoolId Find(std::string_view backend_id, std::string_view tenant_id) const;
  // 0 when kPoolsMax is reached.
  PoolId FindOrAdd(std::string_view backend_id, std::string_view tenant_id);
  // In the order of their texts.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [key, id] : ids_) visit(id, key.first, key.second);
  }
  // Identity by facts; 0 for the id 0.
  Sum128 Mix(PoolId id) const { return mixes_[id]; }

 private:
  // Texts that are borrowed find those that are kept.
  struct Before {
    using is_transparent = void;
    using Texts = std::pair<std::string_view, std::string_view>;
    bool operator()(const Texts& a, const Texts& b) const { return a < b; }
  };
  std::map<std::pair<std::string, std::string>, PoolId, Before> ids_;
  std::vector<Sum128> mixes_ = std::vector<Sum128>(1);
};

}  // namespace conductor
