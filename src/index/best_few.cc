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

struct Member {
  std::uint32_t group = 0;  // position in the order of instance ids
  std::uint32_t row = 0;
  HolderId holder = 0;
};

struct LargeSet {
  std::uint64_t serial = 0, version = 0;  // of the set, and of its context's rows
  std::vector<Member> first;              // in the order of instance ids
};

template <typename Visit>
void ForMembers(const HolderTable& holders, const RowView& rows, const HolderSet& set,
                Visit&& visit) {
  for (std::uint32_t i = 0; i < set.size; ++i) {
    const HolderId id = set.holders[i];
    const Holder& holder = holders.holder(id);
    // The row may be newer than this reader's view of the rows.
    if (holder.row >= rows.streams.size() || rows.streams[holder.row] != holder.key.stream)
      continue;
    visit(Member{rows.group_of[holder.row], holder.row, id});
  }
}

bool ByInstance(const Member& a, const Member& b) {
  return a.group < b.group;
}

// The first members of a large set by instance id. A thread's own memory: readers share nothing.
const LargeSet& Remember(const HolderTable& holders, const RowView& rows, const Stretch& stretch) {
  thread_local std::array<LargeSet, kRememberedSets> remembered;
  const HolderSet& set = *stretch.set;
  LargeSet& large = remembered[set.serial % kRememberedSets];
  if (large.serial == set.serial && large.version == rows.version) return large;
  large.serial = set.serial;
  large.version = rows.version;
  large.first.clear();
  ForMembers(holders, rows, set, [&](const Member& member) {
    if (large.first.size() == kRememberedRows) {
      if (!ByInstance(member, large.first.front())) return;
      std::pop_heap(large.first.begin(), large.first.end(), ByInstance);
      large.first.pop_back();
    }
    large.first.push_back(member);
    std::push_heap(large.first.begin(), large.first.end(), ByInstance);
  });
  std::sort_heap(large.first.begin(), large.first.end(), ByInstance);
  return large;
}

bool InAll(std::span<const Stretch> stretches, HolderId holder) {
  return std::all_of(stretches.begin(), stretches.end(),
                     [&](const Stretch& stretch) { return stretch.set->Contains(holder); });
}

}  // namespace

bool TakeBest(const HolderTable& holders, const RowView& rows, std::span<const Stretch> stretches,
              std::size_t count, std::vector<BestRow>* best) {
  best->clear();
  for (std::size_t level = stretches.size(); level-- > 0 && best->size() < count;) {
    const Stretch& stretch = stretches[level];
    // Somebody lost everything meanwhile.
    if (stretch.set->has_retired) return false;
    const auto taken = static_cast<std::ptrdiff_t>(best->size());
    const auto consider = [&](const Member& member) {
      const auto is_it = [&](const BestRow& b) { return b.holder == member.holder; };
      if (std::any_of(best->begin(), best->begin() + taken, is_it)) return;
      if (!InAll(stretches.first(level), member.holder)) return;
      best->push_back({member.row, member.group, member.holder, stretch.end});
    };
    if (stretch.set->size <= kSmallSet) {
      ForMembers(holders, rows, *stretch.set, consider);
      std::sort(best->begin() + taken, best->end(),
                [](const BestRow& a, const BestRow& b) { return a.group < b.group; });
      if (best->size() > count) best->resize(count);
      continue;
    }
    const LargeSet& large = Remember(holders, rows, stretch);
    for (const Member& member : large.first) {
      if (best->size() == count) break;
      consider(member);
    }
    const bool all_seen = large.first.size() < kRememberedRows;
    if (best->size() < count && !all_seen) return false;
  }
  return true;
}

}  // namespace conductor
