// HTTP/2 frames (RFC 9113, section 4): nine bytes of header, then the payload; all integers
// big-endian. FrameReader cuts a byte stream into frames. Sans I/O; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/result.h"

namespace conductor::rpc {

enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};

inline constexpr std::uint8_t kFlagEndStream = 0x1;
inline constexpr std::uint8_t kFlagAck = 0x1;
inline constexpr std::uint8_t kFlagEndHeaders = 0x4;
inline constexpr std::uint8_t kFlagPadded = 0x8;
inline constexpr std::uint8_t kFlagPriority = 0x20;

inline constexpr std::size_t kFrameHeaderBytes = 9;
inline constexpr std::uint32_t kFrameBytesDefault =
    16'384;  // what we accept; never announced higher
inline constexpr std::uint32_t kFrameBytesMax = (1u << 24) - 1;
inline constexpr std::uint32_t kWindowDefault = 65'535;
inline constexpr std::uint32_t kWindowMax = 0x7FFFFFFF;

struct Frame {
  FrameType type = FrameType::kData;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::span<const std::uint8_t> payload;  // valid until the reader's next call

  bool Has(std::uint8_t flag) const { return (flags & flag) != 0; }
};

void AppendU32(std::uint32_t value, std::string* out);
void AppendFrameHeader(FrameType type, std::uint8_t flags, std::uint32_t stream,
                       std::size_t payload_bytes, std::string* out);
std::uint32_t ReadU32(std::span<const std::uint8_t> bytes);  // Requires: at least 4 bytes.

class FrameReader {
 public:
  void Append(std::span<const std::uint8_t> bytes);
  // Nothing: the next frame is not complete yet. An error: it is longer than we accept.
  Result<std::optional<Frame>> Next();

 private:
  std::string buffer_;
  std::size_t start_ = 0;  // Invariant: start_ <= buffer_.size().
};

}  // namespace conductor::rpc
