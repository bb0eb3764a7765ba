// Entry: one named block of one context, and the link that places it below its parent.
//
// Most blocks are shared ones of full length and lie in runs (run_table.h). Everything else is an
// entry: roots, placeholders, fragments, names that only pools have, publishers' own names, short
// last pages. Both are named by an EntryId. Entries are found three ways: by name (context, scope,
// name), by content (parent's name, fingerprint) and, for publishers' own names, by the 64-bit
// projection of the name. A child refers to the entry of its parent's *name*: it stays as a
// placeholder while nobody holds the parent, and the child is reachable again when that name is
// stored again.
//
// One writer. Fields that readers look at are atomics; those that never change while an entry is
// reachable are plain. Everything else belongs to the writer.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/fact.h"
#include "src/types.h"

namespace conductor {

using EntryId = std::uint32_t;    // 0: none; kInRun set: a block in a run
using StateId = std::uint32_t;    // 0: nobody
using HolderId = std::uint32_t;   // 0: none
using ContextId = std::uint32_t;  // 0: none

// Where a name is valid: 0 for names shared by all publishers of the context (verified and linked
// blocks), kRootScope for the roots (the name is the salt's digest), else the stream's id.
using Scope = std::uint32_t;
inline constexpr Scope kSharedScope = 0;
inline constexpr Scope kRootScope = 0xffffffffu;

enum class BlockClass : std::uint8_t {
  kNone = 0,        // a placeholder or a root
  kShared = 1,      // verified or linked: name and content are tied
  kOwnContent = 2,  // by content under the publisher's own name
  kUnproven = 3,    // the same, held by ids that the first verified block retires
  kNameOnly = 4,    // by name only
  kOrphan = 5,      // by name only until its parent arrives
};

inline bool IsContent(BlockClass c) {
  return c == BlockClass::kShared || c == BlockClass::kOwnContent || c == BlockClass::kUnproven;
}
inline bool IsFragment(BlockClass c) {
  return c == BlockClass::kNameOnly || c == BlockClass::kOrphan;
}

// The class of a block whose hash was not computed, below a live parent of that class.
inline BlockClass ClassBelow(BlockClass parent, bool extra_keys_on_wire) {
  if (parent != BlockClass::kShared) return parent;
  return extra_keys_on_wire ? BlockClass::kShared : BlockClass::kNameOnly;
}

struct Entry {
  // Identity: constant while the entry is reachable by readers.
  std::uint64_t projected = 0;
  ContextId context = 0;
  Scope scope = kSharedScope;
  bool in_use = false;            // writer only
  std::uint32_t digest_name = 0;  // id of the whole digest (own scope, long names) or 0

  // The link. Invariant: parent != 0 exactly when the entry has a link. Written so that `parent` is
  // 0 while the other two change: a reader that sees the same parent twice read a whole link.
  std::atomic<EntryId> parent{0};
  std::atomic<std::uint32_t> length{0};
  std::atomic<std::uint64_t> fingerprint{0};
  HashCheck check = HashCheck::kNotComputed;
  bool extra_keys_on_wire = false;
  bool twin = false;  // counted in Context::twins; writer only
  std::atomic<BlockClass> block_class{BlockClass::kNone};

  // Who has it.
  std::atomic<StateId> state{0};

  // Chains behind the three maps; readers follow the `next` ones.
  std::atomic<EntryId> next_name{0};
  std::atomic<EntryId> next_content{0};
  std::atomic<EntryId> next_projected{0};
  EntryId prev_projected = 0;

  // The children by name, of any class.
  EntryId first_child = 0, next_sibling = 0, prev_sibling = 0;

  // Id of the full digest recomputed for this block, or 0. A cache: answers never depend on it.
  std::atomic<std::uint32_t> full_digest{0};
};

}  // namespace conductor
