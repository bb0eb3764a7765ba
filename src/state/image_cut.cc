#include "src/state/image_cut.h"

#include <algorithm>
#include <utility>

#include "src/check.h"

namespace conductor {
namespace {

// What it costs to hand one over, in blocks.
constexpr std::size_t kBlocksPerRegistration = 512;
constexpr std::size_t kBlocksPerHolder = 64;
constexpr std::size_t kBlocksPerWaitingPiece = 64;
constexpr std::size_t kBlocksPerSet = 64;  // and one for each holder in it

}  // namespace

ImageCut::ImageCut(StateMachine& state, Seq seq, ImageVisitor& visitor)
    : state_(state),
      index_(state.index_),
      visitor_(visitor),
      next_stream_(state.next_stream_),
      end_entry_(index_.entries_.end_id()),
      copy_shards_(index_.copies_.shard_count()),
      slots_(index_.entries_in_memory()) {
  CHECK(state.cut_ == nullptr);
  end_.blocks = index_.blocks();
  end_.fragments = index_.fragments();
  HandOverTables(seq);
  NoteHolders();
  state.cut_ = this;
  index_.SetWatch(this);
}

ImageCut::~ImageCut() {
  state_.cut_ = nullptr;
  index_.SetWatch(nullptr);
}

double ImageCut::fraction() const {
  if (phase_ == Phase::kDone) return 1;
  return slots_ == 0 ? 0 : std::min(1.0, static_cast<double>(saved_) / static_cast<double>(slots_));
}

// --- at once -------------------------------------------------------------------------------------

void ImageCut::HandOverTables(Seq seq) {
  Take(visitor_.OnStart({seq, next_stream_}));
  const ContextTable& contexts = index_.contexts();
  for (ContextId id = 1; id < contexts.end_id(); ++id) {
    const Context& context = contexts.context(id);
    ImageContext piece{id, context.key, std::nullopt, context.has_engine_profile};
    if (const ContextProfile* profile = context.profile.load(std::memory_order_relaxed)) {
      piece.profile = profile->profile;
    }
    Take(visitor_.OnContext(piece));
  }
  index_.pools_.ForEach([&](PoolId id, const std::string& backend, const std::string& tenant) {
    Take(visitor_.OnPool({id, backend, tenant}));
  });
}

void ImageCut::NoteHolders() {
  holders_.reserve(index_.holders_.current().size());
  holder_at_.resize(index_.holders_.end_id());
  for (HolderId id = 1; id < index_.holders_.end_id(); ++id) {
    const Holder& holder = index_.holders_.holder(id);
    if (!holder.current) continue;
    const HolderKey& key = holder.key;
    const std::uint64_t blocks = holder.blocks.load(std::memory_order_relaxed);
    const bool counts = blocks > 0 || (key.pool != 0 && index_.parts_.HasAny(id));
    holders_.push_back({{id, key, holder.sum, blocks}, index_.NamesOfHolder(key), counts});
    holder_at_[id] = static_cast<std::uint32_t>(holders_.size());
    if (key.pool == 0) continue;
    const PartTable::Names* names = index_.parts_.NamesOf(id);
    if (names != nullptr) pools_.push_back({id, names, names->shard_count(), {}});
  }
}

// --- in steps ------------------------------------------------------------------------------------

bool ImageCut::Step(std::size_t budget) {
  std::size_t done = 0;
  while (done < budget && phase_ != Phase::kDone && status_) done += StepOnce();
  return phase_ == Phase::kDone || !status_;
}

// One piece, or the next phase. Returns about how many blocks that was, at least 1.
std::size_t ImageCut::StepOnce() {
  const auto next_phase = [this](Phase phase) -> std::size_t {
    phase_ = phase;
    return 1;
  };
  switch (phase_) {
    case Phase::kRegistrations: {
      const auto it = state_.streams_.lower_bound(registration_);
      if (it == state_.streams_.end() || it->first >= next_stream_) {
        return next_phase(Phase::kHolders);
      }
      registration_ = it->first + 1;
      SaveRegistration(it->first);
      return kBlocksPerRegistration;
    }
    case Phase::kHolders:
      if (holder_ >= holders_.size()) return next_phase(Phase::kWaiting);
      SaveHolder(holders_[holder_++]);
      return kBlocksPerHolder;
    case Phase::kWaiting:
      if (waiting_.Empty()) return next_phase(Phase::kRuns);
      Take(waiting_.PlayNext(visitor_));
      return kBlocksPerWaitingPiece;
    case Phase::kRuns: {
      RunTable::View run;
      if (!index_.runs_.NextRun(&run_position_, &run)) return next_phase(Phase::kEntries);
      return runs_.Has(run.base & ~kInRun) ? 1 : SaveRun(run) + std::exchange(set_cost_, 0);
    }
    case Phase::kEntries:
      if (entry_ >= end_entry_) return next_phase(Phase::kCopies);
      if (entries_.Has(entry_)) return ++entry_, 1;
      return SaveEntry(entry_++) + std::exchange(set_cost_, 0);
    case Phase::kCopies:
      if (copy_shard_ >= copy_shards_) return next_phase(Phase::kParts);
      return SaveCopies(copy_shard_++);
    case Phase::kParts:
      if (pool_ >= pools_.size()) return next_phase(Phase::kStreams);
      if (part_shard_ >= pools_[pool_].shards) {
        ++pool_;
        part_shard_ = 0;
        return 1;
      }
      return SaveParts(pools_[pool_], part_shard_++);
    case Phase::kStreams: {
      const auto it = state_.streams_.lower_bound(stream_);
      if (it == state_.streams_.end() || it->first >= next_stream_) return next_phase(Phase::kEnd);
      stream_ = it->first + 1;
      BeforeStream(it->second);
      return kRecentFingerprintsPerStream;  // which it has at most, and costs like so many blocks
    }
    case Phase::kEnd:
      Take(visitor_.OnEnd(end_));
      return next_phase(Phase::kDone);
    case Phase::kDone:
      break;
  }
  return 1;
}

// --- at the last moment --------------------------------------------------------------------------

// Behind the cursors everything is saved; before them, what is marked.
void ImageCut::BeforeBlock(EntryId id) {
  if (IsInRun(id)) {
    const RunTable::View run = index_.runs_.ViewOf(id);
    const std::size_t position = run.base & ~kInRun;
    if (phase_ > Phase::kRuns || position < run_position_ || runs_.Has(position)) return;
    runs_.Add(position);
    SaveRun(run);
  } else if (phase_ <= Phase::kEntries && id >= entry_ && id < end_entry_ && !entries_.Has(id)) {
    entries_.Add(id);
    SaveEntry(id);
  }
}

void ImageCut::OnNewBlock(EntryId id) {
  if (IsInRun(id)) {
    if (phase_ <= Phase::kRuns && (id & ~kInRun) >= run_position_) runs_.Add(id & ~kInRun);
  } else if (phase_ <= Phase::kEntries && id >= entry_ && id < end_entry_) {
    entries_.Add(id);
  }
}

void ImageCut::BeforeCopies(std::uint32_t shard) {
  SaveCopies(shard);
}

void ImageCut::BeforeParts(const void* names, std::uint32_t shard) {
  for (PoolNames& pool : pools_) {
    if (pool.names == names) SaveParts(pool, shard);
  }
}

void ImageCut::BeforeStream(const StreamFacts& stream) {
  if (stream.id >= next_stream_ || !streams_.insert(stream.id).second) return;
  SaveRegistration(stream.id);
  SaveStream(stream);
}

// --- pieces --------------------------------------------------------------------------------------

ImageName ImageCut::NameOf(EntryId id) const {
  const NameRef name = index_.NameOf(id);
  return {index_.ScopeOf(id), name.projected, name.digest};
}

// A stream that was there at the beginning is still there, or was handed over before it went.
Sum128 ImageCut::SaveRegistration(StreamId id) {
  const auto [it, inserted] = registrations_.try_emplace(id);
  if (inserted) {
    const StreamFacts& stream = state_.streams_.at(id);
    it->second = stream.IdentityMix();
    Take(visitor_.OnRegistration({id, &stream.registration}));
  }
  return it->second;
}

void ImageCut::SaveHolder(const HolderThen& holder) {
  const ImageHolder& piece = holder.piece;
  const Sum128 stream_mix = SaveRegistration(piece.key.stream);
  Take(visitor_.OnHolder(piece));
  if (!holder.counts) return;
  end_.digest += PrefixIndex::HolderMix(piece.key, holder.names, piece.sum, stream_mix);
}

StateId ImageCut::SaveSet(StateId id) {
  if (id == 0) return 0;
  if (id >= sets_.size()) sets_.resize(id + id / 2 + 64, SetFate::kUnknown);
  if (sets_[id] == SetFate::kUnknown) {
    const HolderSet& set = *index_.holders_.Find(id);
    members_.clear();
    bool engine = false;
    for (std::uint32_t i = 0; i < set.size; ++i) {
      const HolderThen* const holder = HolderAt(set.holders[i]);
      if (holder == nullptr) continue;
      members_.push_back(holder->piece.id);
      engine = engine || holder->piece.key.pool == 0;
    }
    sets_[id] = members_.empty() ? SetFate::kNobody : engine ? SetFate::kBlock : SetFate::kName;
    if (!members_.empty()) Take(blocks().OnSet({id, members_}));
    set_cost_ += kBlocksPerSet + members_.size();
  }
  return sets_[id] == SetFate::kNobody ? 0 : id;
}

std::size_t ImageCut::SaveRun(const RunTable::View& run) {
  if (!status_) return 1;
  std::uint32_t size = run.size();
  saved_ += size;
  run_sets_.resize(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    const StateId set = run.states[i].load(std::memory_order_relaxed);
    const bool same = i > 0 && set == run.states[i - 1].load(std::memory_order_relaxed);
    run_sets_[i] = same ? run_sets_[i - 1] : SaveSet(set);
  }
  while (size > 0 && run_sets_[size - 1] == 0) --size;
  if (size == 0) return 1;
  ImageRun piece;
  piece.context = run.run->context;
  piece.check = PrefixIndex::CheckOf(run.run->facts);
  piece.extra_keys_on_wire = (run.run->facts & 1) != 0;
  piece.parent = NameOf(run.run->parent.load(std::memory_order_relaxed));
  piece.fingerprints = {run.fingerprints, size};
  piece.names = {run.names, size};
  piece.sets = {run_sets_.data(), size};
  std::uint32_t digest_slot = 0;
  const DigestId digest = PrefixIndex::DigestIdOf(run, &digest_slot);
  if (digest != 0 && digest_slot < size) {
    piece.digest_slot = digest_slot;
    piece.digest = &index_.DigestAt(digest);
  }
  Take(blocks().OnRun(piece));
  return size;
}

std::size_t ImageCut::SaveEntry(EntryId id) {
  if (!status_) return 1;
  const Entry& e = index_.entries_[id];
  if (!e.in_use) return 1;
  ++saved_;
  ImageEntry piece;
  piece.set = SaveSet(e.state.load(std::memory_order_relaxed));
  if (piece.set == 0) return 1;
  piece.context = e.context;
  piece.name = NameOf(id);
  // What only pools have is a name: it has no link, even where it has not been cleaned up yet.
  if (HasEngine(piece.set)) {
    piece.block_class = e.block_class.load(std::memory_order_relaxed);
    piece.check = e.check;
    if (const EntryId parent = e.parent.load(std::memory_order_relaxed)) {
      piece.parent = NameOf(parent);
      piece.fingerprint = e.fingerprint.load(std::memory_order_relaxed);
      piece.length = e.length.load(std::memory_order_relaxed);
      piece.extra_keys_on_wire = e.extra_keys_on_wire;
    }
    if (const std::uint32_t digest = e.full_digest.load(std::memory_order_relaxed)) {
      piece.digest = &index_.DigestAt(digest);
    }
  }
  Take(blocks().OnEntry(piece));
  return 1;
}

std::size_t ImageCut::SaveCopies(std::uint32_t shard) {
  if (!status_ || shard >= copy_shards_ || copies_.Has(shard)) return 1;
  copies_.Add(shard);
  std::size_t count = 1;
  index_.copies_.ForShard(shard, [&](const CopyKey& key, std::uint32_t copies) {
    if (HolderAt(key.holder) == nullptr) return;
    ++count;
    const ImageName name =
        key.entry == 0 ? ImageName{kSharedScope, key.name, {}} : NameOf(key.entry);
    Take(blocks().OnCopies({key.holder, name, copies}));
  });
  return count;
}

std::size_t ImageCut::SaveParts(PoolNames& pool, std::uint32_t shard) {
  if (!status_ || shard >= pool.shards || pool.done.Has(shard)) return 1;
  pool.done.Add(shard);
  std::size_t count = 1;
  pool.names->ForShard(shard, [&](std::uint64_t name, PartTable::SetId parts) {
    ++count;
    Take(blocks().OnParts({pool.holder, name, index_.parts_.PartsOf(parts)}));
  });
  return count;
}

void ImageCut::SaveStream(const StreamFacts& stream) {
  if (!status_) return;
  end_.digest += stream.FactsMix();
  Take(visitor_.OnStream(stream));
}

}  // namespace conductor
