#include "src/index/plain_rows.h"

#include <algorithm>

namespace conductor {
namespace {

// Whether `from` has just the holder more by which it was made.
bool OnlyViaLeft(const HolderSet& from, const HolderSet& to) {
  return from.size == to.size + 1 && from.via_mix != 0 &&
         from.set_hash - from.via_mix == to.set_hash;
}

// Passes the holders of `from` that are not in `to` to `visit`. False: `to` has others than `from`.
template <typename Visit>
bool ForThoseWhoLeft(const HolderSet& from, const HolderSet& to, Visit&& visit) {
  // One holder less: no need to compare them.
  const HolderId left = to.via;
  if (from.size == to.size + 1 && left != 0 &&
      from.set_hash - HolderTable::MixHolder(left) == to.set_hash) {
    visit(left);
    return true;
  }
  const HolderId* a = from.holders.get();
  const HolderId* b = to.holders.get();
  const HolderId* const a_end = a + from.size;
  const HolderId* const b_end = b + to.size;
  for (; a != a_end; ++a) {
    if (b != b_end && *a == *b) {
      ++b;
    } else {
      visit(*a);
    }
  }
  return b == b_end;
}

}  // namespace

bool TakeAll(const HolderTable& holders, const RowView& rows, std::span<const Stretch> stretches,
             std::vector<PlainRow>* taken) {
  static const HolderSet nobody;
  taken->clear();
  if (!stretches.empty()) taken->reserve(stretches.front().set->size);
  for (std::size_t level = stretches.size(); level-- > 0;) {
    const Stretch& stretch = stretches[level];
    // Somebody lost everything meanwhile.
    if (stretch.set->has_retired.load(std::memory_order_acquire)) return false;
    const std::size_t first = taken->size();
    const auto take = [&](HolderId id) {
      PlainRow row;
      if (!FindPlainRow(holders, rows, id, &row)) return;
      row.tokens = stretch.end;
      taken->push_back(row);
    };
    const HolderSet& deeper = level + 1 < stretches.size() ? *stretches[level + 1].set : nobody;
    // As sets are mostly made.
    if (OnlyViaLeft(*stretch.set, deeper)) {
      const HolderSet& set = *stretch.set;
      if (rows.IsOf(set.via_row, set.via_stream)) {
        taken->push_back({set.via_row, set.via, stretch.end});
      }
      continue;
    }
    // Sets along a prompt nearly always shrink.
    if (!ForThoseWhoLeft(*stretch.set, deeper, take)) return false;
    if (taken->size() - first > 1) {
      std::sort(taken->begin() + static_cast<std::ptrdiff_t>(first), taken->end(),
                ByInstance{rows});
    }
  }
  return true;
}

}  // namespace conductor
