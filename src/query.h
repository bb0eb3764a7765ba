// Queries and their answers: the vocabulary of every front end. Counts are in tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/ports.h"
#include "src/rank_counts.h"
#include "src/types.h"

namespace conductor {

struct QueryOptions {
  std::string instance_id;       // empty: every instance of the context
  std::uint32_t top_k = 0;       // 0: all
  std::uint64_t min_tokens = 0;  // only instances with longest_matched >= this
  bool detail = false;
};

// By content. The spans are borrowed for the duration of the call.
struct PromptQuery {
  ContextKey context;
  std::span<const std::int32_t> token_ids;
  std::string cache_salt;
  std::vector<ExtraKeys> extra_keys;  // per block, as the engine would list them; may be empty
  QueryOptions options;
};

// By content, fingerprints ready (src/hash/fingerprint.h): consecutive full blocks of an unsalted
// prompt without extra keys. For callers that ask about one prompt again and again.
struct FingerprintQuery {
  ContextKey context;
  std::span<const std::uint64_t> fingerprints;
  QueryOptions options;
};

// By name: consecutive block hashes in prompt order.
struct HashQuery {
  ContextKey context;
  std::span<const std::uint64_t> hashes;
  QueryOptions options;
};

struct InstanceHits {
  std::string instance_id;
  TierCounts best;  // maxima over the ranks; longest_matched == disk
  RankCounts ranks;
  StreamState stream_state = StreamState::kLive;  // the worst of its own streams
  // It counts a block that only others have (a pool, another engine's shared tier), none of whose
  // streams is live.
  bool rests_on_degraded = false;
};

struct QueryAnswer {
  std::vector<InstanceHits> instances;  // longest_matched, then device, descending, then id
  Seq log_seq = 0;                      // the position the walk started from
  std::vector<std::string> degraded;    // returned instances that rest on a stream not `live`
  bool context_known = false;
  // Only with detail, and only when nothing matched: why, in words, and the nearest known contexts.
  std::string hint;
  std::vector<ContextKey> nearest_contexts;
};

}  // namespace conductor
