// A strict pull reader of MessagePack over bytes that stay where they are: no object tree, no
// allocation, no recursion. Every declared length is compared with the bytes that are left before
// it is believed (an array of n needs n bytes, a map of n needs 2n), so a caller may reserve what
// a header returned. Reserved 0xc1, truncation and text that is not UTF-8 are errors.
//
// A read that fails leaves the position at the value it could not read. Widths need not be
// minimal. Views point into the caller's bytes, which must outlive them. One thread per reader.
//
//   MsgpackReader reader(payload);
//   CONDUCTOR_ASSIGN_OR_RETURN(std::uint32_t count, reader.ReadArrayHeader());
//
// Each Read has a Try twin that returns a fault instead of a sentence: for hot loops, and for
// callers that word their own errors. Error.reason of a Read is ToString(fault).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "replay/wire/wire_limits.h"
#include "src/result.h"

namespace conductor {

enum class MsgpackType : std::uint8_t {
  kNil,
  kBool,
  kInteger,
  kFloat,
  kText,
  kBytes,
  kArray,
  kMap,
  kExt,
  kReserved,  // 0xc1, which no value may start with
  kEnd,       // no byte is left
};

enum class MsgpackFault : std::uint8_t {
  kNone,
  kTruncated,  // the value needs more bytes than there are
  kReserved,   // 0xc1
  kDepth,      // more than kMsgpackDepthMax containers inside each other
  kTrailing,   // bytes after the end of the value
  kType,       // a well-formed value of another type
  kRange,      // an integer outside the asked type
  kUtf8,
};

// "array", "text"; "msgpack_truncated", "msgpack_type".
std::string_view ToString(MsgpackType type);
std::string_view ToString(MsgpackFault fault);

// Any MessagePack integer: u64, or a negative i64 by its two's complement bits.
struct MsgpackInteger {
  std::uint64_t bits = 0;
  bool negative = false;

  bool FitsInt64() const { return negative || bits <= INT64_MAX; }
  std::int64_t AsInt64() const { return static_cast<std::int64_t>(bits); }
};

struct MsgpackExt {
  std::int8_t type = 0;
  std::span<const std::uint8_t> data;
};

class MsgpackReader {
 public:
  explicit MsgpackReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  MsgpackType PeekType() const noexcept;
  std::size_t Offset() const noexcept { return position_; }
  std::size_t Remaining() const noexcept { return bytes_.size() - position_; }
  bool AtEnd() const noexcept { return position_ == bytes_.size(); }
  // Back to an offset this reader has stood at, or on to one a copy of it has reached.
  void Seek(std::size_t offset) noexcept;
  // The bytes from `offset` to the position: a value that was skipped, as it stands.
  std::span<const std::uint8_t> BytesSince(std::size_t offset) const noexcept;

  Status ReadNil();
  Result<bool> ReadBool();
  Result<std::uint64_t> ReadUint64();
  Result<std::int64_t> ReadInt64();
  Result<double> ReadDouble();  // integers are numbers too; may be NaN or infinite
  Result<std::string_view> ReadText();
  Result<std::span<const std::uint8_t>> ReadBytes();
  Result<MsgpackExt> ReadExt();
  Result<std::uint32_t> ReadArrayHeader();
  Result<std::uint32_t> ReadMapHeader();  // pairs
  // One whole value, whatever it is. Checks its structure, not the UTF-8 of its texts.
  Status Skip();
  // Nothing may follow: msgpack_trailing.
  Status ReadEnd() const;

  MsgpackFault TryNil() noexcept;
  MsgpackFault TryBool(bool* value) noexcept;
  MsgpackFault TryInteger(MsgpackInteger* value) noexcept;
  // Integers in 0..INT32_MAX in their usual spellings, from the position on, until `out` is full or
  // something else comes: how many. The reader stands behind the last of them.
  std::size_t TakeTokens(std::span<std::int32_t> out) noexcept;
  MsgpackFault TryDouble(double* value) noexcept;
  MsgpackFault TryText(std::string_view* text) noexcept;
  MsgpackFault TryBytes(std::span<const std::uint8_t>* bytes) noexcept;
  MsgpackFault TryExt(MsgpackExt* ext) noexcept;
  MsgpackFault TryArrayHeader(std::uint32_t* count) noexcept;
  MsgpackFault TryMapHeader(std::uint32_t* count) noexcept;
  MsgpackFault TrySkip() noexcept;

 private:
  // The first bytes of a value: where its body starts and how long it is.
  struct Head {
    MsgpackType type = MsgpackType::kEnd;
    std::size_t bytes = 0;   // of the head itself
    std::uint64_t size = 0;  // body bytes of text, bytes and ext; values inside an array or map
  };

  MsgpackFault ParseHead(std::size_t offset, Head* head) const noexcept;
  MsgpackFault TakeBody(MsgpackType type, std::string_view* body) noexcept;
  MsgpackFault TakeCount(MsgpackType type, std::uint32_t* count) noexcept;
  std::uint64_t BigEndian(std::size_t offset, std::size_t width) const noexcept;
  tl::unexpected<Error> Fail(MsgpackFault fault, std::string_view expected) const;

  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;  // Invariant: position_ <= bytes_.size().
};

}  // namespace conductor
