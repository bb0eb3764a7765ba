#include "tools/store_keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tools/event_json.h"

namespace conductor::enginesim {
namespace {

constexpr std::array<std::string_view, 8> kForms{"vllm",         "vllm-hma",        "ascend",
                                                 "ascend-layer", "ascend-layer-id", "sglang-mha",
                                                 "sglang-mla",   "number"};

// One object's place among the objects of its block.
struct Place {
  std::uint32_t tp = 0, pp = 0, layer = 0;
};

StoreEvent VllmObject(const std::string& hash, const KeyOptions& options, const Place& place) {
  StoreEvent object;
  const bool hma = options.form == KeyForm::kVllmHma;
  const std::string ranks =
      "@tp_rank:" + std::to_string(place.tp) + "@pcp0@dcp0@pp_rank:" + std::to_string(place.pp);
  if (hma) {
    object.object_key = options.model_name + ranks + "@" + hash +
                        "@grp:" + std::to_string(options.group.value_or(0));
    return object;  // no master reads this form
  }
  KeyFields& fields = object.fields;
  if (!options.prefix.empty()) {
    object.object_key = options.prefix + "@";
    fields.cache_prefix = options.prefix;
  }
  object.object_key += options.model_name + ranks;
  if (options.group) {
    object.object_key += "@group:" + std::to_string(*options.group);
    fields.group = std::to_string(*options.group);
  }
  object.object_key += "@" + hash;
  fields.model_name = options.model_name;
  fields.connector_block_hash = hash;
  fields.tp_rank = place.tp;
  fields.pcp_rank = fields.dcp_rank = 0;
  fields.pp_rank = place.pp;
  return object;
}

StoreEvent AscendObject(const std::string& hash, const KeyOptions& options, const Place& place) {
  StoreEvent object;
  object.object_key = options.model_name + "@pcp0@dcp0@head_or_tp_rank:" + std::to_string(place.tp);
  const std::string layer = std::to_string(place.layer);
  if (options.form == KeyForm::kAscendLayerId) {
    object.object_key += "@layer_id:" + layer + "@" + hash;
    return object;  // read by no master that publishes what it reads
  }
  KeyFields& fields = object.fields;
  fields.model_name = options.model_name;
  fields.connector_block_hash = hash;
  fields.head_or_tp_rank = place.tp;
  fields.pcp_rank = fields.dcp_rank = 0;
  if (options.form == KeyForm::kAscendLayer) {
    object.object_key += "@" + hash + "@" + layer;
    fields.layer_id = place.layer;
  } else {
    object.object_key += "@pp_rank:" + std::to_string(place.pp) + "@" + hash;
    fields.pp_rank = place.pp;
  }
  return object;
}

// K and, in the MHA form, V. A single pipeline rank is not in the key.
std::vector<StoreEvent> SglangObjects(const std::string& hash, const KeyOptions& options,
                                      const Place& place) {
  const bool mha = options.form == KeyForm::kSglangMha;
  const bool has_pp = options.pp_ranks > 1;
  std::string key = options.prefix.empty() ? "" : options.prefix + "_";
  key += hash + "_";
  if (mha) key += std::to_string(place.tp);
  if (mha && has_pp) key += "_";
  if (has_pp) key += std::to_string(place.pp);
  std::vector<StoreEvent> objects;
  for (const char* half : {"_k", "_v"}) {
    objects.emplace_back().object_key = key + half;
    if (!mha) break;
  }
  return objects;
}

StoreEvent NumberObject(const Digest& digest) {
  std::uint64_t number = 0;
  for (std::size_t i = digest.size() - 8; i < digest.size(); ++i) number = number << 8 | digest[i];
  StoreEvent object;
  object.object_key = std::to_string(number);
  object.number = number;
  return object;
}

// How often each dimension of a form occurs.
struct Extent {
  std::uint32_t tp = 1, pp = 1, layers = 1;
};

Extent ExtentOf(const KeyOptions& options) {
  switch (options.form) {
    case KeyForm::kVllm:
    case KeyForm::kVllmHma:
    case KeyForm::kAscend:
    case KeyForm::kSglangMha:
      return {options.tp_ranks, options.pp_ranks, 1};
    case KeyForm::kAscendLayer:
    case KeyForm::kAscendLayerId:
      return {options.tp_ranks, 1, options.layers};
    case KeyForm::kSglangMla:
      return {1, options.pp_ranks, 1};
    case KeyForm::kNumber:
      break;
  }
  return {};
}

}  // namespace

Result<KeyForm> ParseKeyForm(std::string_view text) {
  std::string known;
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    if (kForms[i] == text) return static_cast<KeyForm>(i);
    known += (i == 0 ? "" : ", ") + std::string(kForms[i]);
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   "key form: expected one of " + known + ", got '" + std::string(text) + "'");
}

std::string_view ToString(KeyForm form) {
  return kForms[static_cast<std::size_t>(form)];
}

Status CheckKeyOptions(const KeyOptions& options) {
  const Extent extent = ExtentOf(options);
  const std::uint64_t objects = std::uint64_t{extent.tp} * extent.pp * extent.layers *
                                (options.form == KeyForm::kSglangMha ? 2 : 1);
  const std::uint32_t largest = std::max({extent.tp, extent.pp, extent.layers});
  if (objects == 0 || largest > kObjectsPerBlockMax || objects > kObjectsPerBlockMax) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "store: expected 1 to " + std::to_string(kObjectsPerBlockMax) +
                         " objects per block, got ranks and layers that make another number");
  }
  return {};
}

std::vector<StoreEvent> ObjectsOf(const Digest& digest, const KeyOptions& options) {
  if (options.form == KeyForm::kNumber) return {NumberObject(digest)};
  const std::string hash = ToHex(digest);
  const Extent extent = ExtentOf(options);
  std::vector<StoreEvent> objects;
  Place place;
  for (place.tp = 0; place.tp < extent.tp; ++place.tp) {
    for (place.pp = 0; place.pp < extent.pp; ++place.pp) {
      for (place.layer = 0; place.layer < extent.layers; ++place.layer) {
        switch (options.form) {
          case KeyForm::kVllm:
          case KeyForm::kVllmHma:
            objects.push_back(VllmObject(hash, options, place));
            break;
          case KeyForm::kSglangMha:
          case KeyForm::kSglangMla:
            for (StoreEvent& object : SglangObjects(hash, options, place)) {
              objects.push_back(std::move(object));
            }
            break;
          default:
            objects.push_back(AscendObject(hash, options, place));
        }
      }
    }
  }
  return objects;
}

}  // namespace conductor::enginesim
