// VictimSweep: which blocks to give up when the index is as large as it may be.
//
// The policy: a leaf first, of the largest holder. A leaf is a block that nothing hangs below; it
// goes whole, from everyone who has it, because a block that somebody still has frees nothing. So
// every holder that loses a block loses the end of a prompt, and no prompt gets a hole. From a leaf
// the sweep climbs, as long as what it leaves is a leaf and the largest holders have it: a prompt's
// blocks go from the deepest up, and the memory of its runs goes with them.
//
// The sweep goes round through all runs, then all entries, and remembers where it is. By and large
// it meets first what was stored longest ago; but no block has a mark for that, and one stored
// lately may be met soon. A slice is bounded. It only reads; the writer's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/index/prefix_index.h"

namespace conductor {

// One block as one of its holders has it.
struct Victim {
  StreamId stream = 0;
  ContextId context = 0;
  Tier tier = Tier::kDevice;
  BlockName name;
};

class VictimSweep {
 public:
  struct Found {
    std::size_t blocks = 0;  // whole ones; each is a victim once for every holder
    bool exhausted = false;  // two rounds found nothing
  };
  // Puts victims in the order in which they are to go: of at most `blocks_max` blocks, and no
  // further block once there are `victims_max`. They are taken from the index before the next call.
  // Less, or none, is no end: the slice was over.
  Found Next(const PrefixIndex& index, std::size_t blocks_max, std::size_t victims_max,
             std::vector<Victim>* victims);

 private:
  class Slice;

  std::uint32_t run_ = 0;  // a position of the run table
  EntryId entry_ = 0;      // not 0: among the entries
  EntryId resume_ = 0;     // not 0: where the last slice stopped on its way up
  // No leaf of the largest holders was found the whole way round: anyone's will do this time.
  bool of_anyone_ = false;
  bool found_ = false;  // in this round
};

}  // namespace conductor
