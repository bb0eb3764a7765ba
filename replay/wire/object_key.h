// The keys of objects in a Mooncake Store, as the connectors of vLLM, vLLM-Ascend and SGLang spell
// them: which block an object belongs to and which part of it the object is. One block is several
// objects (ranks, K and V, layers, caches of other kinds).
//
// The registration's hash strategy says whose keys they are: a key of another engine names no
// block. So does a key of no known form; it is not an error. What was read points into the key's
// text, which outlives it. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/types.h"

namespace conductor {

struct ObjectKey {
  enum class Syntax : std::uint8_t {
    kUnknown = 0,          // names no block
    kVllm = 1,             // [prefix@]model@tp_rank:N@pcpN@dcpN@pp_rank:N[@labels]@HASH
    kVllmGroupSuffix = 2,  // the same without labels, @grp:N behind the hash
    kAscend = 3,           // model@pcpN@dcpN@head_or_tp_rank:N[@pp_rank:N][@labels]@HASH
    kAscendLayer = 4,      // the same with @layer_id:N before the hash, or (older) @N behind it
    kAscendCompact = 5,    // model[@group]@HASH@rank
    kSglang = 6,           // [tag_]HASH[_ranks_k | _ranks_v | _suffix], 64 hex digits
    kDecimal = 7,          // the number itself
    kHex = 8,
  };
  // K, V, or neither said.
  enum class Half : std::uint8_t { kNone = 0, kKey = 1, kValue = 2 };

  Syntax syntax = Syntax::kUnknown;
  // The hash; meaningless for kUnknown. `digest` is empty for numbers, for hashes of 8 bytes and
  // for those longer than kWholeNameBytesMax.
  BlockName name;
  // The lowest 8 bytes, which M2 publishers send as seq_hashes whatever the engine.
  std::uint64_t low64 = 0;

  // Which part of the block. Ascend's head_or_tp_rank is the tp rank.
  std::optional<std::uint32_t> tp_rank, pp_rank, pcp_rank, dcp_rank, layer_id;
  Half half = Half::kNone;

  // What else tells objects of one block apart. The cache group: only one of a hybrid model's
  // groups makes prefix hits.
  std::optional<std::uint32_t> group;
  std::string_view cache_prefix, cache_role, cache_family;
  // As the key says; the event's own model decides the context.
  std::string_view model_name;
  // SGLang: what stands before and behind the hash, with their underscores taken off the tag only.
  std::string_view tag, suffix;

  bool HasName() const { return syntax != Syntax::kUnknown; }
};

// "vllm", "vllm_ascend_layer", "unknown".
std::string_view ToString(ObjectKey::Syntax syntax);

// Never fails: what cannot be read is kUnknown. `key` is valid UTF-8.
ObjectKey ParseObjectKey(std::string_view key, HashStrategy strategy);

// The canonical text of the part an object is, equal for two keys of one block exactly when they
// are the same object (but for the spelling of the hash and the model's name): coordinates, then
// '|', then the rest. Coordinates are decimal, in this order, joined by '@' and named as in
// `pool_parts`, each only when the key tells: "tp=2@pp=3@pcp=1@dcp=0@layers=17@kv=k|group=0".
// A key that tells nothing has the part "|".
std::string PartOf(const ObjectKey& key);
void AppendPart(const ObjectKey& key, std::string* part);

// Hex digits as a hash: optional 0x, 16 digits or more, an even number of them.
std::optional<BlockName> ParseHashText(std::string_view text);

}  // namespace conductor
