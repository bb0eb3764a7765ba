// The contract of writer and reader of a snapshot file. docs/snapshot_format.md describes it in
// words, byte by byte.
//
// Everything here is on disks of users: a constant is added, never changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace conductor::storage {

// --- The file: header, frames of pieces, one last frame ------------------------------------------
//   byte 0..7    kSnapshotMagic
//   byte 8..11   format version
//   byte 12..15  header length in bytes
//   byte 16..23  the log position
//   byte 24..31  XXH3-64 of bytes 0..23
// All integers are little-endian. Whatever the version, these 32 bytes keep their places.
inline constexpr std::string_view kSnapshotMagic = "CONDSNAP";
inline constexpr std::uint32_t kSnapshotFormatVersion = 1;
inline constexpr std::size_t kSnapshotHeaderBytes = 32;

// --- A frame -------------------------------------------------------------------------------------
//   byte 0..3    FrameType
//   byte 4..7    payload length in bytes
//   byte 8..15   number of the frame, from 1
//   then the payload, then XXH3-64, seeded with the log position, of all bytes before it
enum class FrameType : std::uint32_t {
  kPieces = 1,  // v1
  kEnd = 2,     // v1: exactly one, the last
};
inline constexpr std::size_t kFrameHeadBytes = 16;
inline constexpr std::size_t kFrameChecksumBytes = 8;
// A frame of pieces is closed when it has as many bytes; no piece is larger than the difference.
inline constexpr std::size_t kFrameTargetBytes = 1u << 20;
inline constexpr std::size_t kFrameBytesMax = 2u << 20;

// --- Pieces --------------------------------------------------------------------------------------
// A payload is pieces one after the other: the kind as one byte, then its fields.
enum class PieceKind : std::uint8_t {
  kStart = 1,  // v1, as all below
  kContext = 2,
  kPool = 3,
  kRegistration = 4,
  kHolder = 5,
  kSet = 6,
  kRun = 7,
  kEntry = 8,
  kCopies = 9,
  kParts = 10,
  kStreamContexts = 11,
  kStream = 12,
};
inline constexpr std::size_t kPieceKinds = 12;

// Ids of an image are from 1 to below this.
inline constexpr std::uint32_t kImageIdsMax = 1u << 26;
// Longer lists go on in the next piece.
inline constexpr std::size_t kIdsPerPieceMax = 1u << 16;
// A root's name: no digest, or that of its salt.
inline constexpr std::size_t kSaltDigestBytes = 16;

// Bits of the flag bytes.
inline constexpr std::uint8_t kContextHasProfile = 1, kContextHasEngineProfile = 2;
inline constexpr std::uint8_t kSetContinues = 1;
inline constexpr std::uint8_t kRunHasExtraKeys = 1, kRunHasDigest = 2;
inline constexpr std::uint8_t kEntryHasExtraKeys = 1, kEntryHasDigest = 2, kEntryHasParent = 4;
inline constexpr std::uint8_t kStreamHasCursor = 1, kStreamHasHistoryFrom = 2,
                              kStreamHasCountingGroup = 4, kStreamVerifiedEver = 8,
                              kStreamDiffersEver = 16, kStreamSeenFullSize = 32;

// --- The last frame's payload, all of 8 bytes ----------------------------------------------------
// state digest (low, high), blocks, fragments, frames in the file, pieces of each kind.
inline constexpr std::size_t kEndPayloadBytes = 8 * (5 + kPieceKinds);
inline constexpr std::size_t kEndFrameBytes =
    kFrameHeadBytes + kEndPayloadBytes + kFrameChecksumBytes;

// --- Files ---------------------------------------------------------------------------------------
inline constexpr char kSnapshotsDirectory[] = "snapshots";
inline constexpr std::size_t kSnapshotNameDigits = 20;
inline constexpr char kSnapshotSuffix[] = ".snapshot";
inline constexpr char kGrowingSuffix[] = ".growing";  // behind the name: not finished
inline constexpr char kDamagedSuffix[] = ".damaged";  // behind the name: set aside

}  // namespace conductor::storage
