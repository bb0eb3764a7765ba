#include "replay/recent_frames.h"

#include <algorithm>

namespace conductor {

RecentFrames::RecentFrames(const std::vector<Entry>& seed) {
  for (const Entry& entry : seed) Add(entry.first, entry.second);
}

void RecentFrames::Add(std::uint64_t number, std::uint64_t fingerprint) {
  entries_.emplace_back(number, fingerprint);
  if (entries_.size() > kRecentFingerprintsPerStream) entries_.pop_front();
}

std::optional<std::uint64_t> RecentFrames::Find(std::uint64_t number) const {
  const auto place =
      std::lower_bound(entries_.begin(), entries_.end(), number,
                       [](const Entry& entry, std::uint64_t key) { return entry.first < key; });
  if (place == entries_.end() || place->first != number) return std::nullopt;
  return place->second;
}

}  // namespace conductor
