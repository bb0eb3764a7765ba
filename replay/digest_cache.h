// The full digests of recently stored blocks, by the name their publisher gives them: what hash
// verification goes on from when a child arrives in a later event. A miss is normal (the state is
// asked next). Bounded and set-associative: fixed memory, no list to keep, the oldest of a set
// goes. One cache per I/O thread, used by that thread only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/types.h"

namespace conductor {

// Entries per I/O thread: 64 bytes each, claimed when the first stream needs them.
inline constexpr std::size_t kDigestCacheEntries = 1u << 16;

class DigestCache {
 public:
  // Which stream, life and adapter a name belongs to.
  using Scope = std::uint64_t;

  explicit DigestCache(std::size_t entries = kDigestCacheEntries);

  std::optional<Digest> Find(Scope scope, const BlockName& name) const;
  void Put(Scope scope, const BlockName& name, const Digest& digest);
  // Fetches what Put of this name will look at, while the caller still computes the digest.
  void Prefetch(Scope scope, const BlockName& name) const;

  // A scope that differs from every other this cache has handed out.
  Scope NewScope() { return ++last_scope_; }

 private:
  static constexpr std::size_t kWays = 4;
  struct Key {
    Scope scope = 0;  // 0: empty
    std::uint64_t projected = 0;
    std::uint64_t rest = 0;  // of a name with a whole digest: its hash; else 0
    bool operator==(const Key&) const = default;
  };
  // What a search reads lies together, in two lines of the processor's cache.
  struct alignas(64) Set {
    std::array<Key, kWays> keys;
    std::array<std::uint64_t, kWays> ages{};
    std::array<Digest, kWays> digests;
  };
  static_assert(sizeof(Set) == 256);
  static Key MakeKey(Scope scope, const BlockName& name);
  std::size_t SetOf(const Key& key) const;

  std::size_t sets_;
  std::uint64_t clock_ = 0;
  Scope last_scope_ = 0;
  std::vector<Set> table_;  // of sets_, or nothing before the first Put
};

}  // namespace conductor
