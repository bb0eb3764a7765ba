#include "src/hash/cbor.h"

#include <bit>
#include <cstring>

#include "src/hash/sha256.h"

namespace conductor {
namespace {

static_assert(std::endian::native == std::endian::little);

enum class Major : std::uint8_t {
  kUnsigned = 0x00,
  kNegative = 0x20,
  kBytes = 0x40,
  kText = 0x60,
  kArray = 0x80,
};
constexpr std::uint8_t kNull = 0xf6;
// A head is at most one byte and a 64-bit argument; of an int32, one byte and 32 bits.
constexpr std::size_t kHeadBytesMax = 9;
constexpr std::size_t kTokenBytesMax = 5;

void PutHead(Major major, std::uint64_t argument, ByteBuffer& out) {
  const auto high = static_cast<std::uint8_t>(major);
  if (argument < 24) {
    out.Put(high | static_cast<std::uint8_t>(argument));
  } else if (argument <= 0xff) {
    out.Put(high | 24);
    out.PutBigEndian(argument, 1);
  } else if (argument <= 0xffff) {
    out.Put(high | 25);
    out.PutBigEndian(argument, 2);
  } else if (argument <= 0xffffffff) {
    out.Put(high | 26);
    out.PutBigEndian(argument, 4);
  } else {
    out.Put(high | 27);
    out.PutBigEndian(argument, 8);
  }
}

void PutInteger(std::int64_t value, ByteBuffer& out) {
  // -1 - n without overflow: the complement.
  if (value < 0) return PutHead(Major::kNegative, ~static_cast<std::uint64_t>(value), out);
  PutHead(Major::kUnsigned, static_cast<std::uint64_t>(value), out);
}

// PutInteger for the hot loop: through a pointer, and without branches, which tokens of a large
// vocabulary would mispredict every other time. Writes kTokenBytesMax bytes, of which those before
// the returned end count.
std::uint8_t* WriteToken(std::int32_t token, std::uint8_t* out) {
  static constexpr std::uint8_t kLength[] = {1, 2, 3, 5};
  static constexpr std::uint8_t kShift[] = {0, 24, 16, 0};     // the argument's first byte on top
  static constexpr std::uint8_t kOwnBits[] = {0x1f, 0, 0, 0};  // of the argument, in the head
  const auto sign = static_cast<std::uint32_t>(token >> 31);
  const std::uint32_t argument = static_cast<std::uint32_t>(token) ^ sign;
  // 1 above the limit; written so that compilers make no branch of it.
  const auto above = [argument](std::uint64_t limit) {
    return static_cast<std::uint32_t>((limit - argument) >> 63);
  };
  const std::uint32_t size = above(23) + above(0xff) + above(0xffff);
  static constexpr std::uint8_t kHead[] = {0, 24, 25, 26};
  const std::uint32_t head = kHead[size] | (argument & kOwnBits[size]);
  out[0] = static_cast<std::uint8_t>((sign & 0x20) | head);
  const std::uint32_t big_endian = __builtin_bswap32(argument << kShift[size]);
  std::memcpy(out + 1, &big_endian, sizeof(big_endian));
  return out + kLength[size];
}

void PutBytes(Major major, std::string_view bytes, ByteBuffer& out) {
  PutHead(major, bytes.size(), out);
  out.Append(BytesOf(bytes));
}

void PutExtraKey(const ExtraKeyView& key, ByteBuffer& out) {
  switch (key.kind) {
    case ExtraKey::Kind::kText:
      return PutBytes(Major::kText, key.text, out);
    case ExtraKey::Kind::kInteger:
      return PutInteger(key.integer, out);
    case ExtraKey::Kind::kItem:
      PutHead(Major::kArray, 2, out);
      PutBytes(Major::kText, key.text, out);
      return PutInteger(key.integer, out);
    case ExtraKey::Kind::kBytes:
      return PutBytes(Major::kBytes, key.text, out);
  }
}

}  // namespace

void EncodeCborText(std::string_view text, ByteBuffer& out) {
  PutBytes(Major::kText, text, out);
}

void EncodeCborBlock(const Digest& parent, std::span<const std::int32_t> tokens,
                     ExtraKeyList extra_keys, ByteBuffer& out) {
  PutHead(Major::kArray, 3, out);
  PutHead(Major::kBytes, parent.size(), out);
  out.Append(parent);
  PutHead(Major::kArray, tokens.size(), out);
  std::uint8_t* end = out.Reserve(tokens.size() * kTokenBytesMax + kHeadBytesMax);
  for (const std::int32_t token : tokens) end = WriteToken(token, end);
  out.SetEnd(end);
  if (extra_keys.empty()) return out.Put(kNull);
  PutHead(Major::kArray, extra_keys.size(), out);
  for (std::size_t i = 0; i < extra_keys.size(); ++i) PutExtraKey(extra_keys[i], out);
}

}  // namespace conductor
