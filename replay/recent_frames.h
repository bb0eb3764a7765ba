// The numbers and fingerprints of the last frames a stream applied: what tells a duplicate from a
// new life of its publisher. The state keeps the same list (StreamSeed::recent), so a restart of
// ours forgets nothing. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "src/limits.h"

namespace conductor {

class RecentFrames {
 public:
  using Entry = std::pair<std::uint64_t, std::uint64_t>;  // number, fingerprint

  RecentFrames() = default;
  explicit RecentFrames(const std::vector<Entry>& seed);

  bool empty() const { return entries_.empty(); }
  const Entry& back() const { return entries_.back(); }
  // Numbers come in ascending order.
  void Add(std::uint64_t number, std::uint64_t fingerprint);
  std::optional<std::uint64_t> Find(std::uint64_t number) const;
  void Clear() { entries_.clear(); }

 private:
  // Invariant: ascending numbers, at most kRecentFingerprintsPerStream of them.
  std::deque<Entry> entries_;
};

}  // namespace conductor
