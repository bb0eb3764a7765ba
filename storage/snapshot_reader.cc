#include "storage/snapshot_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "src/hash/xxh3.h"
#include "storage/field_bytes.h"
#include "storage/piece_decoder.h"
#include "storage/snapshot_format.h"

namespace conductor::storage {
namespace {

std::string Named(const SnapshotFileName& file) {
  return "snapshot " + file.path;
}

tl::unexpected<Error> Damaged(const SnapshotFileName& file, std::uint64_t offset,
                              const std::string& what) {
  return MakeError(ErrorCode::kDataLoss,
                   Named(file) + ": offset " + std::to_string(offset) + ": " + what);
}

std::string Hex(std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < text.size(); ++i) text[15 - i] = kDigits[value >> (4 * i) & 15];
  return text;
}

// The last 8 of `bytes` are the checksum of those before them.
Status CheckChecksum(const SnapshotFileName& file, std::uint64_t offset, std::string_view bytes,
                     std::uint64_t seed) {
  const std::string_view covered = bytes.substr(0, bytes.size() - kFrameChecksumBytes);
  const auto stored = FieldReader(bytes.substr(covered.size())).Take<std::uint64_t>();
  const std::uint64_t computed =
      Xxh3({reinterpret_cast<const std::uint8_t*>(covered.data()), covered.size()}, seed);
  if (stored == computed) return {};
  return Damaged(file, offset, "checksum " + Hex(stored) + ", expected " + Hex(computed));
}

Status CheckHeader(const SnapshotFileName& file, std::string_view header) {
  if (header.size() < kSnapshotHeaderBytes) {
    return Damaged(file, 0,
                   std::to_string(header.size()) + " bytes, expected a header of " +
                       std::to_string(kSnapshotHeaderBytes));
  }
  if (!header.starts_with(kSnapshotMagic)) return Damaged(file, 0, "no snapshot begins so");
  CONDUCTOR_RETURN_IF_ERROR(CheckChecksum(file, 0, header, 0));
  FieldReader in(header.substr(kSnapshotMagic.size()));
  const auto version = in.Take<std::uint32_t>();
  if (version != kSnapshotFormatVersion) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     Named(file) + ": format version " + std::to_string(version) +
                         ", this build reads " + std::to_string(kSnapshotFormatVersion));
  }
  const auto bytes = in.Take<std::uint32_t>();
  if (bytes != kSnapshotHeaderBytes) {
    return Damaged(file, 12,
                   "header of " + std::to_string(bytes) + " bytes, expected " +
                       std::to_string(kSnapshotHeaderBytes));
  }
  const auto seq = in.Take<std::uint64_t>();
  if (seq != file.seq) {
    return Damaged(file, 16,
                   "position " + std::to_string(seq) + ", expected " + std::to_string(file.seq));
  }
  return {};
}

struct FrameHead {
  FrameType type = FrameType::kPieces;
  std::uint32_t payload_bytes = 0;
};

Result<FrameHead> CheckFrameHead(const SnapshotFileName& file, std::uint64_t offset,
                                 std::string_view bytes, std::uint64_t number) {
  FieldReader in(bytes);
  const auto type = in.Take<std::uint32_t>();
  const auto payload_bytes = in.Take<std::uint32_t>();
  const auto found = in.Take<std::uint64_t>();
  const auto refuse = [&](const char* what, std::uint64_t got, std::uint64_t expected) {
    return Damaged(
        file, offset,
        std::string(what) + " " + std::to_string(got) + ", expected " + std::to_string(expected));
  };
  if (found != number) return refuse("frame", found, number);
  if (type != static_cast<std::uint32_t>(FrameType::kPieces) &&
      type != static_cast<std::uint32_t>(FrameType::kEnd)) {
    return Damaged(file, offset, "frame type " + std::to_string(type) + ", expected 1 or 2");
  }
  const FrameHead head{static_cast<FrameType>(type), payload_bytes};
  if (head.type == FrameType::kEnd && payload_bytes != kEndPayloadBytes) {
    return refuse("payload bytes of the last frame", payload_bytes, kEndPayloadBytes);
  }
  const std::uint64_t left = file.bytes - offset - kFrameHeadBytes;
  const std::uint64_t most = std::min<std::uint64_t>(
      left < kFrameChecksumBytes ? 0 : left - kFrameChecksumBytes, kFrameBytesMax);
  if (payload_bytes == 0 || payload_bytes > most) {
    return Damaged(file, offset,
                   "payload of " + std::to_string(payload_bytes) + " bytes, expected 1 to " +
                       std::to_string(most));
  }
  return head;
}

struct LastFrame {
  ImageEnd end;
  std::uint64_t frames = 0;
  std::array<std::uint64_t, kPieceKinds> pieces{};
};

LastFrame ReadLastFrame(std::string_view payload) {
  LastFrame last;
  FieldReader in(payload);
  last.end.digest = in.TakeSum();
  last.end.blocks = in.Take<std::uint64_t>();
  last.end.fragments = in.Take<std::uint64_t>();
  last.frames = in.Take<std::uint64_t>();
  in.TakeArray(std::span<std::uint64_t>(last.pieces));
  return last;
}

class FrameReader {
 public:
  FrameReader(const SnapshotFileName& file, ByteSource& source) : file_(file), source_(source) {}

  Status Header() {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::string_view header, Bytes(0, kSnapshotHeaderBytes));
    CONDUCTOR_RETURN_IF_ERROR(CheckHeader(file_, header));
    offset_ = kSnapshotHeaderBytes;
    return {};
  }

  // The next frame's payload; valid until the next call.
  Status Next() {
    begin_ = offset_;
    ++number_;
    CONDUCTOR_ASSIGN_OR_RETURN(std::string_view bytes, Bytes(0, kFrameHeadBytes));
    if (bytes.size() < kFrameHeadBytes) {
      return Damaged(file_, begin_, "the file ends, expected frame " + std::to_string(number_));
    }
    CONDUCTOR_ASSIGN_OR_RETURN(const FrameHead head, CheckFrameHead(file_, begin_, bytes, number_));
    const std::size_t rest = head.payload_bytes + kFrameChecksumBytes;
    CONDUCTOR_ASSIGN_OR_RETURN(bytes, Bytes(kFrameHeadBytes, rest));
    if (bytes.size() < kFrameHeadBytes + rest) {
      return Damaged(file_, begin_, "the file ends inside frame " + std::to_string(number_));
    }
    CONDUCTOR_RETURN_IF_ERROR(CheckChecksum(file_, begin_, bytes, file_.seq));
    offset_ += bytes.size();
    type_ = head.type;
    payload_ = bytes.substr(kFrameHeadBytes, head.payload_bytes);
    return {};
  }

  Status ExpectEndOfFile() {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::string_view more, Bytes(0, 1));
    if (more.empty() && offset_ == file_.bytes) return {};
    return Damaged(file_, offset_, "bytes behind the last frame");
  }

  FrameType type() const { return type_; }
  std::string_view payload() const { return payload_; }
  std::uint64_t begin() const { return begin_; }
  std::uint64_t number() const { return number_; }

 private:
  // The buffer's first `kept` bytes and up to `count` more.
  Result<std::string_view> Bytes(std::size_t kept, std::size_t count) {
    if (buffer_.size() < kept + count) buffer_.resize(kept + count);
    CONDUCTOR_ASSIGN_OR_RETURN(const std::size_t got,
                               source_.Read(std::span(buffer_).subspan(kept, count)));
    return std::string_view(buffer_.data(), kept + got);
  }

  const SnapshotFileName& file_;
  ByteSource& source_;
  std::vector<char> buffer_;  // one frame, at most
  std::uint64_t offset_ = 0;  // of the next frame
  std::uint64_t begin_ = 0;   // of this one
  std::uint64_t number_ = 0;
  FrameType type_ = FrameType::kPieces;
  std::string_view payload_;
};

}  // namespace

Status ReadSnapshotBytes(const SnapshotFileName& file, ByteSource& source, ImageVisitor& visitor) {
  FrameReader frames(file, source);
  CONDUCTOR_RETURN_IF_ERROR(frames.Header());
  PieceDecoder decoder(Named(file), file.seq, visitor);
  for (;;) {
    CONDUCTOR_RETURN_IF_ERROR(frames.Next());
    if (frames.type() == FrameType::kEnd) break;
    CONDUCTOR_RETURN_IF_ERROR(decoder.Decode(frames.payload(), frames.begin() + kFrameHeadBytes));
  }
  const LastFrame last = ReadLastFrame(frames.payload());
  CONDUCTOR_RETURN_IF_ERROR(frames.ExpectEndOfFile());
  if (last.frames != frames.number()) {
    return Damaged(file, frames.begin(),
                   "frame " + std::to_string(frames.number()) + " of " +
                       std::to_string(last.frames) + " is the last");
  }
  for (std::size_t i = 0; i < kPieceKinds; ++i) {
    if (last.pieces[i] == decoder.pieces()[i]) continue;
    return Damaged(file, frames.begin(),
                   std::to_string(decoder.pieces()[i]) + " pieces of kind " +
                       std::to_string(i + 1) + ", expected " + std::to_string(last.pieces[i]));
  }
  return decoder.Finish(last.end);
}

Result<ImageEnd> ReadSnapshotEnds(const SnapshotFileName& file, const SnapshotEnds& ends) {
  CONDUCTOR_RETURN_IF_ERROR(CheckHeader(file, ends.head));
  if (ends.tail.size() != kEndFrameBytes || file.bytes < kSnapshotHeaderBytes + kEndFrameBytes) {
    return Damaged(file, ends.tail.size(), "the file ends, expected a last frame");
  }
  const std::uint64_t offset = file.bytes - kEndFrameBytes;
  CONDUCTOR_RETURN_IF_ERROR(CheckChecksum(file, offset, ends.tail, file.seq));
  const LastFrame last = ReadLastFrame(ends.tail.substr(kFrameHeadBytes, kEndPayloadBytes));
  CONDUCTOR_ASSIGN_OR_RETURN(const FrameHead head,
                             CheckFrameHead(file, offset, ends.tail, last.frames));
  if (head.type != FrameType::kEnd) return Damaged(file, offset, "not the last frame");
  return last.end;
}

}  // namespace conductor::storage
