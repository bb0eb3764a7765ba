// Plain rows: the answers of a walk that met only plain sets: every set has engines' devices only,
// and every instance one rank, so that an instance's answer is the depth to which it is in all
// sets.
//
// Such a walk is kept as its list of sets; nothing is looked at row by row while it goes along.
// Here all rows are taken from that list; best_few.h takes the best few.
//
// Readers only, under an EpochGuard.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/index/context_table.h"
#include "src/index/holder_table.h"

namespace conductor {

// Consecutive positions with one set of holders.
struct Stretch {
  const HolderSet* set = nullptr;
  StateId state = 0;
  std::uint64_t end = 0;  // tokens behind it
};

struct PlainRow {
  std::uint32_t row = 0;
  HolderId holder = 0;
  std::uint64_t tokens = 0;
};

// By instance id, among rows of equally many tokens.
struct ByInstance {
  const RowView& rows;
  bool operator()(const PlainRow& a, const PlainRow& b) const {
    return rows.cards[a.row].group < rows.cards[b.row].group;
  }
};

// The row of a holder, if this reader's view of the rows has it.
inline bool FindPlainRow(const HolderTable& holders, const RowView& rows, HolderId id,
                         PlainRow* found) {
  const Holder& holder = holders.holder(id);
  if (!rows.IsOf(holder.row, holder.key.stream)) return false;
  *found = {holder.row, id, 0};
  return true;
}

// All rows that matched, longest first, equal ones by instance id. False: it takes a closer look.
bool TakeAll(const HolderTable& holders, const RowView& rows, std::span<const Stretch> stretches,
             std::vector<PlainRow>* taken);

}  // namespace conductor
