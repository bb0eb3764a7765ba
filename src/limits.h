// Every limit of the service, in one place, with the unit last. The defaults are the documented
// ones; `Limits` is what the configuration's `limits` object overrides.
#pragma once

#include <cstddef>
#include <cstdint>

namespace conductor {

struct Limits {
  // --- requests -------------------------------------------------------------------------------
  std::size_t body_bytes_max = 64u << 20;
  std::size_t header_bytes_max = 16u << 10;
  std::uint32_t request_send_ms_max = 30'000;  // the time a client has to send one request
  std::size_t tokens_max = 1'000'000;          // token ids of one prompt
  std::size_t batch_prompts_max = 1'024;       // prompts of one QueryBatch
  std::size_t http_threads = 16;
  std::size_t rpc_message_bytes_max = 64u << 20;

  // --- streams --------------------------------------------------------------------------------
  std::uint32_t heartbeat_interval_ms = 10'000;
  std::uint32_t heartbeat_dead_ms = 30'000;
  std::uint32_t reconnect_ms_min = 100;
  std::uint32_t reconnect_ms_max = 1'000;    // a publisher that comes up is found within 2 s (BL-11)
  std::uint32_t replay_first_reply_ms = 2'000;
  std::uint32_t replay_progress_ms = 10'000;
  std::uint32_t replay_attempts_max = 3;        // after a partial answer, with back-off
  std::uint32_t replay_probe_ms_max = 60'000;   // back-off ceiling of later probes
  std::uint32_t replays_concurrent_max = 32;    // over all publishers
  std::uint32_t replay_jitter_ms_max = 200;     // before a replay after our own restart
  std::uint32_t first_catch_up_ms_max = 30'000; // how long a stream may hold /readyz
  std::size_t buffered_frames_per_stream_max = 65'536;  // live frames that wait for a replay
  std::size_t buffered_bytes_per_stream_max = 64u << 20;
  std::size_t payload_bytes_max = 64u << 20;    // one frame
  std::size_t registrations_max = 16'384;
  std::size_t stream_threads = 2;

  // --- apply ----------------------------------------------------------------------------------
  std::size_t queue_frames_max = 16'384;        // decoded frames that wait for the apply thread
  std::size_t queue_bytes_max = 256u << 20;
  std::size_t queue_commands_max = 4'096;       // registrations that wait for the apply thread
  std::size_t group_frames_max = 512;           // frames of one group commit
  std::size_t group_bytes_max = 4u << 20;
  std::size_t unsynced_bytes_max = 64u << 20;   // records kept until a sync succeeds; full forces one
  // --- snapshots ------------------------------------------------------------------------------
  std::size_t snapshot_buffer_bytes_max = 64u << 20;      // encoded and not yet written: then it waits
  std::size_t snapshot_set_aside_bytes_max = 512u << 20;  // beyond it the snapshot is given up

  // --- index ----------------------------------------------------------------------------------
  std::uint64_t max_blocks = 200'000'000;       // 0 = no cap
  std::uint64_t max_bytes = 0;                  // 0 = no cap
};

// Fixed by formats, not configurable.
inline constexpr std::size_t kRecentFingerprintsPerStream = 1'024;
inline constexpr std::uint32_t kCopiesMax = 65'535;  // part of the log format: copies saturate here
// Blocks known by name only, all contexts together. Part of the log format too: Apply refuses more.
inline constexpr std::uint64_t kFragmentsMax = 1'000'000;
// Parts (ranks, K and V, layers) of one block in a pool, and (backend, tenant) pairs of all pools:
// Apply refuses more.
inline constexpr std::size_t kPartsPerBlockMax = 8'192;
inline constexpr std::size_t kPoolsMax = 65'536;
inline constexpr std::size_t kLostRangesPerStreamMax = 64;  // older ones are merged, never dropped
inline constexpr std::uint32_t kBlockSizeMax = 1u << 20;
inline constexpr std::size_t kNameBytesMax = 1'024;  // instance, tenant, model, LoRA, topic
inline constexpr std::size_t kEndpointBytesMax = 512;
inline constexpr std::uint32_t kDpRankMax = 65'535;

}  // namespace conductor
