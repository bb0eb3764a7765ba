// Who has an entry: copies, sums, states; retiring holders and cleaning up after them.
#include <cstring>

#include "src/check.h"
#include "src/index/prefix_index.h"

namespace conductor {
// The facts of one block as a holder has it, in a fixed layout (the digest's definition).
struct PrefixIndex::MixFacts {
  std::uint64_t context_low = 0, context_high = 0;
  std::uint64_t projected = 0;
  std::uint64_t digest_low = 0, digest_high = 0;  // of a whole digest as name
  std::uint64_t parent_low = 0,
                parent_high = 0;  // projected name, mixed digest; or the salt's digest
  std::uint64_t fingerprint = 0;
  std::uint32_t length = 0;
  std::uint32_t copies = 0;
  std::uint8_t shared = 0;
  std::uint8_t link = 0;  // 0 none, 1 below a root, 2 below a block
  std::uint8_t check = 0;
  std::uint8_t extra_keys_on_wire = 0;
  std::uint8_t zero[4] = {0, 0, 0, 0};

  Sum128 Mix() const {
    static_assert(sizeof(MixFacts) == 80, "no padding: it would be mixed too");
    return FactMix(this, sizeof(*this));
  }
};

PrefixIndex::MixFacts PrefixIndex::FactsForMix(EntryId id) const {
  MixFacts facts;
  const Sum128 context = contexts_.context(ContextOf(id)).key_mix;
  facts.context_low = static_cast<std::uint64_t>(context);
  facts.context_high = static_cast<std::uint64_t>(context >> 64);
  facts.projected = ProjectedOf(id);
  facts.copies = 1;
  facts.shared = ScopeOf(id) == kSharedScope ? 1 : 0;
  const auto mixed_name = [&](EntryId entry) {
    const std::string_view digest = digest_names_[entries_[entry].digest_name];
    return FactMix(digest.data(), digest.size());
  };
  if (!IsInRun(id) && entries_[id].digest_name != 0) {
    const Sum128 mixed = mixed_name(id);
    facts.digest_low = static_cast<std::uint64_t>(mixed);
    facts.digest_high = static_cast<std::uint64_t>(mixed >> 64);
  }
  const EntryId parent = ParentOf(id);
  if (parent == 0) return facts;
  const bool root = ScopeOf(parent) == kRootScope;
  facts.link = root ? 1 : 2;
  facts.parent_low = ProjectedOf(parent);
  if (!IsInRun(parent) && entries_[parent].digest_name != 0) {
    if (root) {
      std::memcpy(&facts.parent_high, digest_names_[entries_[parent].digest_name].data() + 8, 8);
    } else {
      facts.parent_high = static_cast<std::uint64_t>(mixed_name(parent));
    }
  }
  const LinkFacts link = FactsOf(id);
  facts.fingerprint = link.fingerprint;
  facts.length = link.length;
  facts.check = static_cast<std::uint8_t>(link.check);
  facts.extra_keys_on_wire = link.extra_keys_on_wire ? 1 : 0;
  return facts;
}

Sum128 PrefixIndex::Mix(EntryId id, std::uint32_t copies) const {
  MixFacts facts = FactsForMix(id);
  facts.copies = copies;
  return facts.Mix();
}

// What `count` blocks from `slot` on add to the sum of one who has one copy of each.
Sum128 PrefixIndex::MixRange(const RunView& run, std::uint32_t slot, std::uint32_t count) const {
  MixFacts facts = FactsForMix(run.base + slot);
  Sum128 sum = facts.Mix();
  for (std::uint32_t i = slot + 1; i < slot + count; ++i) {
    facts.parent_low = facts.projected;
    facts.parent_high = 0;
    facts.link = 2;
    facts.projected = run.names[i];
    facts.fingerprint = run.fingerprints[i];
    sum += facts.Mix();
  }
  return sum;
}

std::uint32_t PrefixIndex::Copies(EntryId id, HolderId holder) const {
  if (copies_.empty()) return 1;
  const std::uint32_t* found = copies_.Find(CopyKeyOf(id, holder));
  return found == nullptr ? 1 : *found;
}

void PrefixIndex::SetCopies(EntryId id, HolderId holder, std::uint32_t copies) {
  if (copies <= 1 && copies_.empty()) return;
  const CopyKey key = CopyKeyOf(id, holder);
  if (watch_ != nullptr) watch_->BeforeCopies(copies_.ShardOf(key));
  copies > 1 ? copies_.Set(key, copies) : static_cast<void>(copies_.Erase(key));
}

// The engines'.
std::vector<HolderId> PrefixIndex::LiveHolders(EntryId id) const {
  std::vector<HolderId> live;
  const HolderSet* set = holders_.Find(StateOf(id));
  for (std::uint32_t i = 0; set != nullptr && i < set->size; ++i) {
    const Holder& holder = holders_.holder(set->holders[i]);
    if (holder.key.pool == 0 && !holder.retired.load(std::memory_order_relaxed)) {
      live.push_back(set->holders[i]);
    }
  }
  return live;
}

// Takes the entry's mixes out of its holders' sums, or puts them in: around a change of its link.
// What a pool has is a name and its parts: the link is none of it.
void PrefixIndex::AdjustSums(EntryId id, bool add) {
  for (HolderId holder : LiveHolders(id)) {
    const Sum128 mix = Mix(id, Copies(id, holder));
    Sum128& sum = holders_.holder(holder).sum;
    sum = add ? sum + mix : sum - mix;
  }
}

// The entry's class decides, so that an unproven block has unproven holders only.
HolderId PrefixIndex::HolderFor(const Arrival& arrival, EntryId id) {
  const bool unproven = ClassOf(id) == BlockClass::kUnproven;
  return holders_.Current({arrival.stream, arrival.context, arrival.tier, unproven}, arrival.row);
}

void PrefixIndex::AddHolder(EntryId id, HolderId holder, std::uint32_t copies) {
  Holder& h = holders_.holder(holder);
  const StateId state = StateOf(id);
  const HolderSet* set = holders_.Find(state);
  if (set != nullptr && set->Contains(holder)) {
    const std::uint32_t before = Copies(id, holder);
    const std::uint32_t after = std::min<std::uint64_t>(std::uint64_t{before} + copies, kCopiesMax);
    if (after == before) return;
    h.sum -= Mix(id, before);
    h.sum += Mix(id, after);
    SetCopies(id, holder, after);
    return;
  }
  MoveState(id, holders_.WithHolder(state, holder));
  if (copies > 1) SetCopies(id, holder, copies);
  if (h.key.pool == 0) h.sum += Mix(id, copies);
  h.blocks.fetch_add(1, std::memory_order_relaxed);
  ++h.memberships;
}

void PrefixIndex::DropHolder(EntryId id, HolderId holder) {
  Holder& h = holders_.holder(holder);
  if (h.key.pool == 0) h.sum -= Mix(id, Copies(id, holder));
  h.blocks.fetch_sub(1, std::memory_order_relaxed);
  LeaveHolder(id, holder);
}

void PrefixIndex::RejectHolder(EntryId id, HolderId holder) {
  rejected_.push_back(holders_.holder(holder).key.stream);
  DropHolder(id, holder);
}

void PrefixIndex::LeaveHolder(EntryId id, HolderId holder) {
  SetCopies(id, holder, 0);
  MoveState(id, holders_.WithoutHolder(StateOf(id), holder));
  LoseMembership(holder);
}

void PrefixIndex::LoseMembership(HolderId holder) {
  Holder& h = holders_.holder(holder);
  --h.memberships;
  if (h.memberships > 0 || !h.retired.load(std::memory_order_relaxed)) return;
  --unclean_;
  holders_.Recycle(holder);
}

// Memberships of holders that are gone: no sums, those went when they were retired.
void PrefixIndex::ForgetHolders(EntryId id) {
  const StateId state = StateOf(id);
  if (state == 0) return;
  const HolderSet& set = *holders_.Find(state);
  if (!set.has_retired) return;
  std::vector<HolderId> gone;
  for (std::uint32_t i = 0; i < set.size; ++i) {
    const HolderId holder = set.holders[i];
    if (holders_.holder(holder).retired.load(std::memory_order_relaxed)) gone.push_back(holder);
  }
  MoveState(id, holders_.WithoutRetired(state));
  for (HolderId holder : gone) {
    SetCopies(id, holder, 0);
    LoseMembership(holder);
  }
}

// What a set's entries count for: a name that only pools have is known by name only.
PrefixIndex::SetCounts PrefixIndex::CountsOf(const HolderSet& set) {
  if (set.live.load(std::memory_order_relaxed) == 0) return {};
  const bool block = set.live_engines.load(std::memory_order_relaxed) > 0;
  return {set.entries, block ? set.fragments : set.entries};
}

void PrefixIndex::Recount(ContextId id, const SetCounts& before, const SetCounts& after) {
  Context& context = contexts_.context(id);
  if (before.blocks != after.blocks) {
    const std::uint64_t delta = after.blocks - before.blocks;
    const std::uint64_t had = context.blocks.fetch_add(delta, std::memory_order_release);
    if (had + delta == 0) emptied_.push_back(id);
    blocks_.fetch_add(delta, std::memory_order_relaxed);
  }
  if (before.fragments != after.fragments) {
    const std::uint64_t delta = after.fragments - before.fragments;
    context.fragments.fetch_add(delta, std::memory_order_release);
    fragments_.fetch_add(delta, std::memory_order_relaxed);
  }
}

void PrefixIndex::CountEntries(HolderSet& set, bool fragment, std::int64_t count) {
  const SetCounts before = CountsOf(set);
  const auto delta = static_cast<std::uint64_t>(count);
  set.entries += delta;
  if (fragment) set.fragments += delta;
  Recount(set.context, before, CountsOf(set));
}

void PrefixIndex::MoveState(EntryId id, StateId target) {
  if (IsInRun(id)) {
    const RunView run = runs_.ViewOf(id);
    SetStates(run, run.SlotOf(id), 1, target);
    return;
  }
  Entry& e = entries_[id];
  const StateId source = e.state.load(std::memory_order_relaxed);
  if (source == target) return;
  Touch(id);
  const bool fragment = IsFragment(e.block_class.load(std::memory_order_relaxed));
  if (target != 0) CountEntries(*holders_.Mutable(target), fragment, +1);
  if (source != 0) CountEntries(*holders_.Mutable(source), fragment, -1);
  // Release: a reader that sees the id sees the set behind it.
  e.state.store(target, std::memory_order_release);
  if (source != 0 && holders_.Mutable(source)->entries == 0) holders_.NoteEmpty(source);
}

// The same for blocks of a run that have one state.
void PrefixIndex::SetStates(const RunView& run, std::uint32_t slot, std::uint32_t count,
                            StateId target) {
  const StateId source = run.states[slot].load(std::memory_order_relaxed);
  if (source == target) return;
  Touch(run.base);
  if (target != 0) CountEntries(*holders_.Mutable(target), false, count);
  if (source != 0) CountEntries(*holders_.Mutable(source), false, -std::int64_t{count});
  run.SetStates(slot, count, target);
  if (source != 0 && holders_.Mutable(source)->entries == 0) holders_.NoteEmpty(source);
}

void PrefixIndex::RetireHolders(StreamId stream,
                                const std::function<bool(const HolderKey&)>& which) {
  RetireDetached(DetachHolders(stream, which));
}

std::vector<HolderId> PrefixIndex::DetachHolders(
    StreamId stream, const std::function<bool(const HolderKey&)>& which) {
  std::vector<HolderId> chosen;
  auto it = holders_.current().lower_bound(HolderKey{stream, 0, Tier::kDevice, false});
  for (; it != holders_.current().end() && it->first.stream == stream; ++it) {
    if (which(it->first)) chosen.push_back(it->second);
  }
  for (HolderId id : chosen) holders_.Detach(holders_.holder(id).key);
  return chosen;
}

void PrefixIndex::RetireDetached(const std::vector<HolderId>& holders) {
  for (HolderId id : holders) {
    const HolderKey key = holders_.holder(id).key;
    for (StateId state : holders_.Retire(id)) {
      HolderSet& set = *holders_.Mutable(state);
      const SetCounts before = CountsOf(set);
      HolderTable::Leave(set, key);
      Recount(key.context, before, CountsOf(set));
    }
    if (key.pool != 0) parts_.Retire(id);
    holders_.holder(id).memberships == 0 ? holders_.Recycle(id) : static_cast<void>(++unclean_);
  }
}

bool PrefixIndex::CleanupSlice(std::size_t budget) {
  if (parts_.CleanupSlice(budget)) return true;
  if (watch_ == nullptr) copies_.Shrink();
  std::int64_t left = static_cast<std::int64_t>(budget);
  for (; left > 0 && !merges_.empty(); left -= kRunSlotsMax) {
    const EntryId end = merges_.front();
    merges_.pop_front();
    Merge(end);
  }
  while (left > 0 && unclean_ > 0) left -= SweepStep();
  if (unclean_ > 0 || !merges_.empty()) return true;
  if (entry_count_.load(std::memory_order_relaxed) == 0) ShrinkTables();
  return false;
}

// Of an index without entries. (Runs give most of their memory back as they go, the rest with the
// last one of them.)
void PrefixIndex::ShrinkTables() {
  if (watch_ != nullptr) return;  // an image knows ids
  entries_.ShrinkIfEmpty();
  digest_names_.ShrinkIfEmpty();
  digests_.ShrinkIfEmpty();
}

// One step of the sweep that forgets retired holders wherever they are: through all runs, then all
// entries, and again while there are any. Returns what it cost.
std::int64_t PrefixIndex::SweepStep() {
  if (sweep_entry_ == 0) {
    RunView run;
    if (!runs_.NextRun(&sweep_run_, &run)) {
      sweep_run_ = 0;
      sweep_entry_ = 1;
      return 1;
    }
    return CleanRun(run);
  }
  const EntryId id = sweep_entry_++;
  if (id >= entries_.end_id()) {
    sweep_entry_ = 0;
    return 1;
  }
  if (!entries_[id].in_use) return 1;
  const HolderSet* set = holders_.Find(StateOf(id));
  if (set == nullptr || !set->has_retired) return 1;
  IsLive(id) ? ForgetHolders(id) : PurgeAndRelease(id);
  return 4;
}

std::int64_t PrefixIndex::CleanRun(const RunView& run) {
  std::int64_t cost = 1;
  for (std::uint32_t slot = 0; slot < run.size(); ++slot) {
    const HolderSet* set = holders_.Find(run.states[slot].load(std::memory_order_relaxed));
    if (set == nullptr || !set->has_retired) continue;
    ForgetHolders(run.base + slot);
    ++cost;
  }
  if (cost > 1) ReleaseIfUnused(run.base + run.size() - 1);
  return cost;
}

PrefixIndex::HolderNames PrefixIndex::NamesOfHolder(const HolderKey& key) const {
  return {contexts_.context(key.context).key_mix, key.pool == 0 ? 0 : pools_.Mix(key.pool)};
}

Sum128 PrefixIndex::HolderMix(const HolderKey& key, const HolderNames& names, Sum128 sum,
                              Sum128 stream_mix) {
  struct {
    Sum128 stream, context, sum;
    std::uint64_t tier, unproven;
  } facts = {stream_mix, names.context, sum, static_cast<std::uint64_t>(key.tier),
             key.unproven ? 1u : 0u};
  static_assert(sizeof(facts) == 64, "no padding: it would be mixed too");
  const Sum128 mix = FactMix(&facts, sizeof(facts));
  if (key.pool == 0) return mix;
  const Sum128 of_pool[] = {mix, names.pool};
  return FactMix(of_pool, sizeof(of_pool));
}

Sum128 PrefixIndex::HoldersDigest(const std::function<Sum128(StreamId)>& stream_mix) const {
  Sum128 total = 0;
  for (const auto& [key, id] : holders_.current()) {
    if (!HasAnything(id)) continue;
    total += HolderMix(key, NamesOfHolder(key), holders_.holder(id).sum, stream_mix(key.stream));
  }
  return total;
}

bool PrefixIndex::HasAnything(HolderId id) const {
  return holders_.holder(id).blocks.load(std::memory_order_relaxed) > 0 || parts_.HasAny(id);
}

bool PrefixIndex::HoldsAnything(StreamId stream) const {
  auto it = holders_.current().lower_bound(HolderKey{stream, 0, Tier::kDevice, false});
  for (; it != holders_.current().end() && it->first.stream == stream; ++it) {
    if (HasAnything(it->second)) return true;
  }
  return false;
}

std::uint64_t PrefixIndex::BlocksOf(StreamId stream, Tier tier) const {
  std::uint64_t blocks = 0;
  auto it = holders_.current().lower_bound(HolderKey{stream, 0, Tier::kDevice, false});
  for (; it != holders_.current().end() && it->first.stream == stream; ++it) {
    if (it->first.tier == tier) {
      blocks += holders_.holder(it->second).blocks.load(std::memory_order_relaxed);
    }
  }
  return blocks;
}

}  // namespace conductor
