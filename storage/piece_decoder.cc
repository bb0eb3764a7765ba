#include "storage/piece_decoder.h"

#include <algorithm>
#include <utility>

#include "src/limits.h"
#include "storage/log_format.h"
#include "storage/record_check.h"
#include "storage/record_codec.h"

namespace conductor::storage {
namespace {

constexpr const char* kKindNames[] = {
    "start", "context", "pool",   "registration", "holder",          "set",
    "run",   "entry",   "copies", "parts",        "stream_contexts", "stream"};
static_assert(std::size(kKindNames) == kPieceKinds);

bool IsKind(std::uint8_t kind) {
  return kind >= 1 && kind <= kPieceKinds;
}

}  // namespace

std::string PieceDecoder::Place() const {
  return name_ + ": offset " + std::to_string(offset_) + ": " +
         (IsKind(kind_) ? kKindNames[kind_ - 1] : "piece") + ": ";
}

tl::unexpected<Error> PieceDecoder::Damaged(const std::string& what) const {
  return MakeError(ErrorCode::kDataLoss, Place() + what);
}

tl::unexpected<Error> PieceDecoder::Newer(const std::string& what) const {
  return MakeError(ErrorCode::kFailedPrecondition, Place() + what + " is not known to this build");
}

Status PieceDecoder::Decode(std::string_view payload, std::uint64_t offset) {
  FieldReader in(payload);
  while (!in.AtEnd()) {
    offset_ = offset + payload.size() - in.left();
    kind_ = in.Take<std::uint8_t>();
    if (!IsKind(kind_)) return Newer("kind " + std::to_string(kind_));
    const auto kind = static_cast<PieceKind>(kind_);
    CONDUCTOR_RETURN_IF_ERROR(CheckOrder(kind));
    CONDUCTOR_RETURN_IF_ERROR(DecodePiece(kind, in));
    ++pieces_[kind_ - 1];
  }
  return {};
}

Status PieceDecoder::DecodePiece(PieceKind kind, FieldReader& in) {
  switch (kind) {
    case PieceKind::kStart:
      return Start(in);
    case PieceKind::kContext:
      return Context(in);
    case PieceKind::kPool:
      return Pool(in);
    case PieceKind::kRegistration:
      return OneRegistration(in);
    case PieceKind::kHolder:
      return OneHolder(in);
    case PieceKind::kSet:
      return Set(in);
    case PieceKind::kRun:
      return Run(in);
    case PieceKind::kEntry:
      return Entry(in);
    case PieceKind::kCopies:
      return Copies(in);
    case PieceKind::kParts:
      return Parts(in);
    case PieceKind::kStreamContexts:
      return StreamContexts(in);
    case PieceKind::kStream:
      return OneStream(in);
  }
  return Newer("kind");
}

Status PieceDecoder::CheckOrder(PieceKind kind) {
  const bool started = pieces_[0] != 0;
  if ((kind == PieceKind::kStart) == started) {
    return Damaged(started ? "a second one" : "before the start");
  }
  if (open_set_ != 0 && kind != PieceKind::kSet) {
    return Damaged("inside set " + std::to_string(open_set_));
  }
  return {};
}

Status PieceDecoder::Finish(const ImageEnd& end) {
  kind_ = 0;
  if (pieces_[0] == 0) return Damaged("no start before the end");
  if (open_set_ != 0) return Damaged("the end inside set " + std::to_string(open_set_));
  if (streams_complete_ != streams_.size()) {
    return Damaged(std::to_string(streams_complete_) + " streams, expected one for each of the " +
                   std::to_string(streams_.size()) + " registrations");
  }
  return visitor_.OnEnd(end);
}

// --- fields ------------------------------------------------------------------------------------

Result<std::string> PieceDecoder::TakeText(FieldReader& in, const char* field) {
  const std::string_view text = in.TakeText();
  if (!in.ok()) return Short();
  if (text.size() > kNameBytesMax) {
    return Damaged(std::string(field) + " of " + std::to_string(text.size()) +
                   " bytes, expected at most " + std::to_string(kNameBytesMax));
  }
  return std::string(text);
}

Result<std::uint8_t> PieceDecoder::TakeFlags(FieldReader& in, std::uint8_t known) {
  const auto flags = in.Take<std::uint8_t>();
  if ((flags & ~known) != 0) return Newer("flags " + std::to_string(flags));
  return flags;
}

Result<ImageName> PieceDecoder::TakeName(FieldReader& in) {
  ImageName name;
  name.scope = in.Take<Scope>();
  name.projected = in.Take<std::uint64_t>();
  const auto size = in.Take<std::uint8_t>();
  name.digest = in.TakeBytes(size);
  if (!in.ok()) return Short();
  const bool right = name.scope == kRootScope ? size == 0 || size == kSaltDigestBytes
                                              : size == 0 || (size >= kBlockDigestBytesMin &&
                                                              size <= kBlockDigestBytesMax);
  if (!right) {
    return Damaged("name of " + std::to_string(size) + " bytes, expected " +
                   (name.scope == kRootScope ? "0 or 16" : "0 or 9 to 64"));
  }
  return name;
}

Result<const Digest*> PieceDecoder::TakeDigest(FieldReader& in, bool present) {
  if (!present) return nullptr;
  in.TakeArray(std::span<std::uint8_t>(digest_));
  if (!in.ok()) return Short();
  return &digest_;
}

Status PieceDecoder::CheckContext(ContextId id) {
  if (contexts_.Find(id) != 0) return {};
  return Damaged("context " + std::to_string(id) + ", expected one that came before");
}

Status PieceDecoder::CheckSet(StateId id, ContextId context) {
  const ContextId of = sets_.Find(id);
  if (of == context) return {};
  if (of == 0) return Damaged("set " + std::to_string(id) + ", expected one that came before");
  return Damaged("set " + std::to_string(id) + " of context " + std::to_string(of) +
                 ", expected one of " + std::to_string(context));
}

Result<PieceDecoder::Stream*> PieceDecoder::FindStream(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) {
    return Damaged("stream " + std::to_string(id) + ", expected one that is registered");
  }
  return &found->second;
}

Result<PieceDecoder::Stream*> PieceDecoder::FindIncompleteStream(StreamId id) {
  CONDUCTOR_ASSIGN_OR_RETURN(Stream* const stream, FindStream(id));
  if (stream->complete) return Damaged("stream " + std::to_string(id) + " a second time");
  return stream;
}

// --- small tables ------------------------------------------------------------------------------

Status PieceDecoder::Start(FieldReader& in) {
  ImageStart start;
  start.seq = seq_;
  next_stream_ = start.next_stream = in.Take<StreamId>();
  if (!in.ok()) return Short();
  if (next_stream_ == 0) return Damaged("next stream 0");
  return visitor_.OnStart(start);
}

Status PieceDecoder::Context(FieldReader& in) {
  ImageContext context;
  context.id = in.Take<ContextId>();
  context.key.block_size = in.Take<std::uint32_t>();
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint8_t flags,
                             TakeFlags(in, kContextHasProfile | kContextHasEngineProfile));
  context.has_engine_profile = (flags & kContextHasEngineProfile) != 0;
  CONDUCTOR_ASSIGN_OR_RETURN(context.key.tenant_id, TakeText(in, "tenant_id"));
  CONDUCTOR_ASSIGN_OR_RETURN(context.key.model_name, TakeText(in, "model_name"));
  CONDUCTOR_ASSIGN_OR_RETURN(context.key.lora_name, TakeText(in, "lora_name"));
  if ((flags & kContextHasProfile) != 0) {
    HashProfile& profile = context.profile.emplace();
    CONDUCTOR_ASSIGN_OR_RETURN(profile.strategy, TakeEnum<HashStrategy>(in, "hash strategy"));
    CONDUCTOR_ASSIGN_OR_RETURN(profile.algorithm, TakeEnum<HashAlgorithm>(in, "hash algorithm"));
    CONDUCTOR_ASSIGN_OR_RETURN(profile.python_hash_seed, TakeText(in, "python_hash_seed"));
    in.TakeArray(std::span<std::uint8_t>(profile.root_digest));
  }
  if (!in.ok()) return Short();
  if (context.key.block_size > kBlockSizeMax) {
    return Damaged("block size " + std::to_string(context.key.block_size) + ", expected at most " +
                   std::to_string(kBlockSizeMax));
  }
  if (!contexts_.Add(context.id, 1)) {
    return Damaged("id " + std::to_string(context.id) + ", expected a new one");
  }
  return visitor_.OnContext(context);
}

Status PieceDecoder::Pool(FieldReader& in) {
  ImagePool pool;
  pool.id = in.Take<PoolId>();
  CONDUCTOR_ASSIGN_OR_RETURN(pool.backend_id, TakeText(in, "backend_id"));
  CONDUCTOR_ASSIGN_OR_RETURN(pool.tenant_id, TakeText(in, "tenant_id"));
  if (!pools_.Add(pool.id, 1)) {
    return Damaged("id " + std::to_string(pool.id) + ", expected a new one");
  }
  return visitor_.OnPool(pool);
}

Status PieceDecoder::OneRegistration(FieldReader& in) {
  const auto stream = in.Take<StreamId>();
  const std::string_view bytes = in.TakeBytes(in.Take<std::uint32_t>());
  if (!in.ok()) return Short();
  auto record = DecodeRecord(bytes);
  if (!record) {
    return MakeError(record.error().code, Place() + record.error().message);
  }
  const auto* registered =
      record->facts.size() == 1 ? std::get_if<Registered>(&record->facts[0]) : nullptr;
  if (registered == nullptr || registered->unverified_blocks != UnverifiedBlocks::kContent) {
    return Damaged("no registration");
  }
  if (stream == 0 || stream >= next_stream_) {
    return Damaged("stream " + std::to_string(stream) + ", expected one from 1 to " +
                   std::to_string(next_stream_ - 1));
  }
  if (!streams_.try_emplace(stream).second) {
    return Damaged("stream " + std::to_string(stream) + " a second time");
  }
  return visitor_.OnRegistration({stream, &registered->registration});
}

Status PieceDecoder::OneHolder(FieldReader& in) {
  ImageHolder holder;
  holder.id = in.Take<HolderId>();
  holder.key.context = in.Take<ContextId>();
  holder.key.pool = in.Take<PoolId>();
  holder.key.stream = in.Take<StreamId>();
  CONDUCTOR_ASSIGN_OR_RETURN(holder.key.tier, TakeEnum<Tier>(in, "tier"));
  const auto unproven = in.Take<std::uint8_t>();
  holder.sum = in.TakeSum();
  holder.blocks = in.Take<std::uint64_t>();
  if (!in.ok()) return Short();
  if (unproven > 1) return Damaged("unproven " + std::to_string(unproven));
  holder.key.unproven = unproven == 1;
  CONDUCTOR_RETURN_IF_ERROR(CheckContext(holder.key.context));
  CONDUCTOR_RETURN_IF_ERROR(FindStream(holder.key.stream));
  if (holder.key.pool != 0 && pools_.Find(holder.key.pool) == 0) {
    return Damaged("pool " + std::to_string(holder.key.pool) + ", expected one that came before");
  }
  if (!holders_.Add(holder.id, holder.key.context)) {
    return Damaged("id " + std::to_string(holder.id) + ", expected a new one");
  }
  return visitor_.OnHolder(holder);
}

}  // namespace conductor::storage
