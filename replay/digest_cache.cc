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
  if (table_.empty()) return std::nullopt;
  const Key key = MakeKey(scope, name);
  const Set& set = table_[SetOf(key)];
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set.keys[i] == key) return set.digests[i];
  }
  return std::nullopt;
}

void DigestCache::Prefetch(Scope scope, const BlockName& name) const {
  if (table_.empty()) return;
  const auto* set = reinterpret_cast<const char*>(&table_[SetOf(MakeKey(scope, name))]);
  for (std::size_t line = 0; line < sizeof(Set); line += 64) __builtin_prefetch(set + line, 1);
}

void DigestCache::Put(Scope scope, const BlockName& name, const Digest& digest) {
  if (table_.empty()) table_.resize(sets_);
  const Key key = MakeKey(scope, name);
  Set& set = table_[SetOf(key)];
  std::size_t place = 0;
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set.keys[i] == key) {
      place = i;
      break;
    }
    if (set.ages[i] < set.ages[place]) place = i;
  }
  set.keys[place] = key;
  set.ages[place] = ++clock_;
  set.digests[place] = digest;
}

}  // namespace conductor
