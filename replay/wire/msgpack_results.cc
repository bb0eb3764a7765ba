// The half of MsgpackReader that words its failures: Results over the Try functions.
#include <string>

#include "replay/wire/msgpack_reader.h"

namespace conductor {

std::string_view ToString(MsgpackType type) {
  switch (type) {
    case MsgpackType::kNil:
      return "nil";
    case MsgpackType::kBool:
      return "bool";
    case MsgpackType::kInteger:
      return "integer";
    case MsgpackType::kFloat:
      return "float";
    case MsgpackType::kText:
      return "text";
    case MsgpackType::kBytes:
      return "bytes";
    case MsgpackType::kArray:
      return "array";
    case MsgpackType::kMap:
      return "map";
    case MsgpackType::kExt:
      return "ext";
    case MsgpackType::kReserved:
      return "the reserved byte 0xc1";
    case MsgpackType::kEnd:
      return "the end of the input";
  }
  return "unknown";
}

std::string_view ToString(MsgpackFault fault) {
  switch (fault) {
    case MsgpackFault::kNone:
      return "none";
    case MsgpackFault::kTruncated:
      return "msgpack_truncated";
    case MsgpackFault::kReserved:
      return "msgpack_invalid";
    case MsgpackFault::kDepth:
      return "depth_limit";
    case MsgpackFault::kTrailing:
      return "msgpack_trailing";
    case MsgpackFault::kType:
      return "msgpack_type";
    case MsgpackFault::kRange:
      return "msgpack_range";
    case MsgpackFault::kUtf8:
      return "invalid_utf8";
  }
  return "unknown";
}

tl::unexpected<Error> MsgpackReader::Fail(MsgpackFault fault, std::string_view expected) const {
  std::string message = "msgpack at byte " + std::to_string(position_) + ": expected ";
  message += expected;
  message += ", got ";
  switch (fault) {
    case MsgpackFault::kTruncated:
      message += "a value that needs more than the " + std::to_string(Remaining()) + " bytes left";
      break;
    case MsgpackFault::kReserved:
      message += ToString(MsgpackType::kReserved);
      break;
    case MsgpackFault::kDepth:
      message += "more than " + std::to_string(kMsgpackDepthMax) + " nested containers";
      break;
    case MsgpackFault::kTrailing:
      message += std::to_string(Remaining()) + " more bytes";
      break;
    case MsgpackFault::kRange:
      message += "an integer outside that range";
      break;
    case MsgpackFault::kUtf8:
      message += "text that is not UTF-8";
      break;
    case MsgpackFault::kNone:
    case MsgpackFault::kType:
      message += ToString(PeekType());
      break;
  }
  return tl::unexpected(
      Error{ErrorCode::kInvalidArgument, std::move(message), std::string(ToString(fault)), "", -1});
}

Status MsgpackReader::ReadNil() {
  if (auto fault = TryNil(); fault != MsgpackFault::kNone) return Fail(fault, "nil");
  return {};
}

Result<bool> MsgpackReader::ReadBool() {
  bool value = false;
  if (auto fault = TryBool(&value); fault != MsgpackFault::kNone) return Fail(fault, "bool");
  return value;
}

Result<std::uint64_t> MsgpackReader::ReadUint64() {
  const std::size_t start = position_;
  MsgpackInteger value;
  auto fault = TryInteger(&value);
  if (fault == MsgpackFault::kNone && value.negative) {
    position_ = start;
    fault = MsgpackFault::kRange;
  }
  if (fault != MsgpackFault::kNone) return Fail(fault, "an unsigned 64-bit integer");
  return value.bits;
}

Result<std::int64_t> MsgpackReader::ReadInt64() {
  const std::size_t start = position_;
  MsgpackInteger value;
  auto fault = TryInteger(&value);
  if (fault == MsgpackFault::kNone && !value.FitsInt64()) {
    position_ = start;
    fault = MsgpackFault::kRange;
  }
  if (fault != MsgpackFault::kNone) return Fail(fault, "a signed 64-bit integer");
  return value.AsInt64();
}

Result<double> MsgpackReader::ReadDouble() {
  double value = 0;
  if (auto fault = TryDouble(&value); fault != MsgpackFault::kNone) return Fail(fault, "a number");
  return value;
}

Result<std::string_view> MsgpackReader::ReadText() {
  std::string_view text;
  if (auto fault = TryText(&text); fault != MsgpackFault::kNone) return Fail(fault, "UTF-8 text");
  return text;
}

Result<std::span<const std::uint8_t>> MsgpackReader::ReadBytes() {
  std::span<const std::uint8_t> bytes;
  if (auto fault = TryBytes(&bytes); fault != MsgpackFault::kNone) return Fail(fault, "bytes");
  return bytes;
}

Result<MsgpackExt> MsgpackReader::ReadExt() {
  MsgpackExt ext;
  if (auto fault = TryExt(&ext); fault != MsgpackFault::kNone) return Fail(fault, "ext");
  return ext;
}

Result<std::uint32_t> MsgpackReader::ReadArrayHeader() {
  std::uint32_t count = 0;
  if (auto fault = TryArrayHeader(&count); fault != MsgpackFault::kNone)
    return Fail(fault, "array");
  return count;
}

Result<std::uint32_t> MsgpackReader::ReadMapHeader() {
  std::uint32_t count = 0;
  if (auto fault = TryMapHeader(&count); fault != MsgpackFault::kNone) return Fail(fault, "map");
  return count;
}

Status MsgpackReader::Skip() {
  if (auto fault = TrySkip(); fault != MsgpackFault::kNone) return Fail(fault, "a value");
  return {};
}

Status MsgpackReader::ReadEnd() const {
  if (!AtEnd()) return Fail(MsgpackFault::kTrailing, "the end");
  return {};
}

}  // namespace conductor
