// Facts: what the log records, in the domain's own terms.
//
// A log record is a list of facts that were committed together. Apply(state, record) is a pure
// function of them: every decision that depends on configuration, memory, time or chance is a fact
// of its own, and what Apply can derive from state and record it derives. The I/O threads decide
// only what their own stream tracker knows (duplicate, life, gap, counting group, hash comparison).
// storage/record.proto is the disk form; prompt tokens and salts are never in either.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/inline_text.h"
#include "src/pool_origin.h"
#include "src/registration.h"
#include "src/types.h"

namespace conductor {

// The comparison of a block's name with the hash recomputed from its tokens.
enum class HashCheck : std::uint8_t { kEqual = 1, kDiffers = 2, kNotComputed = 3 };

// Why something in a frame was not applied. Reaches the disk in Frame::ignored.
enum class IgnoreReason : std::uint8_t {
  kUndecodableFrame = 1,  // the whole payload
  kUndecodableEvent = 2,  // one event of it
  kOtherGroup = 3,        // an event of a group that does not count
  kUnknownMedium = 4,
  kPartialEntry = 5,       // vLLM: a part of a block
  kRemote = 6,             // locality REMOTE
  kRankMismatch = 7,       // the frame's rank contradicts the registration: whole frame
  kBlockSizeMismatch = 8,  // the event's block size contradicts the registration
  kAmbiguousLength = 9,    // tokens, names and block size do not agree
  kTopicMismatch = 10,
  kUnparsableKey = 11,    // a store object whose key names no block
  kUnsupported = 12,      // a publisher type this release does not decode
  kSecondPublisher = 13,  // a bound endpoint got frames of a second publisher
};

struct StoredBlock {
  BlockName name;
  // Fingerprint v1 of the block's tokens and extra keys; meaningless when the event is token-less.
  std::uint64_t fingerprint = 0;
  HashCheck check = HashCheck::kNotComputed;
};

// Blocks stored. Block i's parent is block i-1; the first one's is `parent` (none: the root).
struct Stored {
  Tier tier = Tier::kDevice;
  // The adapter whose context the blocks belong to; none: the registration's.
  std::optional<std::string> lora_name;
  bool has_tokens = true;  // false: names only; `parent` is then meaningless and no root is implied
  bool extra_keys_on_wire = false;
  std::uint32_t block_length = 0;  // tokens (bigram: positions) of each block
  std::optional<BlockName> parent;
  std::optional<SaltDigest> salt;  // only with parent == none: selects the root
  std::vector<StoredBlock> blocks;
  // The digest recomputed for the last block: verification goes on from it after a restart.
  std::optional<Digest> last_digest;
};

struct Removed {
  Tier tier = Tier::kDevice;
  std::vector<BlockName> names;
};

// vLLM: the rank's device blocks. SGLang, and the RFC form of vLLM (`all_tiers`): every tier.
struct Cleared {
  bool all_tiers = false;
};

// Facts of a pool (Mooncake Store): one object, which is a part of a block.
struct PoolObject {
  Tier tier = Tier::kCpuShare;
  std::uint32_t origin = 0;  // which of its frame's
  BlockName name;
  // Canonical: ranks, K or V, layer, as far as the key tells. In place in all but odd cases; an
  // event is no larger for it, since engines' need as much.
  InlineText<88> part;
};
struct PoolStored : PoolObject {};
struct PoolRemoved : PoolObject {};
struct PoolCleared {
  std::string backend_id, tenant_id;
};

using Event = std::variant<Stored, Removed, Cleared, PoolStored, PoolRemoved, PoolCleared>;
static_assert(sizeof(PoolObject) <= sizeof(Stored));

struct Registered {
  Registration registration;
  UnverifiedBlocks unverified_blocks = UnverifiedBlocks::kContent;
};

struct Unregistered {
  ServiceKey key;
};

// One frame of a stream, in order. Logged also when nothing of it is left: the cursor moves.
struct Frame {
  StreamId stream = 0;
  std::uint64_t number = 0;            // the publisher's sequence number
  std::int64_t publisher_time_us = 0;  // as the publisher said, 0 when unknown
  std::uint64_t fingerprint = 0;       // XXH3-64 of the payload
  std::vector<Event> events;
  std::map<IgnoreReason, std::uint64_t> ignored;
  std::vector<PoolOrigin> origins{};  // of its pool objects
};

// The publisher's process is a new one: all it held is gone, the cursor is empty again.
struct NewEpoch {
  StreamId stream = 0;
  UnverifiedBlocks unverified_blocks = UnverifiedBlocks::kContent;
};

// Which KV cache group of the stream's life makes prefix hits.
struct CountingGroup {
  StreamId stream = 0;
  std::int64_t group = 0;
};

// The first number this life was seen with, when what came before can no longer be had.
struct HistoryStart {
  StreamId stream = 0;
  std::uint64_t number = 0;
};

// Numbers that were published and can no longer be had, inclusive. The cursor moves to `to`.
struct Lost {
  StreamId stream = 0;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

enum class DropReason : std::uint8_t { kLostEvents = 1, kDisconnected = 2, kOperator = 3 };

// Everything the stream's holders have is forgotten; the registration stays.
struct Dropped {
  StreamId stream = 0;
  DropReason reason = DropReason::kLostEvents;
};

// One block taken from one holder to stay below the memory cap.
struct Evicted {
  StreamId stream = 0;
  Tier tier = Tier::kDevice;
  std::string lora_name;  // exactly: empty is no adapter
  BlockName name;
  // Of a pool, whose objects name their own contexts. An empty text, or 0: the registration's.
  std::string tenant_id, model_name;
  std::uint32_t block_size = 0;
};

// A publisher's own snapshot (SGLang) replaces what its device holders have. The cursor moves to
// the number before `resume_number`, and what was lost is lost no more.
struct PublisherSnapshot {
  StreamId stream = 0;
  std::uint64_t resume_number = 0;
  std::string epoch;  // the publisher's word for this life
  std::vector<std::pair<std::optional<BlockName>, BlockName>> links;  // (parent, name)
};

using Fact = std::variant<Registered, Unregistered, Frame, NewEpoch, CountingGroup, HistoryStart,
                          Lost, Dropped, Evicted, PublisherSnapshot>;

struct Record {
  std::vector<Fact> facts;
};

}  // namespace conductor
