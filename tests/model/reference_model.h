// The reference model: the domain's state machine in the simplest code that can be right.
//
// std::map and loops, no index, no cleverness, no performance. The real state is compared with it
// over random operations (random_ops.h); it shares nothing with the real one but the vocabulary of
// src/fact.h. It hashes nothing: prompts come with their fingerprints and exact chain names.
// One thread. An entry exists exactly while a live holder has a copy of it; retired holders are
// removed from every entry at once, so that no generation number is needed.
//
// Where the specification leaves room, this is what the model does:
//  C1  A name given as an integer and digest names of the same stream are one name when the
//      projections agree. Among several such digests an integer means the smallest one.
//  C2  An entry's class is decided when it learns its link; storing it again only adds copies. It
//      changes later only by the transitions of Settle(). It does not fall back when its parent
//      dies.
//  C3  Unproven is a class of the entry too: "same class as the parent" copies it, and all copies
//      of an unproven entry are the unproven holder's, also those it had before: the first equal
//      block retires that holder and so forgets the entry.
//  C4  The first equal block counts when it is reached and does not name itself as parent, even if
//      it is then rejected. Unproven holders are retired before its parent is looked up.
//  C5  An arriving name-only or orphan block is the live own entry of that name, else the live
//      shared one (contradiction: rejected with the rest of its event), else a new fragment.
//  C6  Joining compares fingerprint, length and parent projection; a root is a root whatever its
//      salt (a publisher that hides its extra keys hides the salt too). Storing the same class of
//      block again compares the salt digest as well.
//  C7  Settling goes in (stream, name) order: all joins, then one attachment, then joins again.
//      Of two contradicting fragments of one shared-to-be name the first in that order wins.
//  C8  A name-only `not_computed` block with extra keys on the wire becomes shared when a shared
//      block of its parent's name arrives, whatever else that name means to its own stream. (So
//      that no removal can ever make a class due.)
//  C9  Cycles: the walk starts in the view of the storing stream (own first, then shared); for a
//      shared block it is repeated among shared names only. An orphan whose attachment would close
//      a cycle among shared blocks is dropped.
//  C10 Whatever loses its copies by a join or a cycle counts one rejected block per holder.
//  C11 Fragments are name-only and orphan entries, and pool names without a live shared block. The
//      limit is looked at only when an arriving block makes a new fragment (after its cycle check).
//      The counter fragments_rejected counts the block and the rest of its event; rejected_blocks
//      does not.
//  C12 A stream has stored into a context when a block of it stood there; a context that ceases to
//      exist takes that with it. Contexts are collected after each fact.
//  C13 A removal by an integer takes from the integer's entry, else from the first digest's that
//      the holder has. An eviction of a pool stream empties its pool holders of that tier and name.
//  C14 Contexts contain pool names: they keep a context alive and count in PrefixCount when no
//      live shared block has that name. A pool's registration keeps none alive. A name is there
//      while a holder has as many parts of it as its registration asks for. Removing an unknown
//      part counts as unknown.
//  C15 Where the exact chain matches, its name is an element of the walk like a shared name:
//      children that name it follow it by content. The chain starts, in a context with fragments,
//      at the first position without a shared block, and ends at the first without such a name.
//  C16 A content child follows every element that its parent's name names: its own stream's entry
//      and the shared one, when both were reached.
//  C17 By-hash lengths: the shared entry's, else the smallest length of the own entries that know
//      one, else the context's block size.
//  C18 Lost ranges beyond the limit: the two oldest become one. A Frame adds up its `ignored`.
//  C19 Counters live as long as the stream; the model's totals live for ever. Facts of unknown
//      streams and PublisherSnapshot do nothing. Registering a key that is in use unregisters it.
//  C20 Rows of a query: engine streams that are registered for the context or have stored into it,
//      also when they hit nothing.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/fact.h"
#include "src/limits.h"
#include "src/query.h"
#include "src/registration.h"
#include "src/types.h"

namespace conductor::model {

enum class BlockClass { kShared, kOwn, kOwnUnproven, kNameOnly, kOrphan };

// A copy's owner. A retired generation leaves no trace, so it needs no number.
struct HolderKey {
  StreamId stream = 0;
  Tier tier = Tier::kDevice;
  bool unproven = false;
  auto operator<=>(const HolderKey&) const = default;
};

struct PoolHolderKey {
  StreamId stream = 0;
  std::string backend_id, tenant_id;
  Tier tier = Tier::kCpuShare;
  auto operator<=>(const PoolHolderKey&) const = default;
};

struct PoolHold {
  std::set<std::string> parts;
  std::uint64_t needed = 1;
  bool Present() const { return parts.size() >= needed; }
};
using PoolHolders = std::map<PoolHolderKey, PoolHold>;

// Scope 0 is shared, its names are projections; any other scope is that stream's own.
struct EntryKey {
  StreamId scope = 0;
  BlockName name;
  auto operator<=>(const EntryKey&) const = default;
};

struct Link {
  std::optional<BlockName> parent;  // none: the root that `salt` selects
  std::optional<SaltDigest> salt;
  std::uint64_t fingerprint = 0;
  std::uint32_t length = 0;
  HashCheck check = HashCheck::kNotComputed;
  bool extra_keys_on_wire = false;
};

// Invariant: `copies` is not empty and holds no zero.
struct Entry {
  BlockClass block_class = BlockClass::kNameOnly;
  std::optional<Link> link;
  std::map<HolderKey, std::uint32_t> copies;
};

struct Context {
  HashProfile hash_profile;
  std::set<StreamId> stored_into;
  std::map<EntryKey, Entry> entries;
  // projected name -> who has parts of it
  std::map<std::uint64_t, PoolHolders> pool;
};

struct Counters {
  std::uint64_t remove_unknown = 0;
  std::uint64_t rejected_blocks = 0;
  std::uint64_t fragments_rejected = 0;
  std::map<IgnoreReason, std::uint64_t> ignored;
  bool operator==(const Counters&) const = default;
};

struct Stream {
  Registration registration;
  UnverifiedBlocks unverified_blocks = UnverifiedBlocks::kContent;
  std::uint64_t epoch = 1;
  std::optional<std::uint64_t> cursor;
  std::optional<std::uint64_t> history_from;
  std::optional<std::int64_t> counting_group;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> lost_ranges;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> recent;  // (number, fingerprint)
  bool ever_verified = false;                                  // in this life
  Counters counters;
};

struct PromptPosition {
  std::uint64_t fingerprint = 0;
  std::uint32_t length = 0;
  std::uint64_t exact_name = 0;  // the projection of the exact chain digest up to here
};

struct PromptSpec {
  ContextKey context;
  std::optional<SaltDigest> salt;
  std::vector<PromptPosition> positions;
};

struct HashSpec {
  ContextKey context;
  std::vector<std::uint64_t> hashes;
};

// instance -> rank -> cumulative token boundaries
using Hits = std::map<std::string, std::map<std::uint32_t, TierCounts>>;

class ReferenceModel {
 public:
  explicit ReferenceModel(std::uint64_t fragments_max = kFragmentsMax)
      : fragments_max_(fragments_max) {}

  void Apply(const Record& record);

  Hits Query(const PromptSpec& prompt) const;
  Hits QueryByHash(const HashSpec& query) const;

  std::uint64_t PrefixCount(const ContextKey& context) const;
  std::uint64_t OrphanCount() const;
  std::uint64_t FragmentCount() const;  // orphans, name-only entries, names only pools have
  std::uint64_t FragmentCount(const ContextKey& key) const;  // of one context
  std::uint64_t PoolOnlyNameCount() const;  // names that only pools have, all contexts
  // Entries (for a pool stream: names, in each of its pools) that its holders have, from device on.
  std::array<std::uint64_t, kTierCount> BlocksByTier(StreamId stream) const;

  const std::map<ContextKey, Context>& contexts() const { return contexts_; }
  const std::map<StreamId, Stream>& streams() const { return streams_; }
  const Counters& totals() const { return totals_; }  // over all streams that ever were

  // Empty, or the first broken invariant in words.
  std::string CheckInvariants() const;
  // Everything, one line each, for the report of a difference.
  std::string Dump() const;

 private:
  struct BlockToStore {
    StreamId stream = 0;
    Tier tier = Tier::kDevice;
    Link link;
    BlockName name;
  };
  enum class StoreOutcome { kStored, kRejected, kTooManyFragments };

  // Facts (reference_model.cc).
  void ApplyFact(const Registered& fact);
  void ApplyFact(const Unregistered& fact);
  void ApplyFact(const Frame& fact);
  void ApplyFact(const NewEpoch& fact);
  void ApplyFact(const CountingGroup& fact);
  void ApplyFact(const HistoryStart& fact);
  void ApplyFact(const Lost& fact);
  void ApplyFact(const Dropped& fact);
  void ApplyFact(const Evicted& fact);
  void ApplyFact(const PublisherSnapshot&) {}
  void ApplyEvent(StreamId id, const Stored& event);
  void ApplyEvent(StreamId id, const Removed& event);
  void ApplyEvent(StreamId id, const Cleared& event);
  void ApplyEvent(StreamId id, const PoolOrigin& origin, const PoolStored& event);
  void ApplyEvent(StreamId id, const PoolOrigin& origin, const PoolRemoved& event);
  void ApplyEvent(StreamId id, const PoolCleared& event);
  void Retire(StreamId id, const std::function<bool(const HolderKey&)>& which);
  void RetirePool(StreamId id, const std::function<bool(const PoolHolderKey&)>& which);
  void RetireAll(StreamId id);
  void ForgetLostRangesIfEmpty(StreamId id);
  void CollectContexts();
  void CountRejected(StreamId id, std::uint64_t blocks);
  void CountTooManyFragments(StreamId id, std::uint64_t blocks);
  void CountRemoveUnknown(StreamId id);
  std::vector<Context*> ContextsOf(StreamId id);
  static bool TakeOneCopy(Context& context, const HolderKey& holder, const BlockName& name);

  // Storing (reference_model_store.cc).
  StoreOutcome StoreBlock(Context& context, const BlockToStore& block);
  StoreOutcome StoreName(Context& context, const BlockToStore& block);
  static void AddCopy(Entry& entry, const BlockToStore& block);
  BlockClass Classify(const Context& context, const BlockToStore& block) const;
  void FirstVerified(StreamId id);
  void Settle(Context& context);
  bool SettleOne(Context& context);
  void Join(Context& context, const EntryKey& fragment);
  void ChangeClass(Context& context, const EntryKey& key, BlockClass block_class);
  void Lose(Context& context, const EntryKey& key);

  std::uint64_t fragments_max_;
  StreamId streams_registered_ = 0;
  std::map<StreamId, Stream> streams_;
  std::map<ContextKey, Context> contexts_;
  Counters totals_;
};

// --- Shared by the model's files -----------------------------------------------------------------

inline bool IsFragment(BlockClass block_class) {
  return block_class == BlockClass::kNameOnly || block_class == BlockClass::kOrphan;
}
inline bool IsContent(BlockClass block_class) {
  return !IsFragment(block_class);
}

// Two names of one stream (C1).
inline bool SameName(const BlockName& a, const BlockName& b) {
  return a.projected == b.projected &&
         (a.digest == b.digest || a.digest.empty() || b.digest.empty());
}

inline EntryKey SharedKey(const BlockName& name) {
  return {0, {name.projected, ""}};
}

// The live entry that `name` means: the stream's own scope only.
std::optional<EntryKey> FindOwn(const Context& context, StreamId stream, const BlockName& name);
// Own scope first, then shared. Scope 0 looks among the shared names only.
std::optional<EntryKey> Resolve(const Context& context, StreamId scope, const BlockName& name);
// Follows parents upward from `start`, first in the view of `view`. True when it comes back to
// `start`; `path` are then the entries on the way.
bool ClosesCycle(const Context& context, const EntryKey& start, StreamId view,
                 std::vector<EntryKey>* path);

}  // namespace conductor::model
