// Who has an entry: copies, sums, states; retiring holders and cleaning up after them.
#include <cstring>

#include "src/check.h"
#include "src/index/prefix_index.h"

namespace conductor {
namespace {

// The facts of one block as a holder has it, in a fixed layout (the digest's definition).
struct MixFacts {
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
};
static_assert(sizeof(MixFacts) == 80, "no padding: it would be mixed too");

}  // namespace

Sum128 PrefixIndex::Mix(EntryId id, std::uint32_t copies) const {
  const Entry& e = entries_[id];
  const Sum128 context = contexts_.context(e.context).key_mix;
  MixFacts facts;
  facts.context_low = static_cast<std::uint64_t>(context);
  facts.context_high = static_cast<std::uint64_t>(context >> 64);
  facts.projected = e.projected;
  if (e.digest_name != 0) {
    const std::string& digest = digest_names_[e.digest_name];
    const Sum128 mixed = FactMix(digest.data(), digest.size());
    facts.digest_low = static_cast<std::uint64_t>(mixed);
    facts.digest_high = static_cast<std::uint64_t>(mixed >> 64);
  }
  facts.copies = copies;
  facts.shared = e.scope == kSharedScope ? 1 : 0;
  if (const EntryId parent = e.parent.load(std::memory_order_relaxed)) {
    const Entry& p = entries_[parent];
    facts.link = p.scope == kRootScope ? 1 : 2;
    facts.parent_low = p.projected;
    if (p.digest_name != 0) {
      const std::string& digest = digest_names_[p.digest_name];
      if (p.scope == kRootScope) {
        std::memcpy(&facts.parent_high, digest.data() + 8, 8);
      } else {
        facts.parent_high = static_cast<std::uint64_t>(FactMix(digest.data(), digest.size()));
      }
    }
    facts.fingerprint = e.fingerprint.load(std::memory_order_relaxed);
    facts.length = e.length.load(std::memory_order_relaxed);
    facts.check = static_cast<std::uint8_t>(e.check);
    facts.extra_keys_on_wire = e.extra_keys_on_wire ? 1 : 0;
  }
  return FactMix(&facts, sizeof(facts));
}

std::uint32_t PrefixIndex::Copies(EntryId id, HolderId holder) const {
  if (copies_.empty()) return 1;
  auto it = copies_.find((std::uint64_t{id} << 32) | holder);
  return it == copies_.end() ? 1 : it->second;
}

// The engines'.
std::vector<HolderId> PrefixIndex::LiveHolders(EntryId id) const {
  std::vector<HolderId> live;
  const HolderSet* set = holders_.Find(entries_[id].state.load(std::memory_order_relaxed));
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
  const bool unproven =
      entries_[id].block_class.load(std::memory_order_relaxed) == BlockClass::kUnproven;
  return holders_.Current({arrival.stream, arrival.context, arrival.tier, unproven}, arrival.row);
}

void PrefixIndex::AddHolder(EntryId id, HolderId holder, std::uint32_t copies) {
  Entry& e = entries_[id];
  Holder& h = holders_.holder(holder);
  const StateId state = e.state.load(std::memory_order_relaxed);
  const HolderSet* set = holders_.Find(state);
  if (set != nullptr && set->Contains(holder)) {
    const std::uint32_t before = Copies(id, holder);
    const std::uint32_t after = std::min<std::uint64_t>(std::uint64_t{before} + copies, kCopiesMax);
    if (after == before) return;
    h.sum -= Mix(id, before);
    h.sum += Mix(id, after);
    copies_[(std::uint64_t{id} << 32) | holder] = after;
    return;
  }
  MoveState(id, holders_.WithHolder(state, holder));
  if (copies > 1) copies_[(std::uint64_t{id} << 32) | holder] = copies;
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
  if (!copies_.empty()) copies_.erase((std::uint64_t{id} << 32) | holder);
  MoveState(id, holders_.WithoutHolder(entries_[id].state.load(std::memory_order_relaxed), holder));
  Holder& h = holders_.holder(holder);
  --h.memberships;
  if (h.memberships == 0 && h.retired.load(std::memory_order_relaxed)) holders_.Recycle(holder);
}

// Memberships of holders that are gone: no sums, those went when they were retired.
void PrefixIndex::ForgetHolders(EntryId id) {
  const StateId state = entries_[id].state.load(std::memory_order_relaxed);
  if (state == 0) return;
  const HolderSet& set = *holders_.Find(state);
  if (!set.has_retired) return;
  std::vector<HolderId> gone;
  StateId target = state;
  for (std::uint32_t i = 0; i < set.size; ++i) {
    const HolderId holder = set.holders[i];
    if (!holders_.holder(holder).retired.load(std::memory_order_relaxed)) continue;
    target = holders_.WithoutHolder(target, holder);
    gone.push_back(holder);
  }
  MoveState(id, target);
  for (HolderId holder : gone) {
    if (!copies_.empty()) copies_.erase((std::uint64_t{id} << 32) | holder);
    Holder& h = holders_.holder(holder);
    --h.memberships;
    if (h.memberships == 0 && h.retired.load(std::memory_order_relaxed)) holders_.Recycle(holder);
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

void PrefixIndex::CountEntry(HolderSet& set, bool fragment, std::int64_t sign) {
  const SetCounts before = CountsOf(set);
  const auto delta = static_cast<std::uint64_t>(sign);
  set.entries += delta;
  if (fragment) set.fragments += delta;
  Recount(set.context, before, CountsOf(set));
}

void PrefixIndex::MoveState(EntryId id, StateId target) {
  Entry& e = entries_[id];
  const StateId source = e.state.load(std::memory_order_relaxed);
  if (source == target) return;
  const bool fragment = IsFragment(e.block_class.load(std::memory_order_relaxed));
  if (target != 0) {
    HolderSet& set = *holders_.Mutable(target);
    CountEntry(set, fragment, +1);
  }
  if (source != 0) {
    HolderSet& set = *holders_.Mutable(source);
    CountEntry(set, fragment, -1);
    if (e.state_next != 0) entries_[e.state_next].state_prev = e.state_prev;
    if (e.state_prev != 0) {
      entries_[e.state_prev].state_next = e.state_next;
    } else {
      set.first_entry = e.state_next;
    }
  }
  e.state_prev = e.state_next = 0;
  // Release: a reader that sees the id sees the set behind it.
  e.state.store(target, std::memory_order_release);
  if (target != 0) {
    HolderSet& set = *holders_.Mutable(target);
    e.state_next = set.first_entry;
    if (set.first_entry != 0) entries_[set.first_entry].state_prev = id;
    set.first_entry = id;
  }
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
      if (set.entries > 0) cleanup_.push_back(state);
    }
    if (key.pool != 0) parts_.Retire(id);
    if (holders_.holder(id).memberships == 0) holders_.Recycle(id);
  }
}

bool PrefixIndex::CleanupSlice(std::size_t budget) {
  if (parts_.CleanupSlice(budget)) return true;
  while (budget > 0 && !cleanup_.empty()) {
    const StateId state = cleanup_.front();
    const HolderSet* set = holders_.Find(state);
    if (set == nullptr || !set->has_retired || set->entries == 0) {
      cleanup_.pop_front();
      continue;
    }
    const EntryId id = set->first_entry;
    --budget;
    if (set->live_engines.load(std::memory_order_relaxed) == 0) {
      PurgeAndRelease(id);
    } else {
      ForgetHolders(id);
    }
  }
  return !cleanup_.empty();
}

Sum128 PrefixIndex::HoldersDigest(const std::function<Sum128(StreamId)>& stream_mix) const {
  Sum128 total = 0;
  for (const auto& [key, id] : holders_.current()) {
    const Holder& holder = holders_.holder(id);
    if (!HasAnything(id)) continue;
    struct {
      Sum128 stream, context, sum;
      std::uint64_t tier, unproven;
    } facts = {stream_mix(key.stream), contexts_.context(key.context).key_mix, holder.sum,
               static_cast<std::uint64_t>(key.tier), key.unproven ? 1u : 0u};
    static_assert(sizeof(facts) == 64, "no padding: it would be mixed too");
    Sum128 mix = FactMix(&facts, sizeof(facts));
    if (key.pool != 0) {
      const Sum128 of_pool[] = {mix, pools_.Mix(key.pool)};
      mix = FactMix(of_pool, sizeof(of_pool));
    }
    total += mix;
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
