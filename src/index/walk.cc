#include "src/index/walk.h"

#include <algorithm>
#include <optional>

#include "src/check.h"
#include "src/index/prompt_blocks.h"
#include "src/index/run_walk.h"
#include "src/index/tier_cursors.h"
#include "src/index/walk_rows.h"

namespace conductor {
namespace {

// The live entries of one position, and who has its block.
struct Position {
  std::vector<EntryId> entries;
  std::vector<StateId> states;  // of the entries and of pools; sorted and distinct after Collect
  // The exact chain's name, when it matched: what hangs below it as a shared name follows.
  std::optional<std::uint64_t> exact_name;

  void Clear() {
    entries.clear();
    states.clear();
    exact_name.reset();
  }
  // False: nobody has it.
  bool Add(const PrefixIndex& index, EntryId id, StateId state) {
    if (!index.holders().IsLive(state)) return false;
    if (std::find(entries.begin(), entries.end(), id) == entries.end()) {
      entries.push_back(id);
      states.push_back(state);
    }
    return true;
  }
  bool AddNamed(const PrefixIndex& index, EntryId id) { return Add(index, id, index.StateOf(id)); }
  void Collect() {
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
  }
};

class PromptWalk {
 public:
  PromptWalk(const PrefixIndex& index, ContextId context, PromptBlocks& blocks)
      : index_(index),
        context_(context),
        blocks_(blocks),
        has_fragments_(blocks.HasTokens() &&
                       index.contexts().context(context).fragments.load() > 0) {}

  Status Run(TierCursors& cursors) {
    object_names_differ_ = has_fragments_ && blocks_.ObjectNamesDiffer();
    Position here, next;
    if (EntryId root = index_.FindRoot(context_, blocks_.salt())) here.entries.push_back(root);
    for (std::size_t i = 0; i < blocks_.count(); ++i) {
      if (here.entries.empty() && !has_fragments_) break;
      if (OnlyRunsFollow(here)) {
        CONDUCTOR_ASSIGN_OR_RETURN(const RunStretch stretch, FollowRuns(here, i, cursors));
        if (stretch.ended) break;
        if (stretch.blocks > 0) {
          i += stretch.blocks;
          here.entries[0] = stretch.last;
          if (i == blocks_.count()) break;
        }
      }
      next.Clear();
      FollowContent(here, i, next);
      if (has_fragments_) {
        AddPools(next);
        bool has_object = false;
        if (object_names_differ_) {
          CONDUCTOR_ASSIGN_OR_RETURN(has_object, AddObject(i, next));
        }
        CONDUCTOR_RETURN_IF_ERROR(FollowNames(i, has_object, next));
      }
      next.Collect();
      if (next.states.empty()) break;
      if (!cursors.Advance(next.states, blocks_.EndOf(i))) break;
      std::swap(here, next);
    }
    return {};
  }

 private:
  // Whether the next blocks by content can only be in runs.
  bool OnlyRunsFollow(const Position& here) const {
    if (here.entries.size() != 1 || here.exact_name || object_names_differ_) return false;
    const Context& context = index_.contexts().context(context_);
    return context.own_content.load(std::memory_order_acquire) == 0 &&
           context.twins.load(std::memory_order_acquire) == 0;
  }

  Result<RunStretch> FollowRuns(const Position& here, std::size_t i, TierCursors& cursors) {
    if (chain_ == Chain::kFollowing) return FollowRunByChain(here.entries[0], i, cursors);
    const RunStretch stretch = WalkRuns(index_, context_, blocks_, cursors, here.entries[0], i);
    if (stretch.checkpoint != 0) checkpoint_ = {stretch.checkpoint_at, stretch.checkpoint};
    return stretch;
  }

  // The next slots of the run, as long as the exact chain has their names: it has nothing to add.
  Result<RunStretch> FollowRunByChain(EntryId above, std::size_t i, TierCursors& cursors) {
    RunStretch stretch;
    stretch.last = above;
    if (!IsInRun(above)) return stretch;
    const RunTable::View run = index_.runs().ViewOf(above);
    const std::uint32_t size = run.size();
    for (std::uint32_t slot = run.SlotOf(above) + 1; slot < size && i < blocks_.count();
         ++slot, ++i) {
      if (run.fingerprints[slot] != blocks_.Fingerprint(i)) break;
      if (blocks_.Length(i) != blocks_.block_size()) break;
      const StateId state = run.states[slot].load(std::memory_order_acquire);
      if (!index_.holders().IsLive(state)) break;
      CONDUCTOR_ASSIGN_OR_RETURN(const Digest digest, blocks_.ExactDigest(i));
      if (Project(digest) != run.names[slot]) break;
      ++stretch.blocks;
      stretch.last = run.base + slot;
      stretch.ended = !cursors.Advance({&state, 1}, blocks_.EndOf(i));
      if (stretch.ended) break;
    }
    return stretch;
  }

  void FollowContent(const Position& here, std::size_t i, Position& next) {
    const std::uint64_t fingerprint = blocks_.Fingerprint(i);
    const std::uint32_t length = blocks_.Length(i);
    const auto add = [&](EntryId id, StateId state) { next.Add(index_, id, state); };
    for (EntryId above : here.entries) index_.ForContent(above, fingerprint, length, add);
    if (here.exact_name) {
      index_.ForContentBelowName(context_, *here.exact_name, fingerprint, length, add);
    }
  }

  // Pools that have the name which an unverified publisher's own name is, projected.
  void AddPools(Position& next) const {
    for (std::size_t i = 0; i < next.entries.size(); ++i) {
      const EntryId id = next.entries[i];
      if (index_.ScopeOf(id) != kSharedScope) AddPool(index_.ProjectedOf(id), next);
    }
  }
  bool AddPool(std::uint64_t name, Position& next) const {
    const EntryId id = index_.FindName(context_, kSharedScope, {name, {}});
    if (id == 0) return false;
    const StateId state = index_.StateOf(id);
    const HolderTable& holders = index_.holders();
    if (!holders.IsHeld(state) || holders.IsLive(state)) return false;
    next.states.push_back(state);
    return true;
  }
  // A salted SGLang prompt has other names in a store than in the engine's events.
  Result<bool> AddObject(std::size_t i, Position& next) {
    CONDUCTOR_ASSIGN_OR_RETURN(const Digest digest, blocks_.ObjectDigest(i));
    return AddPool(Project(digest), next);
  }

  // From the first position without a live shared block on, for as long as names match.
  // `has_object`: a store has this position under its own name.
  Status FollowNames(std::size_t i, bool has_object, Position& next) {
    if (chain_ == Chain::kEnded) return {};
    if (chain_ == Chain::kNotStarted) {
      const bool shared = std::any_of(next.entries.begin(), next.entries.end(), [&](EntryId id) {
        return index_.ScopeOf(id) == kSharedScope;
      });
      if (shared) return {};
      chain_ = Chain::kFollowing;
      if (checkpoint_)
        blocks_.SetCheckpoint(checkpoint_->first, index_.DigestAt(checkpoint_->second));
    }
    CONDUCTOR_ASSIGN_OR_RETURN(const Digest digest, blocks_.ExactDigest(i));
    const std::uint64_t name = Project(digest);
    // The block found by content has that name: it is the only one, and what hangs below it is
    // found from there.
    const bool found = std::any_of(next.entries.begin(), next.entries.end(), [&](EntryId id) {
      return index_.ScopeOf(id) == kSharedScope && index_.ProjectedOf(id) == name;
    });
    if (found) return {};
    bool matched = false;
    // Fragments first: those that are joined meanwhile are found as the shared block.
    bool own_content = false;  // where it is found by content, a pool name is that block
    index_.ForProjected(context_, name, [&](EntryId id) {
      const BlockClass c = index_.ClassOf(id);
      if (IsFragment(c)) matched = next.AddNamed(index_, id) || matched;
      if (IsContent(c) && index_.IsLive(id)) own_content = true;
    });
    const EntryId shared = index_.FindName(context_, kSharedScope, {name, {}});
    if (shared != 0) matched = next.AddNamed(index_, shared) || matched;
    if (!own_content) matched = AddPool(name, next) || matched;
    if (!matched && !has_object) {
      chain_ = Chain::kEnded;
      return {};
    }
    next.exact_name = name;
    return {};
  }

  std::uint64_t Project(const Digest& digest) const {
    return index_.contexts().context(context_).profile.load()->hasher.Project(digest);
  }

  enum class Chain { kNotStarted, kFollowing, kEnded };
  const PrefixIndex& index_;
  ContextId context_;
  PromptBlocks& blocks_;
  bool has_fragments_;
  bool object_names_differ_ = false;
  Chain chain_ = Chain::kNotStarted;
  std::optional<std::pair<std::size_t, DigestId>> checkpoint_;  // position, id of its digest
};

// The context, when it exists.
ContextId FindExisting(const PrefixIndex& index, const ContextKey& key) {
  const ContextId id = index.contexts().Find(key);
  return id != 0 && index.contexts().context(id).Exists() ? id : 0;
}

// The rows of one answer: found, followed and put together.
struct Answering {
  Answering(const PrefixIndex& index, ContextId context, const QueryOptions& query_options)
      : options(query_options),
        rows(*index.contexts().context(context).rows.load(std::memory_order_acquire)),
        group(options.instance_id.empty() ? rows.groups.size()
                                          : rows.FindGroup(options.instance_id)),
        cursors(index.holders(), index.contexts(), rows,
                options.instance_id.empty()  ? nullptr
                : group < rows.groups.size() ? &rows.groups[group]
                                             : &kNoGroup,
                options.top_k) {}

  QueryAnswer Finish() {
    cursors.Finish();
    return AssembleAnswer(cursors, rows, group, options);
  }
  void Finish(RowMatches* matches) {
    cursors.Finish();
    RowMatchesFiller::Fill(cursors, rows, group, options, matches);
  }

  static constexpr RowView::Group kNoGroup = {};
  const QueryOptions& options;
  const RowView& rows;
  std::size_t group;
  TierCursors cursors;
};

void WalkFingerprints(const PrefixIndex& index, ContextId context, const FingerprintQuery& query,
                      TierCursors& cursors) {
  const ContextProfile* profile =
      index.contexts().context(context).profile.load(std::memory_order_acquire);
  PromptBlocks blocks(query, profile->hasher);
  const Status walked = PromptWalk(index, context, blocks).Run(cursors);
  CHECK(walked);  // only chains can fail
}

}  // namespace

Result<QueryAnswer> MatchPrompt(const PrefixIndex& index, const PromptQuery& query) {
  EpochGuard guard;
  const ContextId id = FindExisting(index, query.context);
  if (id == 0) return QueryAnswer{};
  const Context& context = index.contexts().context(id);
  const ContextProfile* profile = context.profile.load(std::memory_order_acquire);
  Answering answering(index, id, query.options);
  PromptBlocks blocks(query, profile->profile.strategy, profile->hasher);
  CONDUCTOR_RETURN_IF_ERROR(PromptWalk(index, id, blocks).Run(answering.cursors));
  return answering.Finish();
}

QueryAnswer MatchFingerprints(const PrefixIndex& index, const FingerprintQuery& query) {
  EpochGuard guard;
  const ContextId id = FindExisting(index, query.context);
  if (id == 0) return {};
  Answering answering(index, id, query.options);
  WalkFingerprints(index, id, query, answering.cursors);
  return answering.Finish();
}

void MatchFingerprints(const PrefixIndex& index, const FingerprintQuery& query,
                       RowMatches* matches) {
  EpochGuard guard;
  RowMatchesFiller::Clear(matches);
  const ContextId id = FindExisting(index, query.context);
  if (id == 0) return;
  Answering answering(index, id, query.options);
  WalkFingerprints(index, id, query, answering.cursors);
  answering.Finish(matches);
}

QueryAnswer MatchHashes(const PrefixIndex& index, const HashQuery& query) {
  EpochGuard guard;
  const ContextId id = FindExisting(index, query.context);
  if (id == 0) return {};
  Answering answering(index, id, query.options);
  std::uint64_t tokens = 0;
  for (std::uint64_t hash : query.hashes) {
    Position position;
    // The smallest length that is known, or the shared block's. A block known only by name has the
    // context's block size, as far as anyone can tell.
    std::uint32_t length = 0;
    const auto add = [&](EntryId entry) {
      if (!position.AddNamed(index, entry)) {
        // Not a block, but maybe a pool's name.
        const StateId state = index.StateOf(entry);
        if (index.holders().IsHeld(state)) position.states.push_back(state);
        return;
      }
      const std::uint32_t known = index.LengthOf(entry);
      if (known == 0) return;
      const bool shared = index.ScopeOf(entry) == kSharedScope;
      length = length == 0 || shared ? known : std::min(length, known);
    };
    index.ForProjected(id, hash, add);  // first, as above
    if (const EntryId shared = index.FindName(id, kSharedScope, {hash, {}})) add(shared);
    position.Collect();
    if (position.states.empty()) break;
    tokens += length != 0 ? length : query.context.block_size;
    if (!answering.cursors.Advance(position.states, tokens)) break;
  }
  return answering.Finish();
}

}  // namespace conductor
