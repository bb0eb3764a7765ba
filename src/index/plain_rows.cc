#include "src/index/plain_rows.h"

#include <algorithm>

namespace conductor {
namespace {

// Passes the holders of `from` that are not in `to` to `visit`. False: `to` has others than `from`.
template <typename Visit>
bool ForThoseWhoLeft(const HolderSet& from, const HolderSet& to, Visit&& visit) {
  // One holder less, as sets are mostly made: no need to compare them.
  if (from.size == to.size + 1) {
    for (const HolderId id : {from.via, to.via}) {
      if (id == 0 || from.set_hash - HolderTable::MixHolder(id) != to.set_hash) continue;
      visit(id);
      return true;
    }
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
    static const HolderSet nobody;
    const HolderSet& deeper = level + 1 < stretches.size() ? *stretches[level + 1].set : nobody;
    // Sets along a prompt nearly always shrink.
    if (!ForThoseWhoLeft(*stretch.set, deeper, take)) return false;
    if (taken->size() - first > 1) {
      std::sort(taken->begin() + static_cast<std::ptrdiff_t>(first), taken->end(), ByInstance);
    }
  }
  return true;
}

}  // namespace conductor
