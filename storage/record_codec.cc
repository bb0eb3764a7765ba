#include "storage/record_codec.h"

#include <google/protobuf/arena.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "storage/log_format.h"
#include "storage/record.pb.h"
#include "storage/record_check.h"
#include "storage/record_from_proto.h"
#include "storage/record_to_proto.h"

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

}  // namespace

Result<std::string> EncodeRecord(const Record& record) {
  CONDUCTOR_RETURN_IF_ERROR(CheckRecord(record));
  google::protobuf::Arena arena(MakeArenaOptions(64 * 1024));
  auto* message = google::protobuf::Arena::CreateMessage<v1::Record>(&arena);
  ToProto(record, message);
  const std::size_t body_bytes = message->ByteSizeLong();
  if (body_bytes > kRecordBytesMax) {
    return MakeError(ErrorCode::kInvalidArgument, "record of " + std::to_string(body_bytes) +
                                                      " bytes, expected at most " +
                                                      std::to_string(kRecordBytesMax));
  }
  std::string value(kRecordHeaderBytes, '\0');
  value.reserve(kRecordHeaderBytes + body_bytes);
  if (!message->AppendToString(&value)) {
    return MakeError(ErrorCode::kInternal, "record: protobuf could not be serialized");
  }
  const std::uint32_t checksum = Checksum(std::string_view(value).substr(kRecordHeaderBytes));
  value[0] = static_cast<char>(kRecordMagic);
  value[1] = static_cast<char>(kRecordFormatVersion);
  value[2] = static_cast<char>(kRecordHeaderBytes);
  value[3] = 0;
  for (int i = 0; i < 4; ++i) value[4 + i] = static_cast<char>((checksum >> (8 * i)) & 0xFF);
  return value;
}

Result<Record> DecodeRecord(std::string_view value) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string_view body, ReadHeader(value));
  if (body.size() > kRecordBytesMax) {
    return Damaged("body of " + std::to_string(body.size()) + " bytes, expected at most " +
                   std::to_string(kRecordBytesMax));
  }
  google::protobuf::Arena arena(MakeArenaOptions(body.size() * 2));
  auto* message = google::protobuf::Arena::CreateMessage<v1::Record>(&arena);
  if (!message->ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return Damaged("body of " + std::to_string(body.size()) + " bytes is no record message");
  }
  CONDUCTOR_ASSIGN_OR_RETURN(Record record, FromProto(*message));
  if (Status checked = CheckRecord(record); !checked) return Damaged(checked.error().message);
  return record;
}

}  // namespace conductor::storage
