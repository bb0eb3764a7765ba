// The limits of the wire decoders: what a publisher may send before its frame is refused.
//
// A decoder's work and memory are bounded by the payload that is really there: declared lengths
// are compared with the bytes left before anything is reserved, and the counts below bound how
// much larger than its payload a decoded batch may become. They are configuration, not protocol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace conductor {

// Containers inside containers in one MessagePack value. Engine payloads use five.
inline constexpr std::size_t kMsgpackDepthMax = 64;

// One frame's payload. A million-token step of an engine is below 10 MiB.
inline constexpr std::size_t kPayloadBytesMax = 64u << 20;

// The topic frame, its epoch suffix included.
inline constexpr std::size_t kTopicBytesMax = 4096;

// Events of one batch. A page size of one token and a million-token prompt reach the limit.
inline constexpr std::uint64_t kEventsPerBatchMax = 1u << 20;

// Block names and extra keys of one batch together; each costs tens of bytes once decoded.
inline constexpr std::uint64_t kItemsPerBatchMax = 1u << 22;

// Keys of one event map (known and unknown) and of a map envelope.
inline constexpr std::size_t kMapKeysMax = 64;

// One block name. Hybrid models of older releases joined several 32-byte digests.
inline constexpr std::size_t kBlockNameBytesMax = 4096;

// A store's object key; a longer one names no block. Its part of a block must fit the log's names.
inline constexpr std::size_t kObjectKeyBytesMax = 896;

// A hash of an object key that is kept whole; of a longer one (joined digests) the projection is.
inline constexpr std::size_t kObjectDigestBytesMax = 64;

// Rejected events of one batch that are described one by one; beyond it they are only counted.
inline constexpr std::size_t kRejectedDetailsMax = 64;

// What DecodeEnginePayload and DecodeStorePayload obey; tests use smaller ones.
struct WireLimits {
  std::size_t payload_bytes_max = kPayloadBytesMax;
  std::uint64_t events_max = kEventsPerBatchMax;
  std::uint64_t items_max = kItemsPerBatchMax;
};

}  // namespace conductor
