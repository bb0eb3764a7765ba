// The object keys under which connectors put one block into a Mooncake Store: one object for each
// rank, and for K and V where the connector splits them.
//
//   form              key of one object
//   vllm              [prefix@]model@tp_rank:N@pcp0@dcp0@pp_rank:N[@group:N]@HASH
//   vllm-hma          model@tp_rank:N@pcp0@dcp0@pp_rank:N@HASH@grp:N
//   ascend            model@pcp0@dcp0@head_or_tp_rank:N@pp_rank:N@HASH
//   ascend-layer      model@pcp0@dcp0@head_or_tp_rank:N@HASH@LAYER
//   ascend-layer-id   model@pcp0@dcp0@head_or_tp_rank:N@layer_id:LAYER@HASH
//   sglang-mha        [prefix_]HASH_TP[_PP]_k and ..._v
//   sglang-mla        [prefix_]HASH_[PP]_k
//   number            the low 64 bits in decimal
//
// With each key comes what an M2 master reads out of it (nothing for the forms it does not know).
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"
#include "src/types.h"
#include "tools/store_events.h"

namespace conductor::enginesim {

inline constexpr std::uint32_t kObjectsPerBlockMax = 4'096;

enum class KeyForm : std::uint8_t {
  kVllm,
  kVllmHma,
  kAscend,
  kAscendLayer,
  kAscendLayerId,
  kSglangMha,
  kSglangMla,
  kNumber,
};

Result<KeyForm> ParseKeyForm(std::string_view text);
std::string_view ToString(KeyForm form);

struct KeyOptions {
  KeyForm form = KeyForm::kVllm;
  std::string model_name = "my-model";
  std::string prefix{};        // of vllm and sglang keys; empty: none
  std::optional<int> group{};  // of vllm keys; vllm-hma has 0 without it
  std::uint32_t tp_ranks = 1;  // objects of one block: one per rank
  std::uint32_t pp_ranks = 1;  // where the form has pp
  std::uint32_t layers = 1;    // of the layerwise forms
};

// Errors: kInvalidArgument (a count of 0, too many objects per block).
Status CheckKeyOptions(const KeyOptions& options);

// The objects of one block, without kind and medium.
std::vector<StoreEvent> ObjectsOf(const Digest& digest, const KeyOptions& options);

}  // namespace conductor::enginesim
