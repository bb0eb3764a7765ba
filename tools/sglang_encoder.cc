#include "tools/sglang_encoder.h"

#include <array>
#include <span>
#include <utility>

#include "replay/wire/msgpack_writer.h"

namespace conductor::enginesim {
namespace {

constexpr std::array<std::string_view, 4> kEras{"s1", "s2", "s3", "s4"};

std::uint32_t Count(std::size_t size) {
  return static_cast<std::uint32_t>(size);
}

void Write(MsgpackWriter& out, const WireHash& hash) {
  if (const auto* bytes = std::get_if<std::string>(&hash)) {
    out.WriteBytes({reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size()});
  } else if (const auto* number = std::get_if<std::uint64_t>(&hash)) {
    out.WriteInt64(static_cast<std::int64_t>(*number));  // the same bits, signed
  } else {
    out.WriteInt64(std::get<std::int64_t>(hash));
  }
}

void Write(MsgpackWriter& out, const std::vector<WireHash>& hashes) {
  out.WriteArrayHeader(Count(hashes.size()));
  for (const WireHash& hash : hashes) Write(out, hash);
}

void Write(MsgpackWriter& out, std::int64_t value) {
  out.WriteInt64(value);
}
void Write(MsgpackWriter& out, const std::string& text) {
  out.WriteText(text);
}

template <typename T>
void Write(MsgpackWriter& out, const std::optional<T>& value) {
  if (value) {
    Write(out, *value);
  } else {
    out.WriteNil();
  }
}

void WriteTokens(MsgpackWriter& out, const BlockStoredEvent& event) {
  const std::vector<std::int32_t>& tokens = event.token_ids;
  if (!event.bigram) {
    out.WriteArrayHeader(Count(tokens.size()));
    for (const std::int32_t token : tokens) out.WriteInt64(token);
    return;
  }
  const std::size_t pairs = tokens.empty() ? 0 : tokens.size() - 1;
  out.WriteArrayHeader(Count(pairs));
  for (std::size_t i = 0; i < pairs; ++i) {
    out.WriteArrayHeader(2);
    out.WriteInt64(tokens[i]);
    out.WriteInt64(tokens[i + 1]);
  }
}

bool HasSalt(const BlockStoredEvent& event) {
  return event.cache_salt && !event.cache_salt->empty();
}

void WriteArray(MsgpackWriter& out, SglangEra era, const BlockStoredEvent& event) {
  const bool medium = era != SglangEra::kS1;
  const bool salt = era == SglangEra::kS3 && HasSalt(event);
  out.WriteArrayHeader(6 + (medium ? 1 : 0) + (salt ? 1 : 0));
  out.WriteText("BlockStored");
  Write(out, event.block_hashes);
  Write(out, event.parent_block_hash);
  WriteTokens(out, event);
  Write(out, event.block_size);
  Write(out, event.lora_id);
  if (medium) Write(out, event.medium);
  if (salt) {
    out.WriteMapHeader(1);
    out.WriteText("cache_salt");
    Write(out, *event.cache_salt);
  }
}

void WriteArray(MsgpackWriter& out, SglangEra era, const BlockRemovedEvent& event) {
  const bool medium = era != SglangEra::kS1;
  out.WriteArrayHeader(medium ? 3 : 2);
  out.WriteText("BlockRemoved");
  Write(out, event.block_hashes);
  if (medium) Write(out, event.medium);
}

void WriteArray(MsgpackWriter& out, SglangEra, const AllBlocksClearedEvent&) {
  out.WriteArrayHeader(1);
  out.WriteText("AllBlocksCleared");
}

// A field that is left out when it is nil.
void WriteOptional(MsgpackWriter& out, std::string_view name,
                   const std::optional<std::string>& value) {
  if (!value) return;
  out.WriteText(name);
  Write(out, *value);
}

void WriteMap(MsgpackWriter& out, const BlockStoredEvent& event) {
  const std::optional<std::string> salt = HasSalt(event) ? event.cache_salt : std::nullopt;
  out.WriteMapHeader(6 + (event.medium ? 1 : 0) + (salt ? 1 : 0) + (event.session_id ? 1 : 0));
  out.WriteText("type");
  out.WriteText("BlockStored");
  out.WriteText("block_hashes");
  Write(out, event.block_hashes);
  out.WriteText("parent_block_hash");
  Write(out, event.parent_block_hash);
  out.WriteText("token_ids");
  WriteTokens(out, event);
  out.WriteText("block_size");
  Write(out, event.block_size);
  out.WriteText("lora_id");
  Write(out, event.lora_id);
  WriteOptional(out, "medium", event.medium);
  WriteOptional(out, "cache_salt", salt);
  WriteOptional(out, "session_id", event.session_id);
}

void WriteMap(MsgpackWriter& out, const BlockRemovedEvent& event) {
  out.WriteMapHeader(event.medium ? 3 : 2);
  out.WriteText("type");
  out.WriteText("BlockRemoved");
  out.WriteText("block_hashes");
  Write(out, event.block_hashes);
  WriteOptional(out, "medium", event.medium);
}

void WriteMap(MsgpackWriter& out, const AllBlocksClearedEvent&) {
  out.WriteMapHeader(1);
  out.WriteText("type");
  out.WriteText("AllBlocksCleared");
}

}  // namespace

Result<SglangEra> ParseSglangEra(std::string_view text) {
  for (std::size_t i = 0; i < kEras.size(); ++i) {
    if (kEras[i] == text) return static_cast<SglangEra>(i);
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   "era: expected one of s1, s2, s3, s4, got '" + std::string(text) + "'");
}

std::string_view ToString(SglangEra era) {
  return kEras[static_cast<std::size_t>(era)];
}

std::string EncodeSglangBatch(SglangEra era, const EventBatch& batch) {
  MsgpackWriter out;
  out.WriteArrayHeader(era == SglangEra::kS1 ? 2 : 3);
  out.WriteDouble(batch.ts);
  out.WriteArrayHeader(Count(batch.events.size()));
  for (const EngineEvent& event : batch.events) {
    std::visit(
        [&](const auto& value) {
          if (era == SglangEra::kS4) {
            WriteMap(out, value);
          } else {
            WriteArray(out, era, value);
          }
        },
        event);
  }
  if (era != SglangEra::kS1) Write(out, batch.dp_rank);
  return std::move(out).Take();
}

}  // namespace conductor::enginesim
