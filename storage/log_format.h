// The contract of reader and writer of a data directory. docs/log_format.md describes it in words.
//
// Everything here is on disks of users: a constant is added, never changed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/types.h"

namespace conductor::storage {

// --- A record's value: header, then the protobuf body (storage/record.proto) -------------------
//   byte 0     kRecordMagic
//   byte 1     format version
//   byte 2     header length in bytes, where the body begins
//   byte 3     flags, 0: none is defined
//   byte 4..7  checksum: the low 32 bits of XXH3-64 over the body, little-endian
inline constexpr std::uint8_t kRecordMagic = 0xC4;
inline constexpr std::uint8_t kRecordFormatVersion = 1;
inline constexpr std::size_t kRecordHeaderBytes = 8;
inline constexpr std::size_t kRecordBytesMax = 1u << 30;  // below protobuf's own limit of 2 GiB

// Limits of single fields; the common ones are in src/limits.h.
inline constexpr std::size_t kBlockDigestBytesMin = 9;  // up to 8 bytes are the integer itself
inline constexpr std::size_t kBlockDigestBytesMax = 64;
inline constexpr std::size_t kPoolPartsMax = 64;

// --- The store ---------------------------------------------------------------------------------
inline constexpr char kLogFamily[] = "log";    // position -> record
inline constexpr char kMetaFamily[] = "meta";  // the keys below
inline constexpr char kFormatKey[] = "format";
inline constexpr char kFormatV1[] = "conductor log v1";
inline constexpr char kFormatPrefix[] = "conductor log v";
inline constexpr char kFirstKey[] = "first";  // the first position of the log, as a key of it

// --- Files of ours in the data directory, next to RocksDB's ------------------------------------
inline constexpr char kOwnerFile[] = "owner";    // locked by the process that may write; its pid
inline constexpr char kSyncedFile[] = "synced";  // a position known to be on disk
inline constexpr char kCheckpointsDirectory[] = "checkpoints";

// A position as a key: 8 bytes, big-endian, so that RocksDB's order is the log's order.
inline constexpr std::size_t kSeqKeyBytes = 8;
inline std::array<char, kSeqKeyBytes> EncodeSeqKey(Seq seq) {
  std::array<char, kSeqKeyBytes> key;
  for (std::size_t i = 0; i < kSeqKeyBytes; ++i) {
    key[i] = static_cast<char>((seq >> (8 * (kSeqKeyBytes - 1 - i))) & 0xFF);
  }
  return key;
}

inline std::optional<Seq> DecodeSeqKey(std::string_view key) {
  if (key.size() != kSeqKeyBytes) return std::nullopt;
  Seq seq = 0;
  for (char byte : key) seq = (seq << 8) | static_cast<std::uint8_t>(byte);
  return seq;
}

}  // namespace conductor::storage
