#include "rpc/http2/frame.h"

#include "src/check.h"

namespace conductor::rpc {

void AppendU32(std::uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

std::uint32_t ReadU32(std::span<const std::uint8_t> bytes) {
  CHECK(bytes.size() >= 4);
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void AppendFrameHeader(FrameType type, std::uint8_t flags, std::uint32_t stream,
                       std::size_t payload_bytes, std::string* out) {
  CHECK(payload_bytes <= kFrameBytesMax);
  for (int shift = 16; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(payload_bytes >> shift));
  }
  out->push_back(static_cast<char>(type));
  out->push_back(static_cast<char>(flags));
  AppendU32(stream, out);
}

void FrameReader::Append(std::span<const std::uint8_t> bytes) {
  buffer_.erase(0, start_);
  start_ = 0;
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::optional<Frame>> FrameReader::Next() {
  const std::span<const std::uint8_t> bytes(
      reinterpret_cast<const std::uint8_t*>(buffer_.data()) + start_, buffer_.size() - start_);
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  const std::size_t length = ReadU32(bytes) >> 8;
  if (length > kFrameBytesDefault) {
    return MakeError(ErrorCode::kUnavailable, "http2: frame of " + std::to_string(length) +
                                                  " bytes, expected at most " +
                                                  std::to_string(kFrameBytesDefault));
  }
  if (bytes.size() < kFrameHeaderBytes + length) return std::nullopt;
  start_ += kFrameHeaderBytes + length;
  return Frame{static_cast<FrameType>(bytes[3]), bytes[4], ReadU32(bytes.subspan(5)) & kWindowMax,
               bytes.subspan(kFrameHeaderBytes, length)};
}

}  // namespace conductor::rpc
