// The events of a Mooncake Store's master as values, before an era decides how they look on the
// wire, and what its operator configures. store_encoder.h writes those fields that its era has.
// Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace conductor::enginesim {

// What an M2 master reads out of an object's key; each field only when the key tells it.
struct KeyFields {
  std::string model_name;  // empty: the key names none
  std::optional<std::string> group, connector_block_hash, cache_prefix;
  std::optional<std::uint32_t> tp_rank, head_or_tp_rank, pcp_rank, dcp_rank, pp_rank, layer_id;
};

struct StoreEvent {
  enum class Kind : std::uint8_t { kStored, kRemoved, kCleared };

  Kind kind = Kind::kStored;
  std::string medium = "cpu";  // or "disk"; a clear has none
  std::string object_key{};
  std::optional<std::string> group_id{};  // the store's own grouping of objects
  KeyFields fields{};
  std::optional<std::uint64_t> number{};  // of a key that is a number
};

struct StoreConfig {
  std::string tenant_id = "default";
  std::string backend_id = "pool-a";
  std::string model_name{};       // empty here and below: nil
  std::string additional_salt{};  // of the deployment, not of a prompt
  std::string lora_name{};
  std::uint32_t block_size = 0;  // 0: nil
  std::uint32_t dp_rank = 0;
  bool legacy = true;       // the fields of older consumers: type, block_hashes, parent_block_hash
  bool object_keys = true;  // without them an M3 master suppresses stored and removed
};

}  // namespace conductor::enginesim
