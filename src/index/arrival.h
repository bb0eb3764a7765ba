// What comes to be stored in the index, and what became of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/index/entry.h"
#include "src/index/part_table.h"
#include "src/index/pool_table.h"
#include "src/types.h"

namespace conductor {

enum class StoreOutcome { kStored, kContradiction, kCycle, kFragmentLimit };

struct StoreResult {
  StoreOutcome outcome = StoreOutcome::kStored;
  EntryId entry = 0;  // the block's entry when stored
};

// One block of a stored event that carries tokens.
struct BlockArrival {
  ContextId context = 0;
  StreamId stream = 0;
  std::uint32_t row = 0;
  Tier tier = Tier::kDevice;
  const BlockName* name = nullptr;
  const BlockName* parent = nullptr;  // none: the root that `salt` selects
  std::optional<SaltDigest> salt;
  EntryId above = 0;  // what the parent's name means (AsParent); 0 or gone: it is looked up
  std::uint64_t fingerprint = 0;
  std::uint32_t length = 0;
  HashCheck check = HashCheck::kNotComputed;
  bool extra_keys_on_wire = false;
  // A block that differs without extra keys on the wire is name-only (else: unproven).
  bool differs_is_name_only = false;
};

// One object of a pool: a part of a block, which belongs to a name and to no place.
struct PoolArrival {
  ContextId context = 0;
  StreamId stream = 0;
  PoolId pool = 0;
  Tier tier = Tier::kCpuShare;
  std::uint64_t name = 0;
  PartTable::Part part;
  std::size_t parts_needed = 1;  // slots that make the block present
};

}  // namespace conductor
