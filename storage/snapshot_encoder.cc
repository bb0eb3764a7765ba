#include "storage/snapshot_encoder.h"

#include <algorithm>
#include <utility>

#include "src/hash/xxh3.h"
#include "src/limits.h"
#include "storage/field_bytes.h"
#include "storage/log_format.h"
#include "storage/record_codec.h"
#include "storage/stream_counters.h"

namespace conductor::storage {
namespace {

std::span<const std::uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

tl::unexpected<Error> Refuse(const std::string& what) {
  return MakeError(ErrorCode::kInvalidArgument, "image: " + what);
}

Status CheckText(const char* field, std::string_view text) {
  if (text.size() <= kNameBytesMax) return {};
  return Refuse(std::string(field) + " of " + std::to_string(text.size()) +
                " bytes, expected at most " + std::to_string(kNameBytesMax));
}

Status CheckName(const ImageName& name) {
  const std::size_t size = name.digest.size();
  if (size == 0 || (size >= kBlockDigestBytesMin && size <= kBlockDigestBytesMax)) return {};
  return Refuse("name with a digest of " + std::to_string(size) + " bytes");
}

// States of a run as (count, set) pairs: neighbours differ.
class SetStretches {
 public:
  explicit SetStretches(std::span<const StateId> sets) {
    for (std::size_t begin = 0; begin < sets.size();) {
      std::size_t end = begin + 1;
      while (end < sets.size() && sets[end] == sets[begin]) ++end;
      bytes_[used_++] = static_cast<char>(end - begin);
      std::memcpy(&bytes_[used_], &sets[begin], sizeof(StateId));
      used_ += sizeof(StateId);
      ++count_;
      begin = end;
    }
  }
  std::uint8_t count() const { return count_; }
  std::string_view bytes() const { return {bytes_.data(), used_}; }

 private:
  std::array<char, kRunSlotsMax*(1 + sizeof(StateId))> bytes_;
  std::size_t used_ = 0;
  std::uint8_t count_ = 0;
};

}  // namespace

std::string SnapshotEncoder::Take() {
  return std::exchange(ready_, {});
}

void SnapshotEncoder::BeginFrame() {
  // A string of its own for each frame, of the size that it will have: it is never copied while it
  // grows, nor when it is taken alone.
  frame_.reserve(kFrameTargetBytes + kFrameTargetBytes / 16);
  frame_.assign(kFrameHeadBytes, '\0');
}

void SnapshotEncoder::FinishFrame(FrameType type) {
  std::string head;
  FieldWriter out(head);
  out.Put(static_cast<std::uint32_t>(type));
  out.Put(static_cast<std::uint32_t>(frame_.size() - kFrameHeadBytes));
  out.Put(++frames_);
  frame_.replace(0, kFrameHeadBytes, head);
  FieldWriter(frame_).Put(Xxh3(AsBytes(frame_), seq_));
  if (ready_.empty()) {
    ready_ = std::move(frame_);
  } else {
    ready_ += frame_;
  }
  frame_.clear();
}

void SnapshotEncoder::BeginPiece(PieceKind kind) {
  if (frame_.empty()) BeginFrame();
  FieldWriter(frame_).Put(static_cast<std::uint8_t>(kind));
  ++pieces_[static_cast<std::size_t>(kind) - 1];
}

Status SnapshotEncoder::EndPiece() {
  if (frame_.size() >= kFrameTargetBytes) FinishFrame(FrameType::kPieces);
  return {};
}

void SnapshotEncoder::PutName(const ImageName& name) {
  FieldWriter out(frame_);
  out.Put(name.scope);
  out.Put(name.projected);
  out.Put(static_cast<std::uint8_t>(name.digest.size()));
  out.PutBytes(name.digest);
}

Status SnapshotEncoder::OnStart(const ImageStart& piece) {
  seq_ = piece.seq;
  FieldWriter header(ready_);
  header.PutBytes(kSnapshotMagic);
  header.Put(kSnapshotFormatVersion);
  header.Put(static_cast<std::uint32_t>(kSnapshotHeaderBytes));
  header.Put(piece.seq);
  header.Put(Xxh3(AsBytes(ready_)));
  BeginPiece(PieceKind::kStart);
  FieldWriter(frame_).Put(piece.next_stream);
  return EndPiece();
}

Status SnapshotEncoder::OnContext(const ImageContext& piece) {
  CONDUCTOR_RETURN_IF_ERROR(CheckText("tenant_id", piece.key.tenant_id));
  CONDUCTOR_RETURN_IF_ERROR(CheckText("model_name", piece.key.model_name));
  CONDUCTOR_RETURN_IF_ERROR(CheckText("lora_name", piece.key.lora_name));
  if (piece.profile) {
    CONDUCTOR_RETURN_IF_ERROR(CheckText("python_hash_seed", piece.profile->python_hash_seed));
  }
  BeginPiece(PieceKind::kContext);
  FieldWriter out(frame_);
  out.Put(piece.id);
  out.Put(piece.key.block_size);
  out.Put(static_cast<std::uint8_t>((piece.profile ? kContextHasProfile : 0) |
                                    (piece.has_engine_profile ? kContextHasEngineProfile : 0)));
  out.PutText(piece.key.tenant_id);
  out.PutText(piece.key.model_name);
  out.PutText(piece.key.lora_name);
  if (piece.profile) {
    out.Put(static_cast<std::uint8_t>(piece.profile->strategy));
    out.Put(static_cast<std::uint8_t>(piece.profile->algorithm));
    out.PutText(piece.profile->python_hash_seed);
    out.PutBytes(piece.profile->root_digest);
  }
  return EndPiece();
}

Status SnapshotEncoder::OnPool(const ImagePool& piece) {
  CONDUCTOR_RETURN_IF_ERROR(CheckText("backend_id", piece.backend_id));
  CONDUCTOR_RETURN_IF_ERROR(CheckText("tenant_id", piece.tenant_id));
  BeginPiece(PieceKind::kPool);
  FieldWriter out(frame_);
  out.Put(piece.id);
  out.PutText(piece.backend_id);
  out.PutText(piece.tenant_id);
  return EndPiece();
}

Status SnapshotEncoder::OnRegistration(const ImageRegistration& piece) {
  // As the log says it, checks included (docs/log_format.md).
  const Record record{{Registered{*piece.registration, UnverifiedBlocks::kContent}}};
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string bytes, EncodeRecord(record));
  BeginPiece(PieceKind::kRegistration);
  FieldWriter out(frame_);
  out.Put(piece.stream);
  out.Put(static_cast<std::uint32_t>(bytes.size()));
  out.PutBytes(bytes);
  return EndPiece();
}

Status SnapshotEncoder::OnHolder(const ImageHolder& piece) {
  BeginPiece(PieceKind::kHolder);
  FieldWriter out(frame_);
  out.Put(piece.id);
  out.Put(piece.key.context);
  out.Put(piece.key.pool);
  out.Put(piece.key.stream);
  out.Put(static_cast<std::uint8_t>(piece.key.tier));
  out.Put(static_cast<std::uint8_t>(piece.key.unproven ? 1 : 0));
  out.PutSum(piece.sum);
  out.Put(piece.blocks);
  return EndPiece();
}

Status SnapshotEncoder::OnSet(const ImageSet& piece) {
  std::span<const HolderId> rest = piece.holders;
  bool continues = true;
  while (continues) {
    const auto now = rest.first(std::min(rest.size(), kIdsPerPieceMax));
    rest = rest.subspan(now.size());
    continues = !rest.empty();
    BeginPiece(PieceKind::kSet);
    FieldWriter out(frame_);
    out.Put(piece.id);
    out.Put(continues ? kSetContinues : std::uint8_t{0});
    out.Put(static_cast<std::uint32_t>(now.size()));
    out.PutArray(now);
    CONDUCTOR_RETURN_IF_ERROR(EndPiece());
  }
  return {};
}

Status SnapshotEncoder::OnRun(const ImageRun& piece) {
  const std::size_t size = piece.names.size();
  if (size == 0 || size > kRunSlotsMax || piece.fingerprints.size() != size ||
      piece.sets.size() != size) {
    return Refuse("run of " + std::to_string(size) + " names, " +
                  std::to_string(piece.fingerprints.size()) + " fingerprints, " +
                  std::to_string(piece.sets.size()) + " sets");
  }
  CONDUCTOR_RETURN_IF_ERROR(CheckName(piece.parent));
  const SetStretches stretches(piece.sets);
  BeginPiece(PieceKind::kRun);
  FieldWriter out(frame_);
  out.Put(piece.context);
  out.Put(static_cast<std::uint8_t>((piece.extra_keys_on_wire ? kRunHasExtraKeys : 0) |
                                    (piece.digest != nullptr ? kRunHasDigest : 0)));
  out.Put(static_cast<std::uint8_t>(piece.check));
  out.Put(static_cast<std::uint8_t>(size));
  out.Put(stretches.count());
  PutName(piece.parent);
  out.PutBytes(stretches.bytes());
  out.PutArray(piece.fingerprints);
  out.PutArray(piece.names);
  if (piece.digest != nullptr) {
    out.Put(static_cast<std::uint8_t>(piece.digest_slot));
    out.PutBytes(*piece.digest);
  }
  return EndPiece();
}

Status SnapshotEncoder::OnEntry(const ImageEntry& piece) {
  CONDUCTOR_RETURN_IF_ERROR(CheckName(piece.name));
  if (piece.parent) CONDUCTOR_RETURN_IF_ERROR(CheckName(*piece.parent));
  BeginPiece(PieceKind::kEntry);
  FieldWriter out(frame_);
  out.Put(piece.context);
  out.Put(static_cast<std::uint8_t>((piece.extra_keys_on_wire ? kEntryHasExtraKeys : 0) |
                                    (piece.digest != nullptr ? kEntryHasDigest : 0) |
                                    (piece.parent ? kEntryHasParent : 0)));
  out.Put(static_cast<std::uint8_t>(piece.check));
  out.Put(static_cast<std::uint8_t>(piece.block_class));
  out.Put(piece.set);
  out.Put(piece.length);
  out.Put(piece.fingerprint);
  PutName(piece.name);
  if (piece.parent) PutName(*piece.parent);
  if (piece.digest != nullptr) out.PutBytes(*piece.digest);
  return EndPiece();
}

Status SnapshotEncoder::OnCopies(const ImageCopies& piece) {
  CONDUCTOR_RETURN_IF_ERROR(CheckName(piece.name));
  BeginPiece(PieceKind::kCopies);
  FieldWriter out(frame_);
  out.Put(piece.holder);
  out.Put(piece.copies);
  PutName(piece.name);
  return EndPiece();
}

Status SnapshotEncoder::OnParts(const ImageParts& piece) {
  if (piece.parts.size() > kPartsPerBlockMax) {
    return Refuse(std::to_string(piece.parts.size()) + " parts of one name");
  }
  BeginPiece(PieceKind::kParts);
  FieldWriter out(frame_);
  out.Put(piece.holder);
  out.Put(piece.name);
  out.Put(static_cast<std::uint32_t>(piece.parts.size()));
  for (const PartTable::Part& part : piece.parts) {
    out.Put(part.slot);
    out.Put(part.id);
  }
  return EndPiece();
}

Status SnapshotEncoder::PutStreamContexts(const StreamFacts& piece) {
  for (auto next = piece.contexts.begin(); next != piece.contexts.end();) {
    std::vector<ContextId> ids;
    for (; next != piece.contexts.end() && ids.size() < kIdsPerPieceMax; ++next) {
      ids.push_back(*next);
    }
    BeginPiece(PieceKind::kStreamContexts);
    FieldWriter out(frame_);
    out.Put(piece.id);
    out.Put(static_cast<std::uint32_t>(ids.size()));
    out.PutArray(std::span<const ContextId>(ids));
    CONDUCTOR_RETURN_IF_ERROR(EndPiece());
  }
  return {};
}

Status SnapshotEncoder::OnStream(const StreamFacts& piece) {
  CONDUCTOR_RETURN_IF_ERROR(CheckText("publisher_epoch", piece.publisher_epoch));
  if (piece.lost.size() > kLostRangesPerStreamMax ||
      piece.recent.size() > kRecentFingerprintsPerStream) {
    return Refuse("stream with " + std::to_string(piece.lost.size()) + " lost ranges, " +
                  std::to_string(piece.recent.size()) + " recent frames");
  }
  CONDUCTOR_RETURN_IF_ERROR(PutStreamContexts(piece));
  BeginPiece(PieceKind::kStream);
  FieldWriter out(frame_);
  out.Put(piece.id);
  out.Put(static_cast<std::uint8_t>((piece.cursor ? kStreamHasCursor : 0) |
                                    (piece.history_from ? kStreamHasHistoryFrom : 0) |
                                    (piece.counting_group ? kStreamHasCountingGroup : 0) |
                                    (piece.verified_ever ? kStreamVerifiedEver : 0) |
                                    (piece.differs_ever ? kStreamDiffersEver : 0) |
                                    (piece.seen_full_size_block ? kStreamSeenFullSize : 0)));
  out.Put(static_cast<std::uint8_t>(piece.unverified_blocks));
  out.Put(piece.epoch);
  out.Put(piece.cursor.value_or(0));
  out.Put(piece.history_from.value_or(0));
  out.Put(piece.counting_group.value_or(0));
  out.Put(piece.last_publisher_time_us);
  for (const std::uint64_t* counter : StreamCounters(piece)) out.Put(*counter);
  for (const std::uint64_t count : std::span(piece.ignored).subspan(1)) out.Put(count);
  out.PutText(piece.publisher_epoch);
  out.Put(static_cast<std::uint16_t>(piece.lost.size()));
  out.Put(static_cast<std::uint16_t>(piece.recent.size()));
  for (const auto& [from, to] : piece.lost) {
    out.Put(from);
    out.Put(to);
  }
  for (const auto& [number, fingerprint] : piece.recent) {
    out.Put(number);
    out.Put(fingerprint);
  }
  return EndPiece();
}

Status SnapshotEncoder::OnEnd(const ImageEnd& piece) {
  if (!frame_.empty()) FinishFrame(FrameType::kPieces);
  BeginFrame();
  FieldWriter out(frame_);
  out.PutSum(piece.digest);
  out.Put(piece.blocks);
  out.Put(piece.fragments);
  out.Put(frames_ + 1);
  for (const std::uint64_t count : pieces_) out.Put(count);
  FinishFrame(FrameType::kEnd);
  return {};
}

}  // namespace conductor::storage
