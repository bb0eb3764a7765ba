// PrefixIndex: who has which block, by content and by name. The writer's half.
//
// It holds the semantics of one block: classes, names, links, holders, copies, fragments, the
// digest's sums. What an event means for a stream is decided above (state/state_machine.h). How a
// prompt is matched is in walk.h; readers run beside the one writer without a lock.
//
// Exactness rules that every function keeps:
//  * An entry is live while a holder that is not retired has it. A dead one does not exist for the
//    writer's decisions, even where it still lies in memory: its name is free, its link forgotten.
//  * A child refers to its parent by name (the parent's entry, which outlives its holders).
//  * No two live entries of a context have one name in one scope, and no live name-only entry has
//    the projection of a live shared name: it *is* that block (joined).
//  * Links never form a cycle.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/index/chunked_array.h"
#include "src/index/context_table.h"
#include "src/index/entry.h"
#include "src/index/epoch.h"
#include "src/index/holder_table.h"
#include "src/index/segment_map.h"
#include "src/limits.h"
#include "src/types.h"

namespace conductor {

class PrefixIndex {
 public:
  enum class Outcome { kStored, kContradiction, kCycle, kFragmentLimit };
  struct StoreResult {
    Outcome outcome = Outcome::kStored;
    EntryId entry = 0;  // the block's entry when stored
  };
  // One block of a stored event that carries tokens.
  struct Arrival {
    ContextId context = 0;
    StreamId stream = 0;
    std::uint32_t row = 0;
    Tier tier = Tier::kDevice;
    EntryId parent = 0;  // from Root, ResolveParent, or the block before it
    const BlockName* name = nullptr;
    std::uint64_t fingerprint = 0;
    std::uint32_t length = 0;
    HashCheck check = HashCheck::kNotComputed;
    bool extra_keys_on_wire = false;
    // A block that differs without extra keys on the wire is name-only (else: unproven).
    bool differs_is_name_only = false;
  };

  PrefixIndex();
  ~PrefixIndex();

  ContextTable& contexts() { return contexts_; }
  const ContextTable& contexts() const { return contexts_; }

  // --- writer -----------------------------------------------------------------------------------
  EntryId Root(ContextId context, const std::optional<SaltDigest>& salt);
  EntryId ResolveParent(ContextId context, StreamId stream, const BlockName& name);
  // The block just stored as parent of the next one of its event: what its name resolves to.
  EntryId AsParent(StreamId stream, EntryId stored, const BlockName& name);
  // A parent that was resolved but not used in the end.
  void ReleaseIfUnused(EntryId id);

  StoreResult StoreBlock(const Arrival& arrival);
  StoreResult StoreName(ContextId context, StreamId stream, std::uint32_t row, Tier tier,
                        const BlockName& name);
  // One copy less for the stream's holder of that tier. False: it has no such block.
  bool RemoveCopy(ContextId context, StreamId stream, Tier tier, const BlockName& name);
  // All copies.
  bool Evict(ContextId context, StreamId stream, Tier tier, const BlockName& name);
  // Retires every current holder of the stream for which `which` is true.
  void RetireHolders(StreamId stream, const std::function<bool(const HolderKey&)>& which);

  void SetFullDigest(EntryId entry, const Digest& digest);

  // Physical cleanup of retired holders; at most about `budget` entries. False: nothing left.
  // Changes neither answers nor digests.
  bool CleanupSlice(std::size_t budget);
  void Reclaim() { retired_.Reclaim(); }

  // The streams that lost a block's place (joins that contradicted, orphans of a cycle) since the
  // last call, one entry for each loss.
  std::vector<StreamId> TakeRejected() { return std::exchange(rejected_, {}); }

  // Sum over current holders, keyed by their facts; `stream_mix` identifies a stream by facts.
  Sum128 HoldersDigest(const std::function<Sum128(StreamId)>& stream_mix) const;
  bool HoldsAnything(StreamId stream) const;
  std::uint64_t BlocksOf(StreamId stream, Tier tier) const;

  std::uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  std::uint64_t fragments() const { return fragments_.load(std::memory_order_relaxed); }
  std::size_t entries_in_memory() const { return entry_count_.load(std::memory_order_relaxed); }
  std::size_t bytes() const;

  // --- readers, under an EpochGuard ---------------------------------------------------------------
  const Entry& entry(EntryId id) const { return entries_[id]; }
  // Ids handed out so far are below this; those in use are in_use (owner thread only).
  EntryId end_entry_id() const { return entries_.end_id(); }
  const HolderTable& holders() const { return holders_; }
  EntryId FindRoot(ContextId context, const std::optional<SaltDigest>& salt) const;
  EntryId FindName(ContextId context, Scope scope, const BlockName& name) const;
  // Content-class children of `parent` with this fingerprint and length are passed to `visit`.
  template <typename Visit>
  void ForContent(EntryId parent, std::uint64_t fingerprint, std::uint32_t length,
                  Visit&& visit) const;
  // Publishers' own names with this projection.
  template <typename Visit>
  void ForProjected(ContextId context, std::uint64_t projected, Visit&& visit) const;
  bool IsLive(EntryId id) const {
    return holders_.IsLive(entries_[id].state.load(std::memory_order_acquire));
  }
  std::optional<Digest> FindDigest(ContextId context, Scope scope, const BlockName& name) const;

 private:
  static std::uint64_t NameHash(ContextId context, Scope scope, std::uint64_t projected) {
    return HashMix((std::uint64_t{context} << 32) | scope, projected);
  }
  static std::uint64_t ContentHash(EntryId parent, std::uint64_t fingerprint) {
    return HashMix(fingerprint, parent);
  }
  static std::uint64_t ProjectedHash(ContextId context, std::uint64_t projected) {
    return HashMix(projected, ~std::uint64_t{context});
  }

  // Entries and their chains (prefix_index.cc).
  EntryId NewEntry(ContextId context, Scope scope, const BlockName& name);
  EntryId FindOrAdd(ContextId context, Scope scope, const BlockName& name);
  void FreeEntry(EntryId id);
  void InsertContent(EntryId id);
  void RemoveContent(EntryId id);
  void AddChild(EntryId parent, EntryId child);
  void RemoveChild(EntryId parent, EntryId child);
  std::vector<EntryId> Children(EntryId id) const;
  void SetLink(EntryId id, EntryId parent, std::uint64_t fingerprint, std::uint32_t length,
               HashCheck check, bool extra_keys_on_wire, BlockClass block_class);
  void ClearLink(EntryId id);
  void SetClass(EntryId id, BlockClass block_class);
  bool SameParent(EntryId a, EntryId b, bool join) const;
  bool SameLink(EntryId id, EntryId parent, std::uint64_t fingerprint, std::uint32_t length,
                bool join) const;
  void Purge(EntryId id, bool keep = false);
  void RetireDigest(std::uint32_t digest);

  // Holders of an entry (index_holders.cc).
  Sum128 Mix(EntryId id, std::uint32_t copies) const;
  std::uint32_t Copies(EntryId id, HolderId holder) const;
  void AddHolder(EntryId id, HolderId holder, std::uint32_t copies);
  void DropHolder(EntryId id, HolderId holder);   // a live one: sums and counts
  void RejectHolder(EntryId id, HolderId holder); // the same, counted as rejected
  void LeaveHolder(EntryId id, HolderId holder);  // membership only
  void ForgetHolders(EntryId id, bool retired_only);
  void MoveState(EntryId id, StateId state);
  void AdjustSums(EntryId id, bool add);
  std::vector<HolderId> LiveHolders(EntryId id) const;
  void CountEntry(const HolderSet& set, bool fragment, std::int64_t sign);
  // The entry by which the stream's holder of `tier` has the block, and that holder.
  std::pair<EntryId, HolderId> FindHeld(ContextId context, StreamId stream, Tier tier,
                                        const BlockName& name) const;
  HolderId HolderFor(const Arrival& arrival, BlockClass block_class);

  // Classes, joins and cycles (index_attach.cc).
  BlockClass Derive(const Arrival& arrival) const;
  BlockClass DeriveChild(HashCheck check, bool extra_keys_on_wire, EntryId parent) const;
  bool Joinable(EntryId id) const;
  EntryId LiveShared(ContextId context, std::uint64_t projected) const;
  bool ClosesCycle(ContextId context, Scope scope, const BlockName& name, EntryId id,
                   EntryId parent, std::vector<EntryId>* path) const;
  bool DropCycle(ContextId context, Scope scope, const BlockName& name, EntryId id,
                 EntryId parent);
  void Settle(EntryId id);
  void JoinFragments(EntryId shared);
  void MoveFragment(EntryId fragment, EntryId shared);
  EntryId Promote(EntryId child, EntryId parent);
  void MoveToUnproven(EntryId id);

  RetireList retired_;
  ContextTable contexts_;
  HolderTable holders_;
  ChunkedArray<Entry, 14, 1 << 16> entries_;
  ChunkedArray<std::string, 10, 1 << 16> digest_names_;
  ChunkedArray<Digest, 10, 1 << 16> digests_;
  SegmentMap by_name_;
  SegmentMap by_content_;
  SegmentMap by_projected_;
  // (entry << 32 | holder) -> copies, only where there is more than one. Never iterated.
  std::unordered_map<std::uint64_t, std::uint32_t> copies_;
  std::deque<StateId> cleanup_;
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> fragments_{0};
  std::atomic<std::size_t> entry_count_{0};
  EntryId pinned_ = 0;  // not freed although nothing refers to it for the moment
  std::vector<StreamId> rejected_;
};

template <typename Visit>
void PrefixIndex::ForContent(EntryId parent, std::uint64_t fingerprint, std::uint32_t length,
                             Visit&& visit) const {
  EntryId id = by_content_.Find(ContentHash(parent, fingerprint));
  while (id != 0) {
    const Entry& e = entries_[id];
    // Reading the parent again after the other two makes the link whole (Entry::parent).
    if (e.parent.load(std::memory_order_acquire) == parent &&
        e.fingerprint.load(std::memory_order_acquire) == fingerprint &&
        e.length.load(std::memory_order_acquire) == length &&
        e.parent.load(std::memory_order_acquire) == parent &&
        IsContent(e.block_class.load(std::memory_order_acquire))) {
      visit(id);
    }
    id = e.next_content.load(std::memory_order_acquire);
  }
}

template <typename Visit>
void PrefixIndex::ForProjected(ContextId context, std::uint64_t projected, Visit&& visit) const {
  EntryId id = by_projected_.Find(ProjectedHash(context, projected));
  while (id != 0) {
    const Entry& e = entries_[id];
    if (e.projected == projected && e.context == context) visit(id);
    id = e.next_projected.load(std::memory_order_acquire);
  }
}

}  // namespace conductor
