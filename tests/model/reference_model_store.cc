// Storing blocks: class, rejection, joins, orphans, cycles.
#include <algorithm>
#include <utility>

#include "tests/model/reference_model.h"

namespace conductor::model {
namespace {

// What a `not_computed` block is below a live parent of that class.
BlockClass ClassBelow(BlockClass parent, bool extra_keys_on_wire) {
  if (parent != BlockClass::kShared) return parent;
  return extra_keys_on_wire ? BlockClass::kShared : BlockClass::kNameOnly;
}

// Whether a block stored again says the same as before.
bool SameLink(StreamId scope, const Link& a, const Link& b) {
  if (a.fingerprint != b.fingerprint || a.length != b.length) return false;
  if (a.parent.has_value() != b.parent.has_value()) return false;
  if (!a.parent) return a.salt == b.salt;
  return scope == 0 ? a.parent->projected == b.parent->projected : SameName(*a.parent, *b.parent);
}

// Whether a fragment may be the shared block of its name (C6).
bool MayJoin(const Link& fragment, const Link& shared) {
  if (fragment.fingerprint != shared.fingerprint || fragment.length != shared.length) return false;
  if (fragment.parent.has_value() != shared.parent.has_value()) return false;
  return !fragment.parent || fragment.parent->projected == shared.parent->projected;
}

void AddCopies(Entry& entry, const HolderKey& holder, std::uint32_t copies) {
  std::uint32_t& count = entry.copies[holder];
  count = std::min(kCopiesMax, count + copies);
}

// All of an unproven entry's copies are unproven (C3).
void MoveToUnproven(Entry& entry) {
  const auto before = std::exchange(entry.copies, {});
  for (const auto& [holder, copies] : before) {
    AddCopies(entry, {holder.stream, holder.tier, true}, copies);
  }
}

}  // namespace

std::optional<EntryKey> FindOwn(const Context& context, StreamId stream, const BlockName& name) {
  if (context.entries.contains({stream, name})) return EntryKey{stream, name};
  const EntryKey integer{stream, {name.projected, ""}};
  auto it = context.entries.lower_bound(integer);  // the integer spelling, then the digests
  if (it == context.entries.end() || it->first.scope != stream) return std::nullopt;
  if (!SameName(it->first.name, name)) return std::nullopt;
  return it->first;
}

std::optional<EntryKey> Resolve(const Context& context, StreamId scope, const BlockName& name) {
  if (scope != 0) {
    if (auto own = FindOwn(context, scope, name)) return own;
  }
  if (context.entries.contains(SharedKey(name))) return SharedKey(name);
  return std::nullopt;
}

bool ClosesCycle(const Context& context, const EntryKey& start, StreamId view,
                 std::vector<EntryKey>* path) {
  path->clear();
  std::set<EntryKey> seen;
  EntryKey current = start;
  StreamId scope = view;
  while (seen.insert(current).second) {
    const Entry& entry = context.entries.at(current);
    if (!entry.link || !entry.link->parent) return false;
    const auto parent = Resolve(context, scope, *entry.link->parent);
    if (!parent) return false;
    if (*parent == start) return true;
    path->push_back(*parent);
    current = *parent;
    scope = current.scope;
  }
  return false;
}

BlockClass ReferenceModel::Classify(const Context& context, const BlockToStore& block) const {
  const Stream& stream = streams_.at(block.stream);
  const Link& link = block.link;
  switch (link.check) {
    case HashCheck::kEqual:
      return BlockClass::kShared;
    case HashCheck::kDiffers:
      if (link.extra_keys_on_wire) return BlockClass::kOwn;
      if (stream.ever_verified || stream.unverified_blocks == UnverifiedBlocks::kNameOnly) {
        return BlockClass::kNameOnly;
      }
      return BlockClass::kOwnUnproven;
    case HashCheck::kNotComputed:
      break;
  }
  if (!link.parent) return ClassBelow(BlockClass::kShared, link.extra_keys_on_wire);
  const auto parent = Resolve(context, block.stream, *link.parent);
  if (!parent) return BlockClass::kOrphan;
  return ClassBelow(context.entries.at(*parent).block_class, link.extra_keys_on_wire);
}

ReferenceModel::StoreOutcome ReferenceModel::StoreBlock(Context& context,
                                                        const BlockToStore& block) {
  const Link& link = block.link;
  if (link.parent && SameName(*link.parent, block.name)) return StoreOutcome::kRejected;
  if (link.check == HashCheck::kEqual) FirstVerified(block.stream);

  const BlockClass block_class = Classify(context, block);
  EntryKey key = SharedKey(block.name);
  if (block_class != BlockClass::kShared) {
    if (auto own = FindOwn(context, block.stream, block.name)) {
      key = *own;
    } else if (!IsFragment(block_class) || !context.entries.contains(key)) {
      key = {block.stream, block.name};
    }
  }

  auto it = context.entries.find(key);
  if (it != context.entries.end() && it->second.link) {
    const bool joins = key.scope == 0 && block_class != BlockClass::kShared;
    const bool same =
        joins ? MayJoin(link, *it->second.link) : SameLink(key.scope, link, *it->second.link);
    if (!same) return StoreOutcome::kRejected;
  } else {
    const bool is_new = it == context.entries.end();
    Entry& entry = context.entries[key];
    const Entry before = entry;
    const auto undo = [&] {
      if (is_new) {
        context.entries.erase(key);
      } else {
        context.entries[key] = before;
      }
    };
    entry.link = link;
    entry.block_class = block_class;
    if (block_class == BlockClass::kOwnUnproven) MoveToUnproven(entry);
    std::vector<EntryKey> path;
    if (ClosesCycle(context, key, block.stream, &path) ||
        (key.scope == 0 && ClosesCycle(context, key, 0, &path))) {
      undo();
      for (const EntryKey& waiting : path) {
        if (context.entries.at(waiting).block_class == BlockClass::kOrphan) Lose(context, waiting);
      }
      return StoreOutcome::kRejected;
    }
    if (is_new && IsFragment(block_class) && FragmentCount() > fragments_max_) {
      undo();
      return StoreOutcome::kTooManyFragments;
    }
  }
  AddCopy(context.entries.at(key), block);
  Settle(context);
  return StoreOutcome::kStored;
}

ReferenceModel::StoreOutcome ReferenceModel::StoreName(Context& context,
                                                       const BlockToStore& block) {
  auto key = Resolve(context, block.stream, block.name);
  if (!key) {
    if (FragmentCount() >= fragments_max_) return StoreOutcome::kTooManyFragments;
    key = EntryKey{block.stream, block.name};
  }
  AddCopy(context.entries[*key], block);
  Settle(context);
  return StoreOutcome::kStored;
}

void ReferenceModel::AddCopy(Entry& entry, const BlockToStore& block) {
  const bool unproven = entry.block_class == BlockClass::kOwnUnproven;
  AddCopies(entry, {block.stream, block.tier, unproven}, 1);
}

// The first block of the life whose hash was right: what was content only for want of a proof is
// forgotten.
void ReferenceModel::FirstVerified(StreamId id) {
  Stream& stream = streams_.at(id);
  if (stream.ever_verified) return;
  stream.ever_verified = true;
  Retire(id, [](const HolderKey& holder) { return holder.unproven; });
}

// Until nothing changes: fragments of shared names join them, orphans of classed parents attach.
void ReferenceModel::Settle(Context& context) {
  while (SettleOne(context)) {
  }
}

bool ReferenceModel::SettleOne(Context& context) {
  const auto first_own = context.entries.lower_bound(EntryKey{1, {}});
  for (auto it = first_own; it != context.entries.end(); ++it) {
    const auto& [key, entry] = *it;
    if (!IsFragment(entry.block_class)) continue;
    if (!context.entries.contains(SharedKey(key.name))) continue;
    Join(context, EntryKey(key));
    return true;
  }
  for (auto it = first_own; it != context.entries.end(); ++it) {
    const auto& [key, entry] = *it;
    if (!IsFragment(entry.block_class)) continue;
    if (!entry.link || !entry.link->parent) continue;
    if (entry.link->check != HashCheck::kNotComputed) continue;
    if (entry.block_class == BlockClass::kNameOnly) {
      if (!entry.link->extra_keys_on_wire) continue;
      if (!context.entries.contains(SharedKey(*entry.link->parent))) continue;
      ChangeClass(context, EntryKey(key), BlockClass::kShared);
      return true;
    }
    const auto parent = Resolve(context, key.scope, *entry.link->parent);
    if (!parent) continue;
    const BlockClass derived =
        ClassBelow(context.entries.at(*parent).block_class, entry.link->extra_keys_on_wire);
    if (derived == BlockClass::kOrphan) continue;
    ChangeClass(context, EntryKey(key), derived);
    return true;
  }
  return false;
}

void ReferenceModel::Join(Context& context, const EntryKey& fragment) {
  const Entry& entry = context.entries.at(fragment);
  Entry& shared = context.entries.at(SharedKey(fragment.name));
  if (entry.link && shared.link && !MayJoin(*entry.link, *shared.link)) {
    Lose(context, fragment);
    return;
  }
  for (const auto& [holder, copies] : entry.copies) AddCopies(shared, holder, copies);
  context.entries.erase(EntryKey(fragment));
}

void ReferenceModel::ChangeClass(Context& context, const EntryKey& key, BlockClass block_class) {
  Entry entry = context.entries.at(key);
  entry.block_class = block_class;
  if (block_class == BlockClass::kOwnUnproven) MoveToUnproven(entry);
  if (block_class != BlockClass::kShared) {
    context.entries[key] = entry;
    return;
  }
  // Joins come first, so the shared name is free.
  context.entries.erase(key);
  context.entries[SharedKey(key.name)] = entry;
  std::vector<EntryKey> path;
  if (ClosesCycle(context, SharedKey(key.name), 0, &path)) Lose(context, SharedKey(key.name));
}

// Every holder of the entry loses it, each counted.
void ReferenceModel::Lose(Context& context, const EntryKey& key) {
  for (const auto& [holder, copies] : context.entries.at(key).copies) {
    CountRejected(holder.stream, 1);
  }
  context.entries.erase(EntryKey(key));
}

}  // namespace conductor::model
