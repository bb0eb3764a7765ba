// What an engine's frame says, decoded and nothing more: independent of the registration, of the
// stream's state and of time. The stream layer judges what needs their knowledge (ranks, block
// sizes, lengths of token lists, groups, salts). Plain values, but texts lie in the
// payload, which outlives the batch. Any thread.
//
// A batch keeps the order of the wire. An event that cannot be decoded is dropped alone; its
// neighbours stand, and `rejected` says which one and why. Nothing here ever repeats a salt or a
// token in a message, because these messages reach the log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/wire/block_extra_keys.h"
#include "src/types.h"

namespace conductor {

// Where a block lies, from the event's medium.
enum class Medium : std::uint8_t {
  kDevice = 1,    // GPU, NPU, nil or absent
  kCpu = 2,       // CPU, CPU_PINNED
  kDisk = 3,      // DISK, STORAGE
  kExternal = 4,  // EXTERNAL: a pool behind the engine
  kUnknown = 5,   // a valid text that no tier is known for: to be counted and ignored
};

// The kind of attention of the event's cache group.
enum class SpecKind : std::uint8_t {
  kNone = 1,  // absent or nil
  kFullAttention = 2,
  kMlaAttention = 3,
  kSinkFullAttention = 4,
  kSlidingWindow = 5,
  kOther = 6,
};

enum class Locality : std::uint8_t {
  kNone = 1,  // absent or nil
  kLocal = 2,
  kRemote = 3,
  kOther = 4,
};

// Why one event was dropped. Stable: they name counters.
enum class EventFault : std::uint8_t {
  kNone = 0,
  kEventType = 1,     // neither an array nor a map
  kUnknownTag = 2,    // none of the three events
  kMissingField = 3,  // a required field, or the tag
  kFieldType = 4,     // a field of the wrong type
  kFieldRange = 5,    // an integer its field cannot hold
  kHashType = 6,      // a hash that is no integer of its engine and no bytes, or a mixed list
  kHashTooShort = 7,  // bytes, less than 8
  kTokenType = 8,     // neither an integer nor (SGLang) a pair of them, or a mixed list
  kTokenRange = 9,    // a token that is negative or outside int32
  kBlockSize = 10,    // zero, negative or beyond int64
  kDuplicateKey = 11,
  kKeyType = 12,  // a map key that is not text
  kInvalidUtf8 = 13,
  kExtraKeys = 14,  // not one entry per hash
  kTooManyKeys = 15,
  kHashTooLong = 16,  // bytes, more than kBlockNameBytesMax
  kConflict = 17,     // a store's event that contradicts itself or its batch
};
inline constexpr std::size_t kEventFaultCount = 18;

// "hash_type", "token_range".
std::string_view ToString(EventFault fault);

Medium ParseMedium(std::string_view text);
SpecKind ParseSpecKind(std::string_view text);
Locality ParseLocality(std::string_view text);
// The groups whose blocks make a usable prefix.
bool IsFullAttentionLike(SpecKind kind);

struct WireEvent {
  enum class Kind : std::uint8_t { kStored = 1, kRemoved = 2, kCleared = 3 };

  Kind kind = Kind::kCleared;
  Medium medium = Medium::kDevice;
  SpecKind spec_kind = SpecKind::kNone;
  Locality locality = Locality::kNone;
  // Stored: token_ids holds pairs, flat: first, second, first, second (SGLang only).
  bool bigram = false;
  // Stored: a map event, an array event with the slot, or SGLang. False: an older release that
  // could not say, so a block without extra keys here may have some.
  bool extra_keys_on_wire = false;
  // Stored: an entry of extra_keys had a shape of no release; it is kept as kBytes, its raw
  // MessagePack, and the hash of its block cannot be recomputed.
  bool opaque_extra_keys = false;
  // Position among all events of the batch, rejected ones included.
  std::uint32_t index = 0;

  // Stored: consecutive blocks, the first one's parent is `parent`. Removed: any blocks.
  std::vector<BlockName> names;
  // Nil on the wire: the start of the prompt (or, without tokens, nothing said).
  std::optional<BlockName> parent;
  // Of the whole step: more than names x block_size where masked blocks were left out.
  std::vector<std::int32_t> token_ids;
  std::int64_t block_size = 0;
  BlockExtraKeys extra_keys;

  // Absent, nil and "" are the same for both texts.
  std::optional<std::string_view> lora_name;
  std::optional<std::string_view> cache_salt;  // SGLang only
  std::optional<std::int64_t> lora_id;
  std::optional<std::int64_t> group_idx;
  std::optional<std::int64_t> sliding_window;
};

// The L + 1 tokens that L chained pairs spell ([1,2],[2,3] -> 1,2,3) in place of what `joined`
// held; false when the pairs do not chain or the event holds none.
bool JoinBigramTokens(const WireEvent& event, std::vector<std::int32_t>* joined);

struct EventError {
  std::uint32_t index = 0;  // as WireEvent::index
  EventFault fault = EventFault::kNone;
  std::string text;  // "event 1: token_ids[2]: expected an integer, got text"
};

// What every batch has beside its events.
struct BatchEnvelope {
  // The publisher's clock, whole microseconds; saturates far outside any calendar.
  std::int64_t publisher_time_us = 0;
  std::optional<std::int64_t> dp_rank;
  // The first kRejectedDetailsMax of them; the counts below are complete.
  std::vector<EventError> rejected;
  std::array<std::uint32_t, kEventFaultCount> rejected_counts{};  // by EventFault

  std::uint64_t RejectedTotal() const {
    std::uint64_t total = 0;
    for (auto count : rejected_counts) total += count;
    return total;
  }
};

struct WireBatch : BatchEnvelope {
  std::vector<WireEvent> events;
  // What the events' extra keys lie in; null: no block has any.
  std::unique_ptr<ExtraKeyStore> extra_keys;
};

}  // namespace conductor
