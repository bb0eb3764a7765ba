#include "replay/digest_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>

namespace conductor {

DigestCache::DigestCache(std::size_t entries)
    : sets_(std::bit_ceil(std::max<std::size_t>(entries / kWays, 1))) {}

DigestCache::Key DigestCache::MakeKey(Scope scope, const BlockName& name) {
  Key key{scope, name.projected, 0};
  // Names that share their projection differ in the rest. Zero stays the mark of plain integers.
  if (!name.digest.empty()) key.rest = XXH3_64bits(name.digest.data(), name.digest.size()) | 1;
  return key;
}

std::size_t DigestCache::SetOf(const Key& key) const {
  return XXH3_64bits(&key, sizeof(key)) & (sets_ - 1);
}

std::optional<Digest> DigestCache::Find(Scope scope, const BlockName& name) const {
  if (entries_.empty()) return std::nullopt;
  const Key key = MakeKey(scope, name);
  const Entry* set = entries_.data() + SetOf(key) * kWays;
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].key == key) return set[i].digest;
  }
  return std::nullopt;
}

void DigestCache::Put(Scope scope, const BlockName& name, const Digest& digest) {
  if (entries_.empty()) entries_.resize(sets_ * kWays);
  const Key key = MakeKey(scope, name);
  Entry* set = entries_.data() + SetOf(key) * kWays;
  Entry* place = set;
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].key == key) {
      place = set + i;
      break;
    }
    if (set[i].age < place->age) place = set + i;
  }
  *place = Entry{key, ++clock_, digest};
}

}  // namespace conductor
