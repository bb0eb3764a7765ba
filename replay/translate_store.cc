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
  PoolStored object;
  object.tier = *tier;
  object.backend_id = event.backend_id;
  object.tenant_id = event.tenant_id;
  object.model_name = OwnText(event.model_name, registration_.model_name);
  object.lora_name = OwnText(event.lora_name, registration_.lora_name);
  if (block_size != registration_.block_size) {
    object.block_size = static_cast<std::uint32_t>(block_size);
  }
  object.name.projected = event.name->projected;
  part_.clear();
  AppendPart(event, &part_);
  object.part = part_;
  if (event.kind == StoreEvent::Kind::kStored) {
    frame.events.emplace_back(std::move(object));
    return;
  }
  PoolRemoved removed;
  removed.tier = object.tier;
  removed.backend_id = std::move(object.backend_id);
  removed.tenant_id = std::move(object.tenant_id);
  removed.model_name = std::move(object.model_name);
  removed.lora_name = std::move(object.lora_name);
  removed.block_size = object.block_size;
  removed.name = std::move(object.name);
  removed.part = std::move(object.part);
  frame.events.emplace_back(std::move(removed));
}

void Translator::TranslatePoolCleared(const StoreEvent& event, Frame& frame) {
  frame.events.emplace_back(
      PoolCleared{std::string(event.backend_id), std::string(event.tenant_id)});
}

}  // namespace conductor
