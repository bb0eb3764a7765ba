// ChangeWatch: who must see a piece of the index before it changes. An image of one log position
// is taken while the writer goes on (state/image_cut.h): what it has not saved yet it saves here.
//
// Called by the writer, on its thread. A piece that is born is not part of the image.
#pragma once

#include <cstdint>

#include "src/index/entry.h"

namespace conductor {

class ChangeWatch {
 public:
  virtual ~ChangeWatch() = default;
  // A run (any of its slots) or an entry: who has it, its class, its link or its place.
  virtual void BeforeBlock(EntryId id) = 0;
  virtual void OnNewBlock(EntryId id) = 0;
  // Shards of the copies, and of the names a pool's holder has parts of.
  virtual void BeforeCopies(std::uint32_t shard) = 0;
  virtual void BeforeParts(const void* names, std::uint32_t shard) = 0;
};

}  // namespace conductor
