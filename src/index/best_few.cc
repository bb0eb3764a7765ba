#include "src/index/best_few.h"

#include <algorithm>
#include <array>

namespace conductor {
namespace {

// Sets up to this size are looked at whole.
constexpr std::uint32_t kSmallSet = 32;
// What a thread remembers of large sets: this many sets, and the first members of each.
constexpr std::size_t kRememberedSets = 64;
constexpr std::size_t kRememberedRows = 2 * kBestFewMax;
// It remembers members as bits where that takes at most so many for each.
constexpr std::uint32_t kBitsPerMember = 16;

struct LargeSet {
  std::uint64_t serial = 0, version = 0;  // of the set, and of its context's rows
  std::vector<PlainRow> first;            // in the order of instance ids
  HolderId lowest = 0;
  std::vector<std::uint64_t> bits;  // of all members, from the lowest on; empty: not known

  bool Contains(HolderId holder) const {
    const std::uint32_t at = holder - lowest;  // huge when it is lower
    return at / 64 < bits.size() && ((bits[at / 64] >> (at % 64)) & 1) != 0;
  }
};

template <typename Visit>
void ForMembers(const HolderTable& holders, const RowView& rows, const HolderSet& set,
                Visit&& visit) {
  for (std::uint32_t i = 0; i < set.size; ++i) {
    PlainRow member;
    if (FindPlainRow(holders, rows, set.holders[i], &member)) visit(member);
  }
}

// A thread's own memory: readers share nothing.
LargeSet& PlaceOf(const HolderSet& set) {
  thread_local std::array<LargeSet, kRememberedSets> remembered;
  return remembered[set.serial % kRememberedSets];
}

// The first members of a large set by instance id.
const LargeSet& Remember(const HolderTable& holders, const RowView& rows, const HolderSet& set) {
  LargeSet& large = PlaceOf(set);
  if (large.serial == set.serial && large.version == rows.version) return large;
  large.serial = set.serial;
  large.version = rows.version;
  large.first.clear();
  const ByInstance by_instance{rows};
  ForMembers(holders, rows, set, [&](const PlainRow& member) {
    if (large.first.size() == kRememberedRows) {
      if (!by_instance(member, large.first.front())) return;
      std::pop_heap(large.first.begin(), large.first.end(), by_instance);
      large.first.pop_back();
    }
    large.first.push_back(member);
    std::push_heap(large.first.begin(), large.first.end(), by_instance);
  });
  std::sort_heap(large.first.begin(), large.first.end(), by_instance);
  large.bits.clear();
  large.lowest = set.holders[0];
  const std::uint32_t range = set.holders[set.size - 1] - large.lowest + 1;
  if (range / kBitsPerMember <= set.size) {
    large.bits.resize(range / 64 + 1);
    for (std::uint32_t i = 0; i < set.size; ++i) {
      const std::uint32_t at = set.holders[i] - large.lowest;
      large.bits[at / 64] |= std::uint64_t{1} << (at % 64);
    }
  }
  return large;
}

bool Contains(const HolderSet& set, HolderId holder) {
  if (set.size <= kSmallSet) {
    return std::find(set.holders.get(), set.holders.get() + set.size, holder) !=
           set.holders.get() + set.size;
  }
  const LargeSet& large = PlaceOf(set);
  return large.serial == set.serial && !large.bits.empty() ? large.Contains(holder)
                                                           : set.Contains(holder);
}

bool InAll(std::span<const Stretch> stretches, HolderId holder) {
  return std::all_of(stretches.begin(), stretches.end(),
                     [&](const Stretch& stretch) { return Contains(*stretch.set, holder); });
}

}  // namespace

bool TakeBest(const HolderTable& holders, const RowView& rows, std::span<const Stretch> stretches,
              std::size_t count, std::vector<PlainRow>* best) {
  best->clear();
  for (std::size_t level = stretches.size(); level-- > 0 && best->size() < count;) {
    const Stretch& stretch = stretches[level];
    // Somebody lost everything meanwhile.
    if (stretch.set->has_retired.load(std::memory_order_acquire)) return false;
    const auto taken = static_cast<std::ptrdiff_t>(best->size());
    const auto consider = [&](PlainRow member) {
      const auto is_it = [&](const PlainRow& b) { return b.holder == member.holder; };
      if (std::any_of(best->begin(), best->begin() + taken, is_it)) return;
      if (!InAll(stretches.first(level), member.holder)) return;
      member.tokens = stretch.end;
      best->push_back(member);
    };
    if (stretch.set->size <= kSmallSet) {
      ForMembers(holders, rows, *stretch.set, consider);
      std::sort(best->begin() + taken, best->end(), ByInstance{rows});
      if (best->size() > count) best->resize(count);
      continue;
    }
    const LargeSet& large = Remember(holders, rows, *stretch.set);
    for (const PlainRow& member : large.first) {
      if (best->size() == count) break;
      consider(member);
    }
    const bool all_seen = large.first.size() < kRememberedRows;
    if (best->size() < count && !all_seen) return false;
  }
  return true;
}

}  // namespace conductor
