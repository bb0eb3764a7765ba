// The pieces of PieceDecoder that there are many of: sets, runs, entries and what belongs to them.
#include <algorithm>

#include "src/limits.h"
#include "storage/piece_decoder.h"
#include "storage/record_check.h"
#include "storage/stream_counters.h"

namespace conductor::storage {
namespace {

std::string Number(std::uint64_t value) {
  return std::to_string(value);
}

}  // namespace

Status PieceDecoder::Set(FieldReader& in) {
  const auto id = in.Take<StateId>();
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint8_t flags, TakeFlags(in, kSetContinues));
  const auto count = in.Take<std::uint32_t>();
  if (!in.ok()) return Short();
  if (count == 0 || count > kIdsPerPieceMax) {
    return Damaged(Number(count) + " holders, expected 1 to " + Number(kIdsPerPieceMax));
  }
  if (open_set_ != 0 && id != open_set_) {
    return Damaged("id " + Number(id) + ", expected " + Number(open_set_) + " to go on");
  }
  if (open_set_ == 0) set_holders_.clear();
  if (count > in.left() / sizeof(HolderId)) return Short();
  const std::size_t before = set_holders_.size();
  set_holders_.resize(before + count);
  in.TakeArray(std::span<HolderId>(set_holders_).subspan(before));
  const ContextId context = holders_.Find(set_holders_[0]);
  for (std::size_t i = before; i < set_holders_.size(); ++i) {
    const HolderId holder = set_holders_[i];
    if (holders_.Find(holder) == 0) {
      return Damaged("holder " + Number(holder) + ", expected one that came before");
    }
    if (i > 0 && holder <= set_holders_[i - 1]) {
      return Damaged("holder " + Number(holder) + " behind " + Number(set_holders_[i - 1]));
    }
    if (holders_.Find(holder) != context) {
      return Damaged("holder " + Number(holder) + " of context " + Number(holders_.Find(holder)) +
                     ", expected one of " + Number(context));
    }
  }
  open_set_ = (flags & kSetContinues) != 0 ? id : 0;
  if (open_set_ != 0) {
    if (id == 0) return Damaged("id 0");
    return {};
  }
  if (!sets_.Add(id, context)) return Damaged("id " + Number(id) + ", expected a new one");
  return visitor_.OnSet({id, set_holders_});
}

// `stretches` pairs (count, set); neighbours differ, the last one is somebody's.
Status PieceDecoder::RunSets(FieldReader& in, std::size_t size, std::size_t stretches,
                             ContextId context) {
  std::size_t filled = 0;
  StateId last = 0;
  for (std::size_t i = 0; i < stretches; ++i) {
    const std::size_t count = in.Take<std::uint8_t>();
    const auto set = in.Take<StateId>();
    if (!in.ok()) return Short();
    if (count == 0 || count > size - filled) {
      return Damaged("a stretch of " + Number(count) + " behind " + Number(filled) + " of " +
                     Number(size) + " slots");
    }
    if (i > 0 && set == last) return Damaged("set " + Number(set) + " in two stretches");
    if (set != 0) CONDUCTOR_RETURN_IF_ERROR(CheckSet(set, context));
    std::fill_n(run_sets_.begin() + static_cast<std::ptrdiff_t>(filled), count, set);
    filled += count;
    last = set;
  }
  if (filled != size) return Damaged(Number(filled) + " sets, expected " + Number(size));
  if (last == 0) return Damaged("nobody at the end");
  return {};
}

Status PieceDecoder::Run(FieldReader& in) {
  ImageRun run;
  run.context = in.Take<ContextId>();
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint8_t flags,
                             TakeFlags(in, kRunHasExtraKeys | kRunHasDigest));
  run.extra_keys_on_wire = (flags & kRunHasExtraKeys) != 0;
  CONDUCTOR_ASSIGN_OR_RETURN(run.check, TakeEnum<HashCheck>(in, "check"));
  const std::size_t size = in.Take<std::uint8_t>();
  const std::size_t stretches = in.Take<std::uint8_t>();
  CONDUCTOR_ASSIGN_OR_RETURN(run.parent, TakeName(in));
  CONDUCTOR_RETURN_IF_ERROR(CheckContext(run.context));
  if (size == 0 || size > kRunSlotsMax) {
    return Damaged(Number(size) + " slots, expected 1 to " + Number(kRunSlotsMax));
  }
  CONDUCTOR_RETURN_IF_ERROR(RunSets(in, size, stretches, run.context));
  in.TakeArray(std::span<std::uint64_t>(fingerprints_).first(size));
  in.TakeArray(std::span<std::uint64_t>(names_).first(size));
  const bool has_digest = (flags & kRunHasDigest) != 0;
  if (has_digest) run.digest_slot = in.Take<std::uint8_t>();
  CONDUCTOR_ASSIGN_OR_RETURN(run.digest, TakeDigest(in, has_digest));
  if (!in.ok()) return Short();
  if (run.digest_slot >= size) {
    return Damaged("digest of slot " + Number(run.digest_slot) + " of " + Number(size));
  }
  run.fingerprints = std::span(fingerprints_).first(size);
  run.names = std::span(names_).first(size);
  run.sets = std::span(run_sets_).first(size);
  return visitor_.OnRun(run);
}

Status PieceDecoder::Entry(FieldReader& in) {
  ImageEntry entry;
  entry.context = in.Take<ContextId>();
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint8_t flags,
                             TakeFlags(in, kEntryHasExtraKeys | kEntryHasDigest | kEntryHasParent));
  entry.extra_keys_on_wire = (flags & kEntryHasExtraKeys) != 0;
  CONDUCTOR_ASSIGN_OR_RETURN(entry.check, TakeEnum<HashCheck>(in, "check"));
  const auto block_class = in.Take<std::uint8_t>();
  entry.set = in.Take<StateId>();
  entry.length = in.Take<std::uint32_t>();
  entry.fingerprint = in.Take<std::uint64_t>();
  CONDUCTOR_ASSIGN_OR_RETURN(entry.name, TakeName(in));
  if ((flags & kEntryHasParent) != 0) {
    CONDUCTOR_ASSIGN_OR_RETURN(entry.parent, TakeName(in));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(entry.digest, TakeDigest(in, (flags & kEntryHasDigest) != 0));
  CONDUCTOR_RETURN_IF_ERROR(CheckContext(entry.context));
  CONDUCTOR_RETURN_IF_ERROR(CheckSet(entry.set, entry.context));
  if (block_class > static_cast<std::uint8_t>(BlockClass::kOrphan)) {
    return Newer("class " + Number(block_class));
  }
  entry.block_class = static_cast<BlockClass>(block_class);
  if (entry.name.scope == kRootScope) return Damaged("a root's name, expected a block's");
  if (entry.length > kBlockSizeMax) {
    return Damaged("length " + Number(entry.length) + ", expected at most " +
                   Number(kBlockSizeMax));
  }
  return visitor_.OnEntry(entry);
}

Status PieceDecoder::Copies(FieldReader& in) {
  ImageCopies copies;
  copies.holder = in.Take<HolderId>();
  copies.copies = in.Take<std::uint32_t>();
  CONDUCTOR_ASSIGN_OR_RETURN(copies.name, TakeName(in));
  if (holders_.Find(copies.holder) == 0) {
    return Damaged("holder " + Number(copies.holder) + ", expected one that came before");
  }
  if (copies.copies < 2 || copies.copies > kCopiesMax) {
    return Damaged(Number(copies.copies) + " copies, expected 2 to " + Number(kCopiesMax));
  }
  return visitor_.OnCopies(copies);
}

Status PieceDecoder::Parts(FieldReader& in) {
  ImageParts parts;
  parts.holder = in.Take<HolderId>();
  parts.name = in.Take<std::uint64_t>();
  const auto count = in.Take<std::uint32_t>();
  if (!in.ok()) return Short();
  if (holders_.Find(parts.holder) == 0) {
    return Damaged("holder " + Number(parts.holder) + ", expected one that came before");
  }
  if (count == 0 || count > kPartsPerBlockMax) {
    return Damaged(Number(count) + " parts, expected 1 to " + Number(kPartsPerBlockMax));
  }
  parts_.resize(count);
  for (PartTable::Part& part : parts_) {
    part.slot = in.Take<std::uint64_t>();
    part.id = in.Take<std::uint64_t>();
  }
  if (!in.ok()) return Short();
  const auto unordered = std::adjacent_find(parts_.begin(), parts_.end(),
                                            [](const auto& a, const auto& b) { return a >= b; });
  if (unordered != parts_.end()) return Damaged("parts are not ascending");
  parts.parts = parts_;
  return visitor_.OnParts(parts);
}

Status PieceDecoder::StreamContexts(FieldReader& in) {
  CONDUCTOR_ASSIGN_OR_RETURN(Stream * stream, FindIncompleteStream(in.Take<StreamId>()));
  const auto count = in.Take<std::uint32_t>();
  if (count == 0 || count > kIdsPerPieceMax) {
    return Damaged(Number(count) + " contexts, expected 1 to " + Number(kIdsPerPieceMax));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto context = in.Take<ContextId>();
    if (!in.ok()) return Short();
    CONDUCTOR_RETURN_IF_ERROR(CheckContext(context));
    if (!stream->contexts.insert(context).second) {
      return Damaged("context " + Number(context) + " a second time");
    }
  }
  return {};
}

Status PieceDecoder::OneStream(FieldReader& in) {
  StreamFacts facts;
  facts.id = in.Take<StreamId>();
  CONDUCTOR_ASSIGN_OR_RETURN(Stream * stream, FindIncompleteStream(facts.id));
  constexpr std::uint8_t kFlags = kStreamHasCursor | kStreamHasHistoryFrom |
                                  kStreamHasCountingGroup | kStreamVerifiedEver |
                                  kStreamDiffersEver | kStreamSeenFullSize;
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint8_t flags, TakeFlags(in, kFlags));
  CONDUCTOR_ASSIGN_OR_RETURN(facts.unverified_blocks,
                             TakeEnum<UnverifiedBlocks>(in, "unverified_blocks"));
  facts.epoch = in.Take<std::uint64_t>();
  const auto optional = [&](std::uint8_t flag, auto value, auto* out) {
    if ((flags & flag) != 0) *out = value;
    return (flags & flag) != 0 || value == 0;
  };
  bool right = optional(kStreamHasCursor, in.Take<std::uint64_t>(), &facts.cursor);
  right &= optional(kStreamHasHistoryFrom, in.Take<std::uint64_t>(), &facts.history_from);
  right &= optional(kStreamHasCountingGroup, in.Take<std::int64_t>(), &facts.counting_group);
  facts.verified_ever = (flags & kStreamVerifiedEver) != 0;
  facts.differs_ever = (flags & kStreamDiffersEver) != 0;
  facts.seen_full_size_block = (flags & kStreamSeenFullSize) != 0;
  facts.last_publisher_time_us = in.Take<std::int64_t>();
  for (std::uint64_t* counter : StreamCounters(facts)) *counter = in.Take<std::uint64_t>();
  in.TakeArray(std::span<std::uint64_t>(facts.ignored).subspan(1));
  CONDUCTOR_ASSIGN_OR_RETURN(facts.publisher_epoch, TakeText(in, "publisher_epoch"));
  if (!right) return Damaged("a value that its flag says is not there");
  if (facts.epoch == 0) return Damaged("epoch 0");
  CONDUCTOR_RETURN_IF_ERROR(StreamLists(in, &facts));
  facts.contexts = std::exchange(stream->contexts, {});
  stream->complete = true;
  ++streams_complete_;
  return visitor_.OnStream(facts);
}

Status PieceDecoder::StreamLists(FieldReader& in, StreamFacts* facts) {
  const std::size_t lost = in.Take<std::uint16_t>();
  const std::size_t recent = in.Take<std::uint16_t>();
  if (lost > kLostRangesPerStreamMax || recent > kRecentFingerprintsPerStream) {
    return Damaged(Number(lost) + " lost ranges and " + Number(recent) +
                   " recent frames, expected at most " + Number(kLostRangesPerStreamMax) + " and " +
                   Number(kRecentFingerprintsPerStream));
  }
  const auto pair = [&in] {
    const auto first = in.Take<std::uint64_t>();
    return std::pair(first, in.Take<std::uint64_t>());
  };
  for (std::size_t i = 0; i < lost; ++i) {
    facts->lost.push_back(pair());
    if (facts->lost.back().first > facts->lost.back().second) {
      return Damaged("lost range from " + Number(facts->lost.back().first) + " to " +
                     Number(facts->lost.back().second));
    }
  }
  for (std::size_t i = 0; i < recent; ++i) facts->recent.push_back(pair());
  if (!in.ok()) return Short();
  return {};
}

}  // namespace conductor::storage
