// Why a whole message was refused: the stable words in Error.reason of ParseLiveFrame,
// ParseReplayReply, DecodeEnginePayload, DecodeStorePayload and the snapshot messages. They name
// counters, so they never change. The words of a malformed value (msgpack_truncated, ...) are
// ToString(MsgpackFault).
#pragma once

namespace conductor::wire_reason {

inline constexpr char kFrameCount[] = "frame_count";
inline constexpr char kDelimiter[] = "delimiter";
inline constexpr char kTopicLength[] = "topic_length";
inline constexpr char kSeqLength[] = "seq_length";
inline constexpr char kSeqRange[] = "seq_range";
inline constexpr char kPayloadSize[] = "payload_size";
inline constexpr char kEnvelopeType[] = "envelope_type";
inline constexpr char kEnvelopeArity[] = "envelope_arity";
inline constexpr char kEnvelopeKey[] = "envelope_key";
inline constexpr char kEventsNotArray[] = "events_not_array";
inline constexpr char kTsType[] = "ts_type";
inline constexpr char kTsNotFinite[] = "ts_not_finite";
inline constexpr char kExtType[] = "ext_type";
inline constexpr char kDpRankType[] = "dp_rank_type";
inline constexpr char kBatchLimit[] = "batch_limit";
inline constexpr char kPublisherType[] = "publisher_type";
inline constexpr char kSnapshotWord[] = "snapshot_word";
inline constexpr char kSnapshotHeader[] = "snapshot_header";
inline constexpr char kSnapshotChunk[] = "snapshot_chunk";
inline constexpr char kSnapshotEnd[] = "snapshot_end";
inline constexpr char kSnapshotOrder[] = "snapshot_order";

}  // namespace conductor::wire_reason
