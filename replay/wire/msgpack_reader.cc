#include "replay/wire/msgpack_reader.h"

#include <array>
#include <bit>

#include "src/check.h"
#include "src/hash/utf8.h"

namespace conductor {

namespace {

MsgpackType TypeOf(std::uint8_t tag) {
  if (tag <= 0x7f || tag >= 0xe0) return MsgpackType::kInteger;
  if (tag <= 0x8f) return MsgpackType::kMap;
  if (tag <= 0x9f) return MsgpackType::kArray;
  if (tag <= 0xbf) return MsgpackType::kText;
  switch (tag) {
    case 0xc0:
      return MsgpackType::kNil;
    case 0xc1:
      return MsgpackType::kReserved;
    case 0xc2:
    case 0xc3:
      return MsgpackType::kBool;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return MsgpackType::kBytes;
    case 0xca:
    case 0xcb:
      return MsgpackType::kFloat;
    case 0xd9:
    case 0xda:
    case 0xdb:
      return MsgpackType::kText;
    case 0xdc:
    case 0xdd:
      return MsgpackType::kArray;
    case 0xde:
    case 0xdf:
      return MsgpackType::kMap;
    default:
      break;
  }
  // 0xcc..0xd3 are integers; 0xc7..0xc9 and 0xd4..0xd8 remain.
  return tag >= 0xcc && tag <= 0xd3 ? MsgpackType::kInteger : MsgpackType::kExt;
}

// Bytes behind the tag that belong to its head: the number itself, or the length.
std::size_t HeadWidth(std::uint8_t tag) {
  switch (tag) {
    case 0xc4:
    case 0xc7:
    case 0xcc:
    case 0xd0:
    case 0xd9:
      return 1;
    case 0xc5:
    case 0xc8:
    case 0xcd:
    case 0xd1:
    case 0xda:
    case 0xdc:
    case 0xde:
      return 2;
    case 0xc6:
    case 0xc9:
    case 0xca:
    case 0xce:
    case 0xd2:
    case 0xdb:
    case 0xdd:
    case 0xdf:
      return 4;
    case 0xcb:
    case 0xcf:
    case 0xd3:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

std::uint64_t MsgpackReader::BigEndian(std::size_t offset, std::size_t width) const noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value = value << 8 | bytes_[offset + i];
  return value;
}

MsgpackFault MsgpackReader::ParseHead(std::size_t offset, Head* head) const noexcept {
  if (offset >= bytes_.size()) return MsgpackFault::kTruncated;
  const std::uint8_t tag = bytes_[offset];
  head->type = TypeOf(tag);
  if (head->type == MsgpackType::kReserved) return MsgpackFault::kReserved;
  const std::size_t width = HeadWidth(tag);
  head->bytes = 1 + width;
  if (bytes_.size() - offset < head->bytes) return MsgpackFault::kTruncated;
  const std::uint64_t number = BigEndian(offset + 1, width);
  std::uint64_t bytes_needed = 0;
  switch (head->type) {
    case MsgpackType::kText:
      head->size = width != 0 ? number : tag & 0x1fu;
      bytes_needed = head->size;
      break;
    case MsgpackType::kBytes:
      head->size = number;
      bytes_needed = head->size;
      break;
    case MsgpackType::kExt:
      head->size = width != 0 ? number : std::uint64_t{1} << (tag - 0xd4);
      bytes_needed = head->size + 1;  // its type byte
      break;
    case MsgpackType::kArray:
      head->size = width != 0 ? number : tag & 0x0fu;
      bytes_needed = head->size;
      break;
    case MsgpackType::kMap:
      head->size = 2 * (width != 0 ? number : tag & 0x0fu);
      bytes_needed = head->size;
      break;
    default:
      head->size = 0;
      break;
  }
  const bool enough = bytes_needed <= bytes_.size() - offset - head->bytes;
  return enough ? MsgpackFault::kNone : MsgpackFault::kTruncated;
}

MsgpackType MsgpackReader::PeekType() const noexcept {
  return AtEnd() ? MsgpackType::kEnd : TypeOf(bytes_[position_]);
}

void MsgpackReader::Seek(std::size_t offset) noexcept {
  CHECK(offset <= bytes_.size());
  position_ = offset;
}

std::span<const std::uint8_t> MsgpackReader::BytesSince(std::size_t offset) const noexcept {
  CHECK(offset <= position_);
  return bytes_.subspan(offset, position_ - offset);
}

MsgpackFault MsgpackReader::TakeBody(MsgpackType type, std::string_view* body) noexcept {
  Head head;
  if (auto fault = ParseHead(position_, &head); fault != MsgpackFault::kNone) return fault;
  if (head.type != type) return MsgpackFault::kType;
  *body = {reinterpret_cast<const char*>(bytes_.data()) + position_ + head.bytes, head.size};
  return MsgpackFault::kNone;
}

MsgpackFault MsgpackReader::TakeCount(MsgpackType type, std::uint32_t* count) noexcept {
  Head head;
  if (auto fault = ParseHead(position_, &head); fault != MsgpackFault::kNone) return fault;
  if (head.type != type) return MsgpackFault::kType;
  *count = static_cast<std::uint32_t>(type == MsgpackType::kMap ? head.size / 2 : head.size);
  position_ += head.bytes;
  return MsgpackFault::kNone;
}

MsgpackFault MsgpackReader::TryNil() noexcept {
  Head head;
  if (auto fault = ParseHead(position_, &head); fault != MsgpackFault::kNone) return fault;
  if (head.type != MsgpackType::kNil) return MsgpackFault::kType;
  ++position_;
  return MsgpackFault::kNone;
}

MsgpackFault MsgpackReader::TryBool(bool* value) noexcept {
  Head head;
  if (auto fault = ParseHead(position_, &head); fault != MsgpackFault::kNone) return fault;
  if (head.type != MsgpackType::kBool) return MsgpackFault::kType;
  *value = bytes_[position_++] == 0xc3;
  return MsgpackFault::kNone;
}

MsgpackFault MsgpackReader::TryInteger(MsgpackInteger* value) noexcept {
  if (AtEnd()) return MsgpackFault::kTruncated;
  const std::uint8_t* at = bytes_.data() + position_;
  const std::uint8_t tag = *at;
  if (tag <= 0x7f) {
    *value = {tag, false};
    ++position_;
    return MsgpackFault::kNone;
  }
  // Token ids, nearly all of a payload, are of these two widths.
  if (tag == 0xcd && Remaining() >= 3) {
    *value = {static_cast<std::uint64_t>(at[1]) << 8 | at[2], false};
    position_ += 3;
    return MsgpackFault::kNone;
  }
  if (tag == 0xce && Remaining() >= 5) {
    *value = {static_cast<std::uint64_t>(at[1]) << 24 | static_cast<std::uint64_t>(at[2]) << 16 |
                  static_cast<std::uint64_t>(at[3]) << 8 | at[4],
              false};
    position_ += 5;
    return MsgpackFault::kNone;
  }
  Head head;
  if (auto fault = ParseHead(position_, &head); fault != MsgpackFault::kNone) return fault;
  if (head.type != MsgpackType::kInteger) return MsgpackFault::kType;
  const std::size_t width = head.bytes - 1;
  std::uint64_t bits = BigEndian(position_ + 1, width);
  const bool is_signed = tag >= 0xd0;
  switch (tag) {
    case 0xd0:
      bits = static_cast<std::uint64_t>(static_cast<std::int8_t>(bits));
      break;
    case 0xd1:
      bits = static_cast<std::uint64_t>(static_cast<std::int16_t>(bits));
      break;
    case 0xd2:
      bits = static_cast<std::uint64_t>(static_cast<std::int32_t>(bits));
      break;
    default:
      if (width == 0) bits = static_cast<std::uint64_t>(static_cast<std::int8_t>(tag));
      break;
  }
  *value = {bits, is_signed && (bits >> 63) != 0};
  position_ += head.bytes;
  return MsgpackFault::kNone;
}

std::size_t MsgpackReader::TakeTokens(std::span<std::int32_t> out) noexcept {
  const std::uint8_t* at = bytes_.data() + position_;
  const std::uint8_t* const end = bytes_.data() + bytes_.size();
  std::size_t taken = 0;
  for (; taken < out.size() && at < end; ++taken) {
    const std::uint8_t tag = *at;
    if (tag <= 0x7f) {
      out[taken] = tag;
      at += 1;
    } else if (tag == 0xcd && end - at >= 3) {
      out[taken] = at[1] << 8 | at[2];
      at += 3;
    } else if (tag == 0xce && end - at >= 5 && at[1] <= 0x7f) {
      out[taken] = at[1] << 24 | at[2] << 16 | at[3] << 8 | at[4];
      at += 5;
    } else if (tag == 0xcc && end - at >= 2) {
      out[taken] = at[1];
      at += 2;
    } else {
      break;
    }
  }
  position_ = static_cast<std::size_t>(at - bytes_.data());
  return taken;
}

MsgpackFault MsgpackReader::TryDouble(double* value) noexcept {
  if (PeekType() == MsgpackType::kInteger) {
    MsgpackInteger integer;
    if (auto fault = TryInteger(&integer); fault != MsgpackFault::kNone) return fault;
    *value = integer.negative ? static_cast<double>(integer.AsInt64())
                              : static_cast<double>(integer.bits);
    return MsgpackFault::kNone;
  }
  Head head;
  if (auto fault = ParseHead(position_, &head); fault != MsgpackFault::kNone) return fault;
  if (head.type != MsgpackType::kFloat) return MsgpackFault::kType;
  const std::uint64_t bits = BigEndian(position_ + 1, head.bytes - 1);
  *value = head.bytes == 9 ? std::bit_cast<double>(bits)
                           : std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  position_ += head.bytes;
  return MsgpackFault::kNone;
}

MsgpackFault MsgpackReader::TryText(std::string_view* text) noexcept {
  std::string_view body;
  if (auto fault = TakeBody(MsgpackType::kText, &body); fault != MsgpackFault::kNone) return fault;
  if (!IsValidUtf8(body)) return MsgpackFault::kUtf8;
  *text = body;
  position_ = reinterpret_cast<const std::uint8_t*>(body.data()) - bytes_.data() + body.size();
  return MsgpackFault::kNone;
}

MsgpackFault MsgpackReader::TryBytes(std::span<const std::uint8_t>* bytes) noexcept {
  std::string_view body;
  if (auto fault = TakeBody(MsgpackType::kBytes, &body); fault != MsgpackFault::kNone) return fault;
  *bytes = {reinterpret_cast<const std::uint8_t*>(body.data()), body.size()};
  position_ = bytes->data() - bytes_.data() + bytes->size();
  return MsgpackFault::kNone;
}

MsgpackFault MsgpackReader::TryExt(MsgpackExt* ext) noexcept {
  Head head;
  if (auto fault = ParseHead(position_, &head); fault != MsgpackFault::kNone) return fault;
  if (head.type != MsgpackType::kExt) return MsgpackFault::kType;
  const std::size_t type_at = position_ + head.bytes;
  ext->type = static_cast<std::int8_t>(bytes_[type_at]);
  ext->data = bytes_.subspan(type_at + 1, head.size);
  position_ = type_at + 1 + head.size;
  return MsgpackFault::kNone;
}

MsgpackFault MsgpackReader::TryArrayHeader(std::uint32_t* count) noexcept {
  return TakeCount(MsgpackType::kArray, count);
}

MsgpackFault MsgpackReader::TryMapHeader(std::uint32_t* count) noexcept {
  return TakeCount(MsgpackType::kMap, count);
}

MsgpackFault MsgpackReader::TrySkip() noexcept {
  // Values each open container still owes. Their sum is checked against the bytes left at every
  // header, so a chain of headers that are each plausible alone fails as early as it can.
  std::array<std::uint64_t, kMsgpackDepthMax> owed;
  std::uint64_t owed_total = 1;
  std::size_t depth = 0;
  std::size_t at = position_;
  for (;;) {
    Head head;
    if (auto fault = ParseHead(at, &head); fault != MsgpackFault::kNone) return fault;
    at += head.bytes;
    --owed_total;
    if (depth > 0) --owed[depth - 1];
    if (head.type == MsgpackType::kArray || head.type == MsgpackType::kMap) {
      if (depth == kMsgpackDepthMax) return MsgpackFault::kDepth;
      owed[depth++] = head.size;
      owed_total += head.size;
      if (owed_total > bytes_.size() - at) return MsgpackFault::kTruncated;
    } else {
      at += head.size + (head.type == MsgpackType::kExt ? 1 : 0);
    }
    while (depth > 0 && owed[depth - 1] == 0) --depth;
    if (depth == 0) break;
  }
  position_ = at;
  return MsgpackFault::kNone;
}

}  // namespace conductor
