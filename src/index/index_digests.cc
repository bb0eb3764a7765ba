// Full digests of blocks: a run has one, of the last verified block; an entry has its own.
#include <algorithm>

#include "src/check.h"
#include "src/index/prefix_index.h"

namespace conductor {
namespace {

// Blocks that lie alone, nothing below them, keep their digests while there are at most this many
// of them: so many, or one of so many blocks.
constexpr std::size_t kLoneDigestsMin = 1u << 16;
constexpr std::size_t kBlocksPerLoneDigest = 64;
// Looked at for each that comes: as long as half of them may go, there are no more than wanted.
constexpr int kLoneLooks = 2;

constexpr std::uint32_t kSlotBits = 32 - kDigestIdBits;
static_assert(kRunSlotsMax == 1u << kSlotBits);

// Below a block whose extra keys were on the wire, one that was not compared is treated as a
// verified one. Elsewhere it would be known by name only: there digests stay.
bool IsLone(const RunTable::View& run) {
  return run.capacity == 1 && (run.run->facts & 1) != 0;
}

}  // namespace

void PrefixIndex::SetFullDigest(EntryId id, const Digest& digest) {
  if (IsInRun(id)) {
    // The last that came.
    const RunView run = runs_.ViewOf(id);
    AddRunDigest(run, run.SlotOf(id), digest);
    return;
  }
  Entry& e = entries_[id];
  const DigestId old = e.full_digest.load(std::memory_order_relaxed);
  if (old != 0 && digests_.At(old) == digest) return;
  e.full_digest.store(digests_.Add(digest), std::memory_order_release);
  if (old != 0) digests_.Retire(old);
}

// In the place of the one before.
void PrefixIndex::SetRunDigest(const RunView& run, DigestId id, std::uint32_t slot) {
  const std::uint32_t fresh = id == 0 ? 0 : (id << kSlotBits) | slot;
  const std::uint32_t before = run.run->full_digest.exchange(fresh, std::memory_order_acq_rel);
  if (before != 0) digests_.Retire(before >> kSlotBits);
}

void PrefixIndex::AddRunDigest(const RunView& run, std::uint32_t slot, const Digest& digest) {
  if (!IsLone(run)) return SetRunDigest(run, digests_.Add(digest), slot);
  SetRunDigest(run, digests_.AddLone(digest, run.base), slot);
  const std::size_t most =
      std::max(kLoneDigestsMin, slot_count_.load(std::memory_order_relaxed) / kBlocksPerLoneDigest);
  for (int looks = 0; looks < kLoneLooks && digests_.lone() > most; ++looks) {
    const EntryId owner = digests_.NextLone();
    if (owner == 0 || owner == run.base) continue;
    const RunView other = runs_.ViewOf(owner);
    if (other.children[0] == 0) SetRunDigest(other, 0, 0);
  }
}

// Of slots that move to the end of `to`, where `begin` becomes the first of them.
void PrefixIndex::MoveRunDigest(const RunView& from, std::uint32_t first, std::uint32_t count,
                                const RunView& to, std::uint32_t begin) {
  std::uint32_t at = 0;
  const DigestId id = DigestIdOf(from, &at);
  if (id == 0 || at < first || at >= first + count) return;
  if (DigestTable::IsLone(id) || IsLone(to)) {
    AddRunDigest(to, begin + at - first, digests_.At(id));
    SetRunDigest(from, 0, 0);
  } else {
    SetRunDigest(to, id, begin + at - first);
    from.run->full_digest.store(0, std::memory_order_relaxed);
  }
}

DigestId PrefixIndex::DigestIdOf(EntryId id) const {
  if (!IsInRun(id)) return entries_[id].full_digest.load(std::memory_order_acquire);
  std::uint32_t slot = 0;
  const RunView run = runs_.ViewOf(id);
  const DigestId digest = DigestIdOf(run, &slot);
  return slot == run.SlotOf(id) ? digest : 0;
}

std::optional<Digest> PrefixIndex::FindDigest(ContextId context, Scope scope,
                                              const BlockName& name) const {
  for (Scope s : {scope, kSharedScope}) {
    const EntryId id = FindLive(context, s, name);
    if (id == 0) continue;
    if (const DigestId digest = DigestIdOf(id)) return digests_.At(digest);
  }
  return std::nullopt;
}

}  // namespace conductor
