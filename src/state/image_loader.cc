#include "src/state/image_loader.h"

#include <algorithm>
#include <utility>

#include "src/hex.h"
#include "src/state/pool_slots.h"

namespace conductor {
namespace {

tl::unexpected<Error> Damaged(const std::string& what) {
  return MakeError(ErrorCode::kDataLoss, "image: " + what);
}

NameRef Ref(const ImageName& name) {
  return {name.projected, name.digest};
}

}  // namespace

ImageLoader::ImageLoader() : state_(std::make_unique<StateMachine>()), index_(state_->index_) {
  index_.contexts().BeginBulk();
}
ImageLoader::~ImageLoader() = default;

// --- tables --------------------------------------------------------------------------------------

Status ImageLoader::OnStart(const ImageStart& piece) {
  seq_ = piece.seq;
  next_stream_ = piece.next_stream;
  return {};
}

Status ImageLoader::OnContext(const ImageContext& piece) {
  const ContextId id = index_.contexts().FindOrAdd(piece.key);
  if (id == 0) return Damaged("more contexts than there may be");
  if (!contexts_.emplace(piece.id, id).second) {
    return Damaged("context " + std::to_string(piece.id) + " comes twice");
  }
  if (piece.profile) {
    index_.contexts().SetProfile(id, *piece.profile, piece.has_engine_profile);
  }
  return {};
}

Status ImageLoader::OnPool(const ImagePool& piece) {
  const PoolId id = index_.pools().FindOrAdd(piece.backend_id, piece.tenant_id);
  if (id == 0) return Damaged("more pools than there may be");
  if (!pools_.emplace(piece.id, id).second) {
    return Damaged("pool " + std::to_string(piece.id) + " comes twice");
  }
  return {};
}

Status ImageLoader::OnRegistration(const ImageRegistration& piece) {
  const Registration& registration = *piece.registration;
  if (piece.stream == 0 || piece.stream >= next_stream_) {
    return Damaged("stream " + std::to_string(piece.stream) + ", expected 1 to below " +
                   std::to_string(next_stream_));
  }
  if (state_->streams_.contains(piece.stream) || state_->by_key_.contains(registration.Key()) ||
      state_->by_endpoint_.contains(registration.EndpointKey())) {
    return Damaged("stream " + std::to_string(piece.stream) + " is registered twice");
  }
  index_.contexts().AddStream(piece.stream, registration.Context());
  StreamFacts& stream = state_->streams_[piece.stream];
  stream.id = piece.stream;
  stream.registration = registration;
  state_->by_key_[registration.Key()] = piece.stream;
  state_->by_endpoint_[registration.EndpointKey()] = piece.stream;
  if (registration.type == PublisherType::kMooncake) return {};
  const ContextId context = index_.contexts().Find(registration.Context());
  if (context == 0) {
    return Damaged("stream " + std::to_string(piece.stream) + " has no context");
  }
  index_.contexts().RowOf(context, piece.stream, registration.instance_id, registration.dp_rank);
  state_->JoinContext(stream, context);
  return {};
}

Status ImageLoader::OnHolder(const ImageHolder& piece) {
  const std::string name = "holder " + std::to_string(piece.id);
  CONDUCTOR_ASSIGN_OR_RETURN(const ContextId context, ContextOf(piece.key.context));
  const StreamFacts* stream = state_->FindStream(piece.key.stream);
  if (stream == nullptr) return Damaged(name + " of no stream");
  HolderKey key = piece.key;
  key.context = context;
  std::uint32_t row = kNoRow;
  if (key.pool != 0) {
    const auto pool = pools_.find(key.pool);
    if (pool == pools_.end()) return Damaged(name + " of no pool");
    key.pool = pool->second;
  } else {
    row = index_.contexts().RowOf(context, key.stream, stream->registration.instance_id,
                                  stream->registration.dp_rank);
  }
  if (index_.holders_.FindCurrent(key) != 0 || holders_.contains(piece.id)) {
    return Damaged(name + " comes twice");
  }
  holders_[piece.id] = {index_.holders_.Current(key, row), piece.sum, piece.blocks};
  return {};
}

Status ImageLoader::OnSet(const ImageSet& piece) {
  std::vector<HolderId> members;
  members.reserve(piece.holders.size());
  for (const HolderId id : piece.holders) {
    const auto found = holders_.find(id);
    if (found == holders_.end()) {
      return Damaged("set " + std::to_string(piece.id) + " has an unknown holder");
    }
    members.push_back(found->second.id);
  }
  std::sort(members.begin(), members.end());
  const bool twice = std::adjacent_find(members.begin(), members.end()) != members.end();
  const ContextId context = members.empty() ? 0 : index_.holders_.holder(members[0]).key.context;
  const bool one_context = std::all_of(members.begin(), members.end(), [&](HolderId id) {
    return index_.holders_.holder(id).key.context == context;
  });
  if (context == 0 || twice || !one_context) {
    return Damaged("set " + std::to_string(piece.id) + " is none");
  }
  if (!sets_.emplace(piece.id, index_.holders_.SetOf(std::move(members))).second) {
    return Damaged("set " + std::to_string(piece.id) + " comes twice");
  }
  return {};
}

Status ImageLoader::OnStream(const StreamFacts& piece) {
  const auto found = state_->streams_.find(piece.id);
  if (found == state_->streams_.end()) {
    return Damaged("facts of stream " + std::to_string(piece.id) + ", which is not registered");
  }
  StreamFacts& stream = found->second;
  Registration registration = std::move(stream.registration);
  const ContextId own_context = stream.own_context;
  stream = piece;
  stream.registration = std::move(registration);
  stream.own_context = own_context;
  stream.contexts.clear();
  for (const ContextId id : piece.contexts) {
    CONDUCTOR_ASSIGN_OR_RETURN(const ContextId context, ContextOf(id));
    stream.contexts.insert(context);
    if (stream.registration.type == PublisherType::kMooncake) continue;
    index_.contexts().RowOf(context, stream.id, stream.registration.instance_id,
                            stream.registration.dp_rank);
  }
  state_->ShowLostRanges(stream);
  return {};
}

// --- blocks --------------------------------------------------------------------------------------

Result<ContextId> ImageLoader::ContextOf(ContextId image_id) const {
  const auto found = contexts_.find(image_id);
  if (found == contexts_.end()) return Damaged("no context " + std::to_string(image_id));
  return found->second;
}

Result<StateId> ImageLoader::SetIdOf(StateId image_id, ContextId context) const {
  if (image_id == 0) return StateId{0};
  const auto found = sets_.find(image_id);
  if (found == sets_.end()) return Damaged("no set " + std::to_string(image_id));
  if (index_.holders_.Find(found->second)->context != context) {
    return Damaged("set " + std::to_string(image_id) + " is of another context");
  }
  return found->second;
}

EntryId ImageLoader::Parent(ContextId context, const ImageName& name) {
  return index_.FindOrAdd(context, name.scope, Ref(name));
}

// Whether a shared name has a block already; a place that its children wait for is none.
bool ImageLoader::IsTakenByEntry(ContextId context, std::uint64_t name) const {
  if (index_.contexts_.context(context).shared_entries == 0) return false;
  bool taken = false;
  index_.ForSpellings(context, kSharedScope, {name, {}},
                      [&](EntryId id) { taken = index_.StateOf(id) != 0; });
  return taken;
}

// A place that its children waited for becomes this slot.
void ImageLoader::TakeOverChildren(EntryId slot) {
  const ContextId context = index_.ContextOf(slot);
  EntryId entry = 0;
  index_.ForSpellings(context, kSharedScope, index_.NameOf(slot), [&](EntryId id) { entry = id; });
  if (entry == 0) return;
  while (const EntryId child = index_.entries_[entry].first_child) {
    index_.RemoveChild(entry, child);
    index_.SetParent(child, slot);
    index_.AddChild(slot, child);
  }
  index_.ReleaseIfUnused(entry);
}

Status ImageLoader::OnRun(const ImageRun& piece) {
  CONDUCTOR_ASSIGN_OR_RETURN(const ContextId context, ContextOf(piece.context));
  const auto size = static_cast<std::uint32_t>(piece.names.size());
  run_sets_.resize(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    const bool same = i > 0 && piece.sets[i] == piece.sets[i - 1];
    if (same) {
      run_sets_[i] = run_sets_[i - 1];
    } else {
      CONDUCTOR_ASSIGN_OR_RETURN(run_sets_[i], SetIdOf(piece.sets[i], context));
    }
    index_.slots_by_name_.Prefetch(PrefixIndex::NameHash(context, kSharedScope, piece.names[i]));
  }
  const EntryId parent = Parent(context, piece.parent);
  if (index_.HasTwinRun(parent, context, piece.fingerprints[0])) {
    return Damaged("two blocks with the content of block " + Hex64(piece.names[0]));
  }
  const RunTable::View run = index_.runs_.Allocate(size);
  run.run->context = context;
  run.run->facts = PrefixIndex::RunFacts(piece.check, piece.extra_keys_on_wire);
  run.run->parent.store(parent, std::memory_order_relaxed);
  std::copy(piece.fingerprints.begin(), piece.fingerprints.end(), run.fingerprints);
  std::copy(piece.names.begin(), piece.names.end(), run.names);
  run.run->written = static_cast<std::uint8_t>(size);
  run.run->size.store(static_cast<std::uint8_t>(size), std::memory_order_relaxed);
  index_.slot_count_.fetch_add(size, std::memory_order_relaxed);
  index_.AddChild(parent, run.base);
  index_.runs_by_link_.Insert(
      PrefixIndex::ContentHash(context, piece.parent.projected, piece.fingerprints[0]), run.base);
  const bool twins = index_.contexts_.context(context).shared_content.load() > 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint64_t name = piece.names[i];
    const EntryId before = index_.slots_by_name_.InsertUnless(
        PrefixIndex::NameHash(context, kSharedScope, name), run.base + i,
        [&](EntryId id) { return index_.runs_.Is(id, context, name); });
    if (before != 0 || IsTakenByEntry(context, name)) {
      return Damaged("block " + Hex64(name) + " comes twice");
    }
    run.states[i].store(0, std::memory_order_relaxed);
    if (twins) {
      index_.MarkTwinEntry(i == 0 ? parent : run.base + i - 1, context, piece.fingerprints[i]);
    }
    if (index_.contexts_.context(context).shared_entries > 0) TakeOverChildren(run.base + i);
  }
  for (std::uint32_t begin = 0, end = 0; begin < size; begin = end) {
    for (end = begin + 1; end < size && run_sets_[end] == run_sets_[begin];) ++end;
    if (run_sets_[begin] != 0) AddHolders(run, begin, end);
  }
  if (piece.digest != nullptr) {
    index_.SetFullDigest(run.base + piece.digest_slot, *piece.digest);
  }
  blocks_ += size;
  return {};
}

void ImageLoader::AddHolders(const RunTable::View& run, std::uint32_t begin, std::uint32_t end) {
  const StateId set = run_sets_[begin];
  index_.SetStates(run, begin, end - begin, set);
  const Sum128 mix = index_.MixRange(run, begin, end - begin);
  const HolderSet& members = *index_.holders_.Find(set);
  for (std::uint32_t i = 0; i < members.size; ++i) {
    Holder& holder = index_.holders_.holder(members.holders[i]);
    if (holder.key.pool == 0) holder.sum += mix;
    holder.blocks.fetch_add(end - begin, std::memory_order_relaxed);
    holder.memberships += end - begin;
  }
}

Status ImageLoader::OnEntry(const ImageEntry& piece) {
  CONDUCTOR_ASSIGN_OR_RETURN(const ContextId context, ContextOf(piece.context));
  CONDUCTOR_ASSIGN_OR_RETURN(const StateId set, SetIdOf(piece.set, context));
  const EntryId id = index_.FindOrAdd(context, piece.name.scope, Ref(piece.name));
  if (set == 0 || IsInRun(id) || index_.StateOf(id) != 0) {
    return Damaged("block " + Hex64(piece.name.projected) + " comes twice, or is nobody's");
  }
  if (piece.parent) {
    const EntryId parent = Parent(context, *piece.parent);
    if (parent == id) return Damaged("block " + Hex64(piece.name.projected) + " is its own parent");
    index_.SetLink(id, parent,
                   {piece.fingerprint, piece.length, piece.check, piece.extra_keys_on_wire},
                   piece.block_class);
  } else {
    index_.entries_[id].check = piece.check;
    index_.SetClass(id, piece.block_class);
  }
  index_.MoveState(id, set);
  const Sum128 mix = index_.Mix(id, 1);
  const HolderSet& members = *index_.holders_.Find(set);
  for (std::uint32_t i = 0; i < members.size; ++i) {
    Holder& holder = index_.holders_.holder(members.holders[i]);
    if (holder.key.pool == 0) holder.sum += mix;
    holder.blocks.fetch_add(1, std::memory_order_relaxed);
    ++holder.memberships;
  }
  if (piece.digest != nullptr) index_.SetFullDigest(id, *piece.digest);
  ++blocks_;
  return {};
}

Status ImageLoader::OnCopies(const ImageCopies& piece) {
  const auto holder = holders_.find(piece.holder);
  if (holder == holders_.end()) {
    return Damaged("copies of unknown holder " + std::to_string(piece.holder));
  }
  const HolderId id = holder->second.id;
  copies_.push_back({id, index_.holders_.holder(id).key.context, piece.name.scope,
                     piece.name.projected, std::string(piece.name.digest), piece.copies});
  return {};
}

Status ImageLoader::PlaceCopies(const PendingCopies& pending) {
  const EntryId id =
      index_.FindName(pending.context, pending.scope, {pending.projected, pending.digest});
  const HolderSet* set = id == 0 ? nullptr : index_.holders_.Find(index_.StateOf(id));
  if (set == nullptr || !set->Contains(pending.holder) || pending.copies < 2 ||
      pending.copies > kCopiesMax || index_.Copies(id, pending.holder) != 1) {
    return Damaged(std::to_string(pending.copies) + " copies of block " + Hex64(pending.projected) +
                   ", which its holder has not");
  }
  Sum128& sum = index_.holders_.holder(pending.holder).sum;
  sum -= index_.Mix(id, 1);
  index_.SetCopies(id, pending.holder, pending.copies);
  sum += index_.Mix(id, pending.copies);
  return {};
}

Status ImageLoader::OnParts(const ImageParts& piece) {
  const auto found = holders_.find(piece.holder);
  if (found == holders_.end()) {
    return Damaged("parts of unknown holder " + std::to_string(piece.holder));
  }
  const HolderId id = found->second.id;
  const HolderKey& key = index_.holders_.holder(id).key;
  if (key.pool == 0 || index_.parts_.Knows(id, piece.name)) {
    return Damaged("parts of block " + Hex64(piece.name) + " of no pool, or twice");
  }
  PoolArrival object;
  object.context = key.context;
  object.name = piece.name;
  object.parts_needed = PartSlotsNeeded(state_->streams_.at(key.stream).registration.pool_parts);
  const PartTable::Change change = index_.parts_.Set(id, object.parts_needed, piece.name,
                                                     {piece.parts.begin(), piece.parts.end()});
  index_.MixParts(id, object, change);
  return {};
}

// --- the end -------------------------------------------------------------------------------------

Status ImageLoader::OnEnd(const ImageEnd& piece) {
  for (const PendingCopies& pending : copies_) CONDUCTOR_RETURN_IF_ERROR(PlaceCopies(pending));
  copies_.clear();
  index_.contexts().EndBulk();
  index_.contexts().SkipStreams(next_stream_);
  state_->next_stream_ = next_stream_;
  for (const auto& [image_id, id] : sets_) {
    if (index_.holders_.Find(id)->entries == 0) index_.holders_.NoteEmpty(id);
  }
  index_.Reclaim();
  return CheckSums(piece);
}

Status ImageLoader::CheckSums(const ImageEnd& piece) const {
  for (const auto& [image_id, expected] : holders_) {
    const Holder& holder = index_.holders_.holder(expected.id);
    const std::uint64_t blocks = holder.blocks.load(std::memory_order_relaxed);
    if (blocks != expected.blocks || holder.sum != expected.sum) {
      return Damaged("holder " + std::to_string(image_id) + " of stream " +
                     std::to_string(holder.key.stream) + " has " + std::to_string(blocks) +
                     " blocks of sum " + Hex128(holder.sum) + ", expected " +
                     std::to_string(expected.blocks) + " of sum " + Hex128(expected.sum));
    }
  }
  if (index_.blocks() != piece.blocks || index_.fragments() != piece.fragments) {
    return Damaged(std::to_string(index_.blocks()) + " blocks, " +
                   std::to_string(index_.fragments()) + " of them by name only, expected " +
                   std::to_string(piece.blocks) + " and " + std::to_string(piece.fragments));
  }
  const Sum128 digest = state_->Digest();
  if (digest != piece.digest) {
    return Damaged("the state's digest is " + Hex128(digest) + ", expected " +
                   Hex128(piece.digest));
  }
  return {};
}

}  // namespace conductor
