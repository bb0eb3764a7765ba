// A store's events: objects that are parts of blocks. The rank in its batches says nothing about an
// engine, and the salt in its events is its master's configuration, not a prompt's.
#include <utility>

#include "replay/translator.h"
#include "src/limits.h"

namespace conductor {
namespace {

std::optional<Tier> TierOfMedium(Medium medium) {
  if (medium == Medium::kCpu) return Tier::kCpuShare;
  if (medium == Medium::kDisk) return Tier::kDisk;
  return std::nullopt;
}

// What differs from the registration; empty: the same, or not said.
std::string_view OwnText(const std::optional<std::string_view>& text, std::string_view registered) {
  return text && *text != registered ? *text : std::string_view();
}

}  // namespace

void Translator::TranslateStore(const StoreBatch& batch, Frame& frame) {
  frame.publisher_time_us = batch.publisher_time_us;
  CountRejected(batch, frame);
  frame.events.reserve(batch.events.size());
  for (const StoreEvent& event : batch.events) {
    event.kind == StoreEvent::Kind::kCleared ? TranslatePoolCleared(event, frame)
                                             : TranslateObject(event, frame);
  }
}

void Translator::TranslateObject(const StoreEvent& event, Frame& frame) {
  if (!event.name) {
    return Ignore(frame, IgnoreReason::kUnparsableKey, "object_key: it names no block");
  }
  // As engines without a word about it: the first group is the one that counts.
  if (event.key.group.value_or(0) != 0) return Ignore(frame, IgnoreReason::kOtherGroup);
  const std::optional<Tier> tier = TierOfMedium(event.medium);
  if (!tier) return Ignore(frame, IgnoreReason::kUnknownMedium, "medium: no tier is known for it");
  const std::int64_t block_size = event.block_size.value_or(0);
  if (block_size > kBlockSizeMax) {
    return Ignore(frame, IgnoreReason::kBlockSizeMismatch,
                  "block_size: at most " + std::to_string(kBlockSizeMax) + ", got " +
                      std::to_string(block_size));
  }
  PoolOriginText origin;
  origin.backend_id = event.backend_id;
  origin.tenant_id = event.tenant_id;
  origin.model_name = OwnText(event.model_name, registration_.model_name);
  origin.lora_name = OwnText(event.lora_name, registration_.lora_name);
  if (block_size != registration_.block_size) {
    origin.block_size = static_cast<std::uint32_t>(block_size);
  }
  part_.clear();
  AppendPart(event, &part_);
  const auto fill = [&](PoolObject& object) {
    object.tier = *tier;
    object.origin = OriginNumber(origin, frame.origins);
    object.name.projected = event.name->projected;
    object.part = part_;
  };
  event.kind == StoreEvent::Kind::kStored
      ? fill(std::get<PoolStored>(frame.events.emplace_back(std::in_place_type<PoolStored>)))
      : fill(std::get<PoolRemoved>(frame.events.emplace_back(std::in_place_type<PoolRemoved>)));
}

void Translator::TranslatePoolCleared(const StoreEvent& event, Frame& frame) {
  frame.events.emplace_back(
      PoolCleared{std::string(event.backend_id), std::string(event.tenant_id)});
}

}  // namespace conductor
