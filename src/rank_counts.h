// RankCounts: what each DP rank of one instance matched, by ascending rank. Nearly always there is
// one rank, which needs no memory of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace conductor {

// Cumulative prefix boundaries in tokens: device <= cpu_local <= cpu_share <= disk.
struct TierCounts {
  std::uint64_t device = 0, cpu_local = 0, cpu_share = 0, disk = 0;
  bool operator==(const TierCounts&) const = default;
};

class RankCounts {
 public:
  using Item = std::pair<std::uint32_t, TierCounts>;

  RankCounts() = default;
  RankCounts(std::initializer_list<Item> items) {
    for (const auto& [rank, counts] : items) (*this)[rank] = counts;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Item* begin() const { return more_.empty() ? &first_ : more_.data(); }
  const Item* end() const { return begin() + size_; }
  // end(): no such rank.
  const Item* find(std::uint32_t rank) const {
    const Item* found = LowerBound(rank);
    return found != end() && found->first == rank ? found : end();
  }
  bool contains(std::uint32_t rank) const { return find(rank) != end(); }

  // Added when missing.
  TierCounts& operator[](std::uint32_t rank) {
    if (size_ == 0) {
      first_.first = rank;
      size_ = 1;
      return first_.second;
    }
    const std::size_t at = static_cast<std::size_t>(LowerBound(rank) - begin());
    const bool found = at < size_ && begin()[at].first == rank;
    if (!found) {
      if (more_.empty()) more_.push_back(first_);
      more_.insert(more_.begin() + static_cast<std::ptrdiff_t>(at), {rank, {}});
      ++size_;
    }
    return (more_.empty() ? first_ : more_[at]).second;
  }

  friend bool operator==(const RankCounts& a, const RankCounts& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  const Item* LowerBound(std::uint32_t rank) const {
    return std::lower_bound(begin(), end(), rank,
                            [](const Item& item, std::uint32_t r) { return item.first < r; });
  }

  Item first_{};            // the only one, while `more_` is empty
  std::vector<Item> more_;  // all of them, when there are several
  std::size_t size_ = 0;
};

}  // namespace conductor
