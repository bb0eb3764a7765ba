// What a frame of a Mooncake Store's master says, decoded and nothing more: as event.h for engines.
// Whether an event concerns a context, and what it means there, is for the stream layer: model,
// block size and adapter may be missing (the registration fills them), and the batch's rank says
// nothing about an engine. Plain values; texts lie in the payload, which outlives them. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/wire/event.h"
#include "replay/wire/object_key.h"

namespace conductor {

struct StoreEvent {
  using Kind = WireEvent::Kind;

  Kind kind = Kind::kCleared;
  // Stored and removed: kCpu, kDisk or kUnknown. A clear is about every medium.
  Medium medium = Medium::kUnknown;
  // Position among all events of the batch, rejected ones included.
  std::uint32_t index = 0;
  // Counts the publisher's events, from 1 in each of its lives.
  std::uint64_t event_id = 0;

  // Whose objects: the scope of a clear.
  std::string_view backend_id;
  std::string_view tenant_id;

  // Nil, "" and absent are the same for all of these.
  std::optional<std::string_view> model_name;
  std::optional<std::string_view> lora_name;
  std::optional<std::string_view>
      additional_salt;                       // of the master's configuration, not of a prompt
  std::optional<std::string_view> group_id;  // the store's own grouping of objects
  std::optional<std::int64_t> block_size;

  // Stored and removed. The key as written ("" when the publisher leaves it out), as read, and the
  // block it belongs to: from the key, else from the hash beside it. No name: the object is of no
  // block that we know.
  std::string_view object_key;
  ObjectKey key;
  std::optional<BlockName> name;
};

// Which part of its block the event's object is: PartOf its key, or the key itself where only the
// hash beside it names the block.
std::string PartOf(const StoreEvent& event);
void AppendPart(const StoreEvent& event, std::string* part);

struct StoreBatch : BatchEnvelope {
  std::vector<StoreEvent> events;
};

}  // namespace conductor
