#include "bench/baseline_hash_map.h"

#include "bench/workload.h"

namespace conductor::bench {

void HashMapBaseline::Store(Owner owner, std::span<const std::uint64_t> names) {
  for (std::uint64_t name : names) {
    std::vector<Owner>& owners = owners_[name];
    const auto at = std::lower_bound(owners.begin(), owners.end(), owner);
    if (at == owners.end() || *at != owner) owners.insert(at, owner);
  }
}

void HashMapBaseline::Remove(Owner owner, std::span<const std::uint64_t> names) {
  for (std::uint64_t name : names) {
    const auto found = owners_.find(name);
    if (found == owners_.end()) continue;
    std::vector<Owner>& owners = found->second;
    const auto at = std::lower_bound(owners.begin(), owners.end(), owner);
    if (at == owners.end() || *at != owner) continue;
    owners.erase(at);
    if (owners.empty()) owners_.erase(found);
  }
}

std::vector<Depth> HashMapBaseline::Match(std::span<const std::int32_t> tokens) const {
  const std::size_t count = tokens.size() / kBlockSize;
  std::vector<std::uint64_t> names(count);
  Digest digest = hasher_.Root();
  for (std::size_t i = 0; i < count; ++i) {
    digest = hasher_.HashTokens(digest, tokens.subspan(i * kBlockSize, kBlockSize));
    names[i] = hasher_.Project(digest);
  }

  std::vector<Depth> done;
  std::vector<Owner> left;
  std::size_t at = 0;
  for (; at < count; ++at) {
    const auto found = owners_.find(names[at]);
    if (found == owners_.end()) break;
    const std::vector<Owner>& owners = found->second;
    if (at == 0) {
      left = owners;
      continue;
    }
    // Two sorted lists side by side.
    std::size_t kept = 0;
    auto here = owners.begin();
    for (Owner owner : left) {
      while (here != owners.end() && *here < owner) ++here;
      if (here != owners.end() && *here == owner) {
        left[kept++] = owner;
      } else {
        done.push_back({owner, at});
      }
    }
    left.resize(kept);
    if (left.empty()) break;
  }
  for (Owner owner : left) done.push_back({owner, at});
  return done;
}

}  // namespace conductor::bench
