// NameRef: a BlockName, borrowed; and when two spellings are one name.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/types.h"

namespace conductor {

struct NameRef {
  std::uint64_t projected = 0;
  std::string_view digest;
  NameRef(const BlockName& name) : projected(name.projected), digest(name.digest) {}
  NameRef(std::uint64_t p, std::string_view d) : projected(p), digest(d) {}
};

// Two names of one publisher: an integer and a digest are one name when the projections agree.
inline bool SameSpelling(std::string_view a, std::string_view b) {
  return a == b || a.empty() || b.empty();
}
inline bool SameName(NameRef a, NameRef b) {
  return a.projected == b.projected && SameSpelling(a.digest, b.digest);
}

}  // namespace conductor
