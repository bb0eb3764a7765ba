// PrefixIndex: who has which block, by content and by name. The writer's half.
//
// It holds the semantics of one block: classes, names, links, holders, copies, fragments, the
// digest's sums. What an event means for a stream is decided above (state/state_machine.h). How a
// prompt is matched is in walk.h; readers run beside the one writer without a lock.
//
// Exactness rules that every function keeps:
//  * An entry is live while an engine's holder that is not retired has it. A dead one does not
//  exist
//    for the writer's decisions, even where it still lies in memory: its name is free, its link
//    forgotten.
//  * A child refers to its parent by name: to the entry of that name in the child's own scope, live
//    or not. What the name means is looked up at the moment of use: the publisher's own live block,
//    else the live shared one. Children of shared blocks refer to shared names only.
//  * A publisher may spell one of its own names as an integer or as a digest (SameSpelling).
//  * Pools have names, not blocks: an entry that only pools have is dead to all of this, has no
//  link
//    and no class. It stays in memory under the shared name, and queries may find it by that.
//  * No two live entries of a context have one name in one scope, and no live fragment has the
//    projection of a live shared name: it *is* that block (joined).
//  * No live name-only block that could be linked hangs below the name of a live shared one.
//  * Links never form a cycle.
//
// Where blocks are kept changes none of that. Shared blocks of full length are put in runs
// (run_table.h, index_runs.cc); all else are entries (entry.h). Rules of runs:
//  * A shared name has at most one place: one slot of a run, or one entry.
//  * A slot that nobody has is a hole: dead like a dead entry. Its name stays as long as something
//    hangs below it, and the same block may come back to it. A name that comes back as another
//    block takes the run apart into entries first (Loosen).
//  * Trailing holes are given up at once, and a run without slots with them.
//  * Growing and merging move blocks: ids change, names and answers do not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/fact.h"
#include "src/index/arrival.h"
#include "src/index/change_watch.h"
#include "src/index/chunked_array.h"
#include "src/index/context_table.h"
#include "src/index/copy_key.h"
#include "src/index/digest_table.h"
#include "src/index/entry.h"
#include "src/index/epoch.h"
#include "src/index/holder_table.h"
#include "src/index/name_ref.h"
#include "src/index/part_table.h"
#include "src/index/pool_table.h"
#include "src/index/run_table.h"
#include "src/index/segment_map.h"
#include "src/index/sharded_map.h"
#include "src/limits.h"
#include "src/types.h"

namespace conductor {

class PrefixIndex {
 public:
  using Arrival = BlockArrival;

  PrefixIndex();
  ~PrefixIndex();

  ContextTable& contexts() { return contexts_; }
  const ContextTable& contexts() const { return contexts_; }
  PoolTable& pools() { return pools_; }

  // --- writer -----------------------------------------------------------------------------------
  // The block just stored as parent of the next one of its event: what its name means.
  EntryId AsParent(StreamId stream, EntryId stored, const BlockName& name) const;

  StoreResult StoreBlock(const Arrival& arrival);
  // As many of the next blocks of an event as are plainly verified ones, in bulk: returns how many
  // were stored, and moves `parent` and `above` of the arrival behind them. The rest goes block by
  // block. `name`, `fingerprint` and `check` of the arrival are not read.
  std::size_t StoreVerified(Arrival& arrival, std::span<const StoredBlock> blocks);
  StoreResult StoreName(ContextId context, StreamId stream, std::uint32_t row, Tier tier,
                        const BlockName& name);
  // One copy less for the stream's holder of that tier. False: it has no such block.
  bool RemoveCopy(ContextId context, StreamId stream, Tier tier, const BlockName& name);
  // The same for all names of an event; returns how many the stream had.
  std::size_t RemoveCopies(ContextId context, StreamId stream, Tier tier,
                           std::span<const BlockName> names);
  // All copies.
  bool Evict(ContextId context, StreamId stream, Tier tier, const BlockName& name);
  StoreOutcome StorePart(const PoolArrival& object);
  // False: the pool has no such part.
  bool RemovePart(const PoolArrival& object);
  // All parts of the name in every pool of the stream.
  bool EvictParts(const PoolArrival& object);
  // Retires every current holder of the stream for which `which` is true.
  void RetireHolders(StreamId stream, const std::function<bool(const HolderKey&)>& which);
  // The same in two steps: between them the old generations still have their blocks, so that what
  // is stored for the new ones finds the places those have. Nothing else happens in between.
  std::vector<HolderId> DetachHolders(StreamId stream,
                                      const std::function<bool(const HolderKey&)>& which);
  void RetireDetached(const std::vector<HolderId>& holders);

  // Asks the processor for where a shared name is looked up.
  void PrefetchName(ContextId context, const BlockName& name) const;
  void SetFullDigest(EntryId entry, const Digest& digest);

  // Physical cleanup of retired holders, and merging of runs; at most about `budget` blocks. False:
  // nothing left. Changes neither answers nor digests.
  bool CleanupSlice(std::size_t budget);
  void Reclaim() { retired_.Reclaim(); }
  // At most one at a time; nullptr: none.
  void SetWatch(ChangeWatch* watch) {
    watch_ = watch;
    parts_.SetWatch(watch);
  }

  // The streams that lost a block's place (joins that contradicted, orphans of a cycle) since the
  // last call, one entry for each loss.
  std::vector<StreamId> TakeRejected() { return std::exchange(rejected_, {}); }
  // Contexts that lost their last block since the last call, maybe for a moment only.
  std::vector<ContextId> TakeEmptied() { return std::exchange(emptied_, {}); }

  // Sum over current holders, keyed by their facts; `stream_mix` identifies a stream by facts.
  Sum128 HoldersDigest(const std::function<Sum128(StreamId)>& stream_mix) const;
  // What of a holder goes into that, without what its stream adds; `names` is mixed with it.
  struct HolderNames {
    Sum128 context = 0, pool = 0;
  };
  HolderNames NamesOfHolder(const HolderKey& key) const;
  static Sum128 HolderMix(const HolderKey& key, const HolderNames& names, Sum128 sum,
                          Sum128 stream_mix);
  bool HoldsAnything(StreamId stream) const;
  std::uint64_t BlocksOf(StreamId stream, Tier tier) const;

  std::uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  std::uint64_t fragments() const { return fragments_.load(std::memory_order_relaxed); }
  // Entries and slots of runs, whoever has them.
  std::size_t entries_in_memory() const;
  std::size_t bytes() const;

  // --- readers, under an EpochGuard --------------------------------------------------------------
  // For tests: what breaks an invariant, in words; empty when nothing does. Owner thread only.
  std::string Inconsistency() const;
  // Every id in use, roots and holes included. Owner thread only.
  void ForEachId(const std::function<void(EntryId)>& visit) const;
  ContextId ContextOf(EntryId id) const;
  Scope ScopeOf(EntryId id) const { return IsInRun(id) ? kSharedScope : entries_[id].scope; }
  std::uint64_t ProjectedOf(EntryId id) const;
  StateId StateOf(EntryId id) const;
  BlockClass ClassOf(EntryId id) const;
  std::uint32_t LengthOf(EntryId id) const;  // in tokens; 0: known by name only
  const RunTable& runs() const { return runs_; }
  const HolderTable& holders() const { return holders_; }
  EntryId FindRoot(ContextId context, const std::optional<SaltDigest>& salt) const;
  // The entry of exactly this name and spelling, live or not.
  EntryId FindName(ContextId context, Scope scope, NameRef name) const;
  // Content-class blocks below `above`, with this fingerprint and length, are passed to `visit`
  // with their state, maybe more than once: those whose parent's name names it.
  template <typename Visit>
  void ForContent(EntryId above, std::uint64_t fingerprint, std::uint32_t length,
                  Visit&& visit) const;
  // The same below a shared name, whether it has an entry or not.
  template <typename Visit>
  void ForContentBelowName(ContextId context, std::uint64_t shared_name, std::uint64_t fingerprint,
                           std::uint32_t length, Visit&& visit) const;
  // The block of a run below a block or a root, by content; 0: none.
  EntryId FindRunBelow(EntryId above, std::uint64_t fingerprint) const;
  // A run that hangs below the block `above` of a run, whose name is given. A miss is not final:
  // FindRunBelow looks again.
  EntryId FindRunAside(ContextId context, EntryId above, std::uint64_t name,
                       std::uint64_t fingerprint) const;
  // The same below the last slot of a run.
  EntryId FindNextRun(const RunTable::View& run, std::uint64_t fingerprint) const;
  // Where the block of slot `id`, whose run has moved, is now; 0: nowhere.
  EntryId FindMoved(EntryId id) const { return FindSlot(ContextOf(id), runs_.NameOf(id)); }
  // Publishers' own names with this projection.
  template <typename Visit>
  void ForProjected(ContextId context, std::uint64_t projected, Visit&& visit) const;
  bool IsLive(EntryId id) const { return holders_.IsLive(StateOf(id)); }
  bool IsHeld(EntryId id) const { return holders_.IsHeld(StateOf(id)); }
  std::optional<Digest> FindDigest(ContextId context, Scope scope, const BlockName& name) const;
  const Digest& DigestAt(DigestId digest) const { return digests_.At(digest); }
  // A run's, and the slot it belongs to; 0: none.
  static DigestId DigestIdOf(const RunTable::View& run, std::uint32_t* slot);

 private:
  friend class VictimSweep;  // victims.h: a reader of the writer's thread
  friend class ImageCut;     // state/image_cut.h: the same
  friend class ImageLoader;  // state/image_loader.h: fills an index that nobody reads yet

  // Before anything of a run or an entry changes that an image must still see.
  void Touch(EntryId id) const {
    if (watch_ != nullptr) [[unlikely]] {
      watch_->BeforeBlock(id);
    }
  }
  RunTable::View NewRun(std::uint32_t slots) {
    const RunTable::View run = runs_.Allocate(slots);
    if (watch_ != nullptr) watch_->OnNewBlock(run.base);
    return run;
  }

  static std::uint64_t NameHash(ContextId context, Scope scope, std::uint64_t projected);
  // By the parent's name, not its entry: one look-up finds the children of every scope.
  static std::uint64_t ContentHash(ContextId context, std::uint64_t parent_name,
                                   std::uint64_t fingerprint);
  static std::uint64_t ProjectedHash(ContextId context, std::uint64_t projected);

  // A name as the children's parent: an entry (0: none yet) of a scope.
  struct Above {
    EntryId entry;
    ContextId context;
    Scope scope;
    NameRef name;
  };
  template <typename Visit>
  void ForContentBelow(const Above& above, std::uint64_t fingerprint, std::uint32_t length,
                       Visit&& visit) const;
  bool IsBelow(EntryId parent, const Above& above) const;
  bool HasLink(EntryId id) const;
  // What a live block hangs below.
  EntryId ParentOf(EntryId id) const;
  bool HasOwnNames(ContextId context) const { return contexts_.context(context).own_names > 0; }

  // Entries and their chains (prefix_index.cc).
  NameRef NameOf(EntryId id) const;
  // Entries of the scope that spell this name, live or not.
  template <typename Visit>
  void ForSpellings(ContextId context, Scope scope, NameRef name, Visit&& visit) const;
  // The live entry of this name. `assumed` counts as live. Of several digests that an integer may
  // mean it is the smallest.
  EntryId FindLive(ContextId context, Scope scope, NameRef name, EntryId assumed = 0) const;
  EntryId LiveShared(ContextId context, std::uint64_t projected) const;
  // What a name of the scope means: the own live block, else the live shared one, else 0.
  EntryId Resolve(ContextId context, Scope scope, NameRef name, EntryId assumed = 0) const;
  EntryId Root(ContextId context, const std::optional<SaltDigest>& salt);
  EntryId NewEntry(ContextId context, Scope scope, NameRef name);
  EntryId FindOrAdd(ContextId context, Scope scope, NameRef name);
  void FreeEntry(EntryId id);
  void ReleaseIfUnused(EntryId id);
  std::uint64_t ContentHashOf(EntryId id) const;
  EntryId& FirstChild(EntryId parent);
  // Of a child: an entry, or a run by its first slot.
  EntryId& NextSibling(EntryId child);
  EntryId& PrevSibling(EntryId child);
  void SetParent(EntryId child, EntryId parent);
  void InsertContent(EntryId id);
  void RemoveContent(EntryId id);
  void AddChild(EntryId parent, EntryId child);
  void RemoveChild(EntryId parent, EntryId child);
  struct LinkFacts {
    std::uint64_t fingerprint = 0;
    std::uint32_t length = 0;
    HashCheck check = HashCheck::kNotComputed;
    bool extra_keys_on_wire = false;
  };
  LinkFacts FactsOf(EntryId id) const;
  void SetLink(EntryId id, EntryId parent, const LinkFacts& facts, BlockClass block_class);
  void ClearLink(EntryId id);
  void SetClass(EntryId id, BlockClass block_class);
  void Purge(EntryId id);            // no engine has it: what is left of the block goes
  void PurgeAndRelease(EntryId id);  // and the entry, unless it is a parent or a pool's name
  void CountTwin(EntryId id, bool twin);

  // Full digests (index_digests.cc).
  DigestId DigestIdOf(EntryId id) const;
  void SetRunDigest(const RunTable::View& run, DigestId id, std::uint32_t slot);
  void AddRunDigest(const RunTable::View& run, std::uint32_t slot, const Digest& digest);
  void MoveRunDigest(const RunTable::View& from, std::uint32_t first, std::uint32_t count,
                     const RunTable::View& to, std::uint32_t begin);

  // Runs (index_runs.cc).
  using RunView = RunTable::View;
  EntryId FindSlot(ContextId context, std::uint64_t name) const;
  EntryId FindRunBelow(const Above& above, std::uint64_t fingerprint) const;
  bool HasTwinRun(EntryId above, ContextId context, std::uint64_t fingerprint) const;
  void MarkTwinEntry(EntryId above, ContextId context, std::uint64_t fingerprint);
  static std::uint8_t RunFacts(HashCheck check, bool extra_keys_on_wire) {
    return static_cast<std::uint8_t>((static_cast<unsigned>(check) << 1) |
                                     (extra_keys_on_wire ? 1u : 0u));
  }
  static HashCheck CheckOf(std::uint8_t facts) { return static_cast<HashCheck>(facts >> 1); }
  std::size_t AppendToRun(ContextId context, EntryId above, std::span<const StoredBlock> blocks,
                          std::uint8_t facts, StateId state, EntryId* last);
  EntryId PlaceShared(EntryId id, const Arrival& arrival, EntryId resolved);
  EntryId HoleBetween(EntryId from, EntryId top) const;
  EntryId Adopt(EntryId entry, EntryId above, const Arrival& arrival);
  bool IsPlaceOf(EntryId slot, EntryId above, std::uint64_t fingerprint) const;
  EntryId Loosen(EntryId slot);
  RunView MoveRun(const RunView& run, std::uint32_t slots);
  void MoveSlots(const RunView& from, std::uint32_t first, std::uint32_t count, const RunView& to);
  bool MayMove(const RunView& run) const;
  EntryId Trim(const RunView& run);
  void NoteMerge(EntryId parent);
  bool Merge(EntryId base);
  void SetStates(const RunView& run, std::uint32_t slot, std::uint32_t count, StateId target);
  std::size_t StoreAgain(const Arrival& arrival, std::span<const StoredBlock> blocks, EntryId id,
                         EntryId above);
  void AddBlocks(HolderId holder, const RunView& run, std::uint32_t slot, std::uint32_t count);
  // Whether a shared name has a place, held or not. Writer only.
  bool HasSharedName(ContextId context, std::uint64_t name) const;
  bool HasSharedEntry(ContextId context, std::uint64_t name) const;  // not in a run
  std::int64_t CleanRun(const RunView& run);
  std::int64_t SweepStep();
  void ShrinkTables();

  // Holders of an entry (index_holders.cc).
  struct MixFacts;
  MixFacts FactsForMix(EntryId id) const;
  Sum128 Mix(EntryId id, std::uint32_t copies) const;
  Sum128 MixRange(const RunTable::View& run, std::uint32_t slot, std::uint32_t count) const;
  CopyKey CopyKeyOf(EntryId id, HolderId holder) const;
  std::uint32_t Copies(EntryId id, HolderId holder) const;
  void SetCopies(EntryId id, HolderId holder, std::uint32_t copies);  // 1 or less: nothing to keep
  void AddHolder(EntryId id, HolderId holder, std::uint32_t copies);
  void DropHolder(EntryId id, HolderId holder);    // a live one: sums and counts
  void RejectHolder(EntryId id, HolderId holder);  // the same, counted as rejected
  void LeaveHolder(EntryId id, HolderId holder);   // membership only
  void ForgetHolders(EntryId id);                  // the retired ones
  void MoveState(EntryId id, StateId state);
  void AdjustSums(EntryId id, bool add);
  struct SetCounts {
    std::uint64_t blocks = 0, fragments = 0;
  };
  static SetCounts CountsOf(const HolderSet& set);
  void Recount(ContextId context, const SetCounts& before, const SetCounts& after);
  std::vector<HolderId> LiveHolders(EntryId id) const;
  bool HasAnything(HolderId id) const;
  void CountEntries(HolderSet& set, bool fragment, std::int64_t count);
  void LoseMembership(HolderId holder);
  // Storing (index_store.cc).
  BlockClass Derive(const Arrival& arrival, EntryId resolved) const;
  bool SaysTheSame(EntryId id, const Arrival& arrival, BlockClass block_class) const;
  EntryId ParentFor(const Arrival& arrival, Scope scope);
  // The entry by which the stream's holder of `tier` has the block, and that holder.
  std::pair<EntryId, HolderId> FindHeld(ContextId context, StreamId stream, Tier tier,
                                        const BlockName& name) const;
  std::pair<EntryId, HolderId> FindHeldBy(const HolderId (&current)[2], ContextId context,
                                          StreamId stream, const BlockName& name) const;
  void LoseCopy(EntryId id, HolderId holder);
  // Names whose places are asked for ahead of the look-ups.
  static constexpr std::size_t kPrefetchNames = 16;
  HolderId HolderFor(const Arrival& arrival, EntryId id);

  // Pools (index_pools.cc).
  HolderId PoolHolder(const PoolArrival& object);
  void LosePart(HolderId holder, const PoolArrival& object, const PartTable::Change& change);
  void MixParts(HolderId holder, const PoolArrival& object, const PartTable::Change& change);

  // Joins, orphans and cycles (index_attach.cc).
  struct Waiting;
  class WaitingSet;
  void NoteWaiting(EntryId id, WaitingSet* waiting) const;
  // Whether something hangs below it, alive or not.
  bool HasChildren(EntryId id) const;
  bool IsParentOfAny(EntryId id) const;
  bool ClosesCycle(EntryId start, Scope view, NameRef parent, std::vector<EntryId>* path) const;
  bool DropCycle(EntryId start, const Arrival& arrival);
  void Settle(EntryId start);
  void Join(EntryId fragment, EntryId shared);
  EntryId Attach(EntryId child);
  EntryId Promote(EntryId child, EntryId parent);
  void MoveHolders(EntryId from, EntryId to);
  void RejectAll(EntryId id);
  void MoveToUnproven(EntryId id);

  RetireList retired_;
  ContextTable contexts_;
  HolderTable holders_;
  PoolTable pools_;
  PartTable parts_;
  ChunkedArray<Entry, 14, 1 << 16> entries_;
  ChunkedArray<WholeDigest, 10, 1 << 16> digest_names_;
  DigestTable digests_;
  RunTable runs_;
  SegmentMap by_name_;
  SegmentMap by_content_;
  SegmentMap by_projected_;
  SegmentMap slots_by_name_;  // flat: slots of runs, by shared name
  SegmentMap runs_by_link_;   // flat: first slots of runs, by content
  // Only where there is more than one copy.
  ShardedMap<CopyKey, std::uint32_t, CopyKeyHash> copies_;
  ChangeWatch* watch_ = nullptr;
  // Retired holders that some block still names. While there are any, the sweep goes round.
  std::uint64_t unclean_ = 0;
  std::uint32_t sweep_run_ = 0;              // a position of runs_
  EntryId sweep_entry_ = 0;                  // not 0: the sweep is among the entries
  std::deque<EntryId> merges_;               // blocks at the end of their runs; at most kMergesMax
  std::atomic<std::uint64_t> blocks_{0};     // sum of the contexts'; nothing else changes it
  std::atomic<std::uint64_t> fragments_{0};  // the same
  std::atomic<std::size_t> entry_count_{0}, slot_count_{0};  // entries in use; slots below sizes
  std::vector<StreamId> rejected_;
  std::vector<ContextId> emptied_;
};

}  // namespace conductor

#include "src/index/prefix_index_reads.h"
