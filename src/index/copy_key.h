// Of what a holder has several copies: the key of the index's table of copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/index/entry.h"
#include "src/index/mix.h"

namespace conductor {

struct CopyKey {
  std::uint64_t name;  // a shared name, which is one in its holder's context; else 0
  EntryId entry;       // of other names
  HolderId holder;
  bool operator==(const CopyKey&) const = default;
};
struct CopyKeyHash {
  std::size_t operator()(const CopyKey& key) const {
    return HashMix(key.name ^ key.entry, key.holder);
  }
};

}  // namespace conductor
