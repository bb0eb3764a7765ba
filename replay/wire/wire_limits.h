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

// The same for a store: each event becomes a fact with names of its own, so few bytes on the wire
// may be many in the log. Masters send at most 64.
inline constexpr std::uint64_t kStoreEventsPerBatchMax = 1u << 14;

// Block names and extra keys of one batch together; each costs tens of bytes once decoded.
inline constexpr std::uint64_t kItemsPerBatchMax = 1u << 22;

// Keys of one event map (known and unknown) and of a map envelope.
inline constexpr std::size_t kMapKeysMax = 64;

// One block name.
inline constexpr std::size_t kBlockNameBytesMax = 4096;

// A name that is kept whole: one digest. Longer ones are the digests of several small blocks,
// joined (hybrid models of older releases); they have the projection of the last of them, and only
// that is kept. The log refuses names that are much longer.
inline constexpr std::size_t kWholeNameBytesMax = 32;

// A store's object key; a longer one names no block. Its part of a block must fit the log's names.
inline constexpr std::size_t kObjectKeyBytesMax = 896;

// A prompt's salt. It is only hashed, never kept.
inline constexpr std::size_t kSaltBytesMax = 1u << 16;

// Rejected events of one batch that are described one by one; beyond it they are only counted.
inline constexpr std::size_t kRejectedDetailsMax = 64;

// SGLang's snapshots: records of one chunk (publishers send 4,096), records and blocks of a whole
// one, an epoch or a barrier's id, and what is kept of an error's text.
inline constexpr std::uint32_t kSnapshotChunkRecordsMax = 1u << 16;
inline constexpr std::uint64_t kSnapshotRecordsMax = 1u << 24;
inline constexpr std::size_t kSnapshotLinksMax = 1u << 24;
inline constexpr std::size_t kSnapshotIdBytesMax = 256;
inline constexpr std::size_t kSnapshotErrorBytesMax = 512;

// What DecodeEnginePayload and DecodeStorePayload obey; tests use smaller ones.
struct WireLimits {
  std::size_t payload_bytes_max = kPayloadBytesMax;
  std::uint64_t events_max = kEventsPerBatchMax;
  std::uint64_t store_events_max = kStoreEventsPerBatchMax;
  std::uint64_t items_max = kItemsPerBatchMax;
};

}  // namespace conductor
