#include "storage/record_codec.h"

#include <google/protobuf/arena.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "storage/backward_writer.h"
#include "storage/frame_decoder.h"
#include "storage/frame_encoder.h"
#include "storage/log_format.h"
#include "storage/record.pb.h"
#include "storage/record_check.h"
#include "storage/record_from_proto.h"
#include "storage/record_to_proto.h"
#include "storage/reversed.h"

namespace conductor::storage {
namespace {

// The message tree of one record lives on an arena of about its own size.
constexpr std::size_t kArenaBlockBytesMax = 1u << 20;
constexpr std::size_t kArenaAlignment = 8;

google::protobuf::ArenaOptions MakeArenaOptions(std::size_t bytes_expected) {
  google::protobuf::ArenaOptions options;
  // The arena puts nodes of its own at the end of a block, which therefore must be aligned.
  bytes_expected = bytes_expected / kArenaAlignment * kArenaAlignment;
  options.start_block_size = std::clamp<std::size_t>(bytes_expected, 1024, kArenaBlockBytesMax);
  options.max_block_size = kArenaBlockBytesMax;
  return options;
}

std::uint32_t Checksum(std::string_view body) {
  return static_cast<std::uint32_t>(XXH3_64bits(body.data(), body.size()));
}

std::uint32_t LoadLittleEndian32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = (value << 8) | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

std::string Hex(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

tl::unexpected<Error> Damaged(std::string message) {
  return MakeError(ErrorCode::kDataLoss, std::move(message));
}

// Takes the header off `value` after judging it.
Result<std::string_view> ReadHeader(std::string_view value) {
  if (value.size() < kRecordHeaderBytes) {
    return Damaged("value of " + std::to_string(value.size()) + " bytes, expected at least " +
                   std::to_string(kRecordHeaderBytes));
  }
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(value[i]); };
  if (byte(0) != kRecordMagic) {
    return Damaged("first byte " + std::to_string(byte(0)) + ", expected " +
                   std::to_string(kRecordMagic));
  }
  if (byte(1) != kRecordFormatVersion) {
    return MakeError(ErrorCode::kFailedPrecondition, "format version " + std::to_string(byte(1)) +
                                                         ", this build reads " +
                                                         std::to_string(kRecordFormatVersion));
  }
  if (byte(2) != kRecordHeaderBytes) {
    return Damaged("header length " + std::to_string(byte(2)) + ", expected " +
                   std::to_string(kRecordHeaderBytes));
  }
  if (byte(3) != 0) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     "flags " + std::to_string(byte(3)) + ", this build knows none");
  }
  const std::string_view body = value.substr(kRecordHeaderBytes);
  const std::uint32_t expected = LoadLittleEndian32(value.substr(4));
  if (const std::uint32_t got = Checksum(body); got != expected) {
    return Damaged("body checksum " + Hex(got) + ", expected " + Hex(expected));
  }
  return body;
}

// About; the writer grows.
std::size_t ExpectedBytes(const Record& record) {
  constexpr std::size_t kFactBytes = 256;
  constexpr std::size_t kEventBytes = 96;
  constexpr std::size_t kBlockBytes = 2 * sizeof(std::uint64_t);
  constexpr std::size_t kDigestBytes = 2 + WholeDigest::kInlineBytes;
  const auto digest_bytes = [](const BlockName& first) {
    return first.digest.empty() ? 0 : kDigestBytes;
  };
  const auto object_bytes = [](const Frame& frame, const PoolObject& object) {
    const PoolOrigin& origin = frame.origins[object.origin];
    return object.name.digest.size() + object.part.size() + origin.backend_id.size() +
           origin.tenant_id.size() + origin.model_name.size() + origin.lora_name.size();
  };
  std::size_t bytes = kFactBytes;
  for (const Fact& fact : record.facts) {
    bytes += kFactBytes;
    const auto* frame = std::get_if<Frame>(&fact);
    if (frame == nullptr) continue;
    for (const Event& event : frame->events) {
      bytes += kEventBytes;
      if (const auto* stored = std::get_if<Stored>(&event)) {
        if (stored->blocks.empty()) continue;
        bytes += (kBlockBytes + digest_bytes(stored->blocks[0].name)) * stored->blocks.size();
      } else if (const auto* removed = std::get_if<Removed>(&event)) {
        if (removed->names.empty()) continue;
        bytes += (kBlockBytes + digest_bytes(removed->names[0])) * removed->names.size();
      } else if (const auto* pool_stored = std::get_if<PoolStored>(&event)) {
        bytes += object_bytes(*frame, *pool_stored);
      } else if (const auto* pool_removed = std::get_if<PoolRemoved>(&event)) {
        bytes += object_bytes(*frame, *pool_removed);
      }
    }
  }
  return bytes;
}

Status WriteFact(const Fact& fact, BackwardWriter& out) {
  const std::size_t mark = out.size();
  if (const auto* frame = std::get_if<Frame>(&fact)) {
    WriteFrameFact(*frame, out);
  } else {
    google::protobuf::Arena arena(MakeArenaOptions(0));
    auto* message = google::protobuf::Arena::CreateMessage<v1::Fact>(&arena);
    ToProto(fact, message);
    std::string bytes;
    if (!message->SerializeToString(&bytes)) {
      return MakeError(ErrorCode::kInternal, "record: protobuf could not be serialized");
    }
    out.PutRaw(bytes);
  }
  out.EndLength(v1::Record::kFactsFieldNumber, mark);
  return {};
}

Result<Record> ReadThroughProtobuf(std::string_view body) {
  google::protobuf::Arena arena(MakeArenaOptions(body.size() * 2));
  auto* message = google::protobuf::Arena::CreateMessage<v1::Record>(&arena);
  if (!message->ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return Damaged("body of " + std::to_string(body.size()) + " bytes is no record message");
  }
  return FromProto(*message);
}

}  // namespace

Result<std::string> EncodeRecord(const Record& record) {
  CONDUCTOR_RETURN_IF_ERROR(CheckRecord(record));
  BackwardWriter writer(ExpectedBytes(record));
  for (const Fact& fact : Reversed(record.facts)) {
    CONDUCTOR_RETURN_IF_ERROR(WriteFact(fact, writer));
  }
  const std::size_t body_bytes = writer.size();
  if (body_bytes > kRecordBytesMax) {
    return MakeError(ErrorCode::kInvalidArgument, "record of " + std::to_string(body_bytes) +
                                                      " bytes, expected at most " +
                                                      std::to_string(kRecordBytesMax));
  }
  const std::uint32_t checksum = Checksum(writer.bytes());
  char* header = writer.Prepend(kRecordHeaderBytes);
  header[0] = static_cast<char>(kRecordMagic);
  header[1] = static_cast<char>(kRecordFormatVersion);
  header[2] = static_cast<char>(kRecordHeaderBytes);
  header[3] = 0;
  for (int i = 0; i < 4; ++i) header[4 + i] = static_cast<char>((checksum >> (8 * i)) & 0xFF);
  return std::string(writer.bytes());
}

Result<Record> DecodeRecord(std::string_view value) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string_view body, ReadHeader(value));
  if (body.size() > kRecordBytesMax) {
    return Damaged("body of " + std::to_string(body.size()) + " bytes, expected at most " +
                   std::to_string(kRecordBytesMax));
  }
  std::optional<Record> canonical = ReadCanonicalRecord(body);
  Result<Record> record = canonical ? *std::move(canonical) : ReadThroughProtobuf(body);
  if (!record) return record;
  if (Status checked = CheckRecord(*record); !checked) return Damaged(checked.error().message);
  return record;
}

}  // namespace conductor::storage
