#include "src/index/walk.h"

#include <algorithm>
#include <optional>

#include "src/index/prompt_blocks.h"
#include "src/index/tier_cursors.h"

namespace conductor {
namespace {

// live < catching_up < connecting < degraded
int Badness(StreamState state) {
  switch (state) {
    case StreamState::kLive:
      return 0;
    case StreamState::kCatchingUp:
      return 1;
    case StreamState::kConnecting:
      return 2;
    case StreamState::kDegraded:
      return 3;
  }
  return 3;
}

void Merge(TierCounts& best, const TierCounts& counts) {
  best.device = std::max(best.device, counts.device);
  best.cpu_local = std::max(best.cpu_local, counts.cpu_local);
  best.cpu_share = std::max(best.cpu_share, counts.cpu_share);
  best.disk = std::max(best.disk, counts.disk);
}

QueryAnswer Assemble(std::vector<TierCursors::RowCounts> rows, const QueryOptions& options) {
  QueryAnswer answer;
  answer.context_known = true;
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tie(a.row->instance_id, a.row->dp_rank) <
           std::tie(b.row->instance_id, b.row->dp_rank);
  });
  for (const auto& [row, counts, rests_on_degraded] : rows) {
    if (answer.instances.empty() || answer.instances.back().instance_id != row->instance_id) {
      answer.instances.emplace_back().instance_id = row->instance_id;
    }
    InstanceHits& hits = answer.instances.back();
    hits.ranks[row->dp_rank] = counts;
    Merge(hits.best, counts);
    const StreamState state = row->shared->Trust();
    if (Badness(state) > Badness(hits.stream_state)) hits.stream_state = state;
    hits.rests_on_degraded = hits.rests_on_degraded || rests_on_degraded;
  }
  if (options.min_tokens > 0) {
    std::erase_if(answer.instances,
                  [&](const InstanceHits& hits) { return hits.best.disk < options.min_tokens; });
  }
  std::stable_sort(answer.instances.begin(), answer.instances.end(),
                   [](const InstanceHits& a, const InstanceHits& b) {
                     if (a.best.disk != b.best.disk) return a.best.disk > b.best.disk;
                     return a.best.device > b.best.device;
                   });
  if (options.top_k > 0 && answer.instances.size() > options.top_k) {
    answer.instances.resize(options.top_k);
  }
  for (const InstanceHits& hits : answer.instances) {
    if (hits.stream_state != StreamState::kLive || hits.rests_on_degraded) {
      answer.degraded.push_back(hits.instance_id);
    }
  }
  return answer;
}

// The live entries of one position, and who has its block.
struct Position {
  std::vector<EntryId> entries;
  std::vector<StateId> states;  // of the entries and of pools; sorted and distinct after Collect
  // The exact chain's name, when it matched: what hangs below it as a shared name follows.
  std::optional<std::uint64_t> exact_name;

  // False: nobody has it.
  bool Add(const PrefixIndex& index, EntryId id, StateId state) {
    if (!index.holders().IsLive(state)) return false;
    if (std::find(entries.begin(), entries.end(), id) == entries.end()) {
      entries.push_back(id);
      states.push_back(state);
    }
    return true;
  }
  bool AddNamed(const PrefixIndex& index, EntryId id) {
    return Add(index, id, index.StateOf(id));
  }
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
        has_fragments_(index.contexts().context(context).fragments.load() > 0) {}

  Status Run(TierCursors& cursors) {
    object_names_differ_ = has_fragments_ && blocks_.ObjectNamesDiffer();
    Position here;
    if (EntryId root = index_.FindRoot(context_, blocks_.salt())) here.entries.push_back(root);
    for (std::size_t i = 0; i < blocks_.count(); ++i) {
      if (here.entries.empty() && !has_fragments_) break;
      Position next;
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
      here = std::move(next);
    }
    return {};
  }

 private:
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
    }
    CONDUCTOR_ASSIGN_OR_RETURN(const Digest digest, blocks_.ExactDigest(i));
    const std::uint64_t name = Project(digest);
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
};

// The context, when it exists.
ContextId FindExisting(const PrefixIndex& index, const ContextKey& key) {
  const ContextId id = index.contexts().Find(key);
  return id != 0 && index.contexts().context(id).Exists() ? id : 0;
}

}  // namespace

Result<QueryAnswer> MatchPrompt(const PrefixIndex& index, const PromptQuery& query) {
  EpochGuard guard;
  const ContextId id = FindExisting(index, query.context);
  if (id == 0) return QueryAnswer{};
  const Context& context = index.contexts().context(id);
  const ContextProfile* profile = context.profile.load(std::memory_order_acquire);
  const RowView* rows = context.rows.load(std::memory_order_acquire);
  PromptBlocks blocks(query, profile->profile.strategy, profile->hasher);
  TierCursors cursors(index.holders(), index.contexts(), *rows, query.options.instance_id);
  CONDUCTOR_RETURN_IF_ERROR(PromptWalk(index, id, blocks).Run(cursors));
  return Assemble(cursors.Finish(), query.options);
}

QueryAnswer MatchHashes(const PrefixIndex& index, const HashQuery& query) {
  EpochGuard guard;
  const ContextId id = FindExisting(index, query.context);
  if (id == 0) return {};
  const RowView* rows = index.contexts().context(id).rows.load(std::memory_order_acquire);
  TierCursors cursors(index.holders(), index.contexts(), *rows, query.options.instance_id);
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
    if (!cursors.Advance(position.states, tokens)) break;
  }
  return Assemble(cursors.Finish(), query.options);
}

}  // namespace conductor
