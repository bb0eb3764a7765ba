// Frames: what an engine's events do to the index.
#include <algorithm>
#include <span>

#include "src/state/state_machine.h"

namespace conductor {
namespace {

// Of a frame that is looked at ahead. One with more events has work enough to hide the rest.
constexpr std::size_t kEventsAhead = 4;

const BlockName* FirstName(const Event& event) {
  if (const auto* stored = std::get_if<Stored>(&event)) {
    return stored->blocks.empty() ? nullptr : &stored->blocks[0].name;
  }
  const auto* removed = std::get_if<Removed>(&event);
  return removed == nullptr || removed->names.empty() ? nullptr : &removed->names[0];
}

}  // namespace

// Asks the processor for what the fact, which is applied soon, looks up first: else events of one
// block wait for memory, each in its turn.
void StateMachine::LookAhead(const Fact& fact) {
  const auto* frame = std::get_if<Frame>(&fact);
  if (frame == nullptr) return;
  if (frame->stream != ahead_.stream) {
    const StreamFacts* stream = FindStream(frame->stream);
    if (stream == nullptr || stream->contexts.empty()) return;
    ahead_ = {frame->stream, *stream->contexts.begin()};
  }
  const std::size_t count = std::min(frame->events.size(), kEventsAhead);
  for (const Event& event : std::span(frame->events).first(count)) {
    if (const BlockName* name = FirstName(event)) index_.PrefetchName(ahead_.context, *name);
  }
}

void StateMachine::ApplyFact(const Frame& fact) {
  StreamFacts* stream = Mutable(fact.stream);
  if (stream == nullptr) return;
  stream->cursor = fact.number;
  stream->AddRecent(fact.number, fact.fingerprint);
  stream->last_publisher_time_us = fact.publisher_time_us;
  ++stream->frames;
  for (const auto& [reason, count] : fact.ignored) {
    const auto i = static_cast<std::size_t>(reason);
    if (i < stream->ignored.size()) stream->ignored[i] += count;
  }
  pool_places_.Begin(fact.origins);
  for (const Event& event : fact.events) {
    std::visit([&](const auto& e) { ApplyEvent(*stream, e); }, event);
    for (StreamId loser : index_.TakeRejected()) ++Mutable(loser)->blocks_rejected;
  }
}

ContextId StateMachine::OpenContext(StreamFacts& stream,
                                    const std::optional<std::string>& lora_name) {
  if (!lora_name && stream.own_context != 0) return stream.own_context;
  ContextKey key = stream.registration.Context();
  if (lora_name) key.lora_name = *lora_name;
  const ContextId id = index_.contexts().FindOrAdd(key);
  if (id == 0) return 0;
  Context& context = index_.contexts().context(id);
  if (!context.Exists() || !context.has_engine_profile) {
    index_.contexts().SetProfile(id, stream.registration.hash_profile, /*of_engine=*/true);
  } else if (context.profile.load(std::memory_order_relaxed)->profile !=
             stream.registration.hash_profile) {
    return 0;  // another registration's adapter, hashed another way
  }
  return id;
}

void StateMachine::ApplyEvent(StreamFacts& stream, const Stored& event) {
  const ContextId context = OpenContext(stream, event.lora_name);
  if (context == 0) {
    stream.blocks_rejected += event.blocks.size();
    return;
  }
  const Registration& registration = stream.registration;
  const std::uint32_t row =
      index_.contexts().RowOf(context, stream.id, registration.instance_id, registration.dp_rank);
  const std::uint64_t stored_before = stream.blocks_stored;
  event.has_tokens ? StoreTokens(stream, context, row, event)
                   : StoreNames(stream, context, row, event);
  if (stream.contexts.contains(context)) return;
  // Only what was stored makes it a row of a context it is not registered for.
  if (stream.blocks_stored > stored_before) {
    stream.contexts.insert(context);
  } else {
    index_.contexts().RemoveRow(context, stream.id);
  }
}

void StateMachine::StoreTokens(StreamFacts& stream, ContextId context, std::uint32_t row,
                               const Stored& event) {
  if (event.blocks.empty()) return;
  if (event.block_length == stream.registration.block_size) stream.seen_full_size_block = true;
  PrefixIndex::Arrival arrival;
  arrival.context = context;
  arrival.stream = stream.id;
  arrival.row = row;
  arrival.tier = event.tier;
  arrival.length = event.block_length;
  arrival.extra_keys_on_wire = event.extra_keys_on_wire;
  arrival.parent = event.parent ? &*event.parent : nullptr;
  arrival.salt = event.salt;
  const auto blocks = std::span(event.blocks);
  EntryId last = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (stream.verified_ever && blocks[i].check == HashCheck::kEqual) {
      const std::size_t stored = index_.StoreVerified(arrival, blocks.subspan(i));
      stream.blocks_stored += stored;
      i += stored;
      if (stored > 0) last = arrival.above;
      if (i == blocks.size()) break;
    }
    const StoredBlock& block = blocks[i];
    if (block.check == HashCheck::kDiffers) stream.differs_ever = true;
    arrival.name = &block.name;
    arrival.fingerprint = block.fingerprint;
    arrival.check = block.check;
    const StoreResult result = StoreBlock(stream, &arrival);
    if (result.outcome != StoreOutcome::kStored) {
      std::uint64_t& counter = result.outcome == StoreOutcome::kFragmentLimit
                                   ? stream.fragments_rejected
                                   : stream.blocks_rejected;
      counter += event.blocks.size() - i;
      return;
    }
    ++stream.blocks_stored;
    arrival.parent = &block.name;
    arrival.above = index_.AsParent(stream.id, result.entry, block.name);
    last = result.entry;
  }
  if (event.last_digest) index_.SetFullDigest(last, *event.last_digest);
}

StoreResult StateMachine::StoreBlock(StreamFacts& stream, PrefixIndex::Arrival* arrival) {
  if (arrival->parent != nullptr && SameName(*arrival->parent, *arrival->name)) {
    return {StoreOutcome::kCycle, 0};  // its own parent, whatever it says
  }
  if (arrival->check == HashCheck::kEqual && !stream.verified_ever) {
    // The profile is right: what differed before was salted, under a key that holds no salt.
    stream.verified_ever = true;
    index_.RetireHolders(stream.id, [](const HolderKey& key) { return key.unproven; });
  }
  arrival->differs_is_name_only =
      stream.verified_ever || stream.unverified_blocks == UnverifiedBlocks::kNameOnly;
  return index_.StoreBlock(*arrival);
}

void StateMachine::StoreNames(StreamFacts& stream, ContextId context, std::uint32_t row,
                              const Stored& event) {
  for (std::size_t i = 0; i < event.blocks.size(); ++i) {
    const auto result = index_.StoreName(context, stream.id, row, event.tier, event.blocks[i].name);
    if (result.outcome != StoreOutcome::kStored) {
      stream.fragments_rejected += event.blocks.size() - i;
      return;
    }
    ++stream.blocks_stored;
  }
}

void StateMachine::ApplyEvent(StreamFacts& stream, const Removed& event) {
  if (stream.contexts.size() == 1) {
    const std::size_t removed =
        index_.RemoveCopies(*stream.contexts.begin(), stream.id, event.tier, event.names);
    stream.blocks_removed += removed;
    stream.remove_unknown += event.names.size() - removed;
    return;
  }
  for (const BlockName& name : event.names) {
    bool found = false;
    for (ContextId context : stream.contexts) {
      found = index_.RemoveCopy(context, stream.id, event.tier, name) || found;
    }
    ++(found ? stream.blocks_removed : stream.remove_unknown);
  }
}

void StateMachine::ApplyEvent(StreamFacts& stream, const Cleared& event) {
  const bool all = event.all_tiers || stream.registration.type == PublisherType::kSglang;
  index_.RetireHolders(stream.id,
                       [all](const HolderKey& key) { return all || key.tier == Tier::kDevice; });
  ++stream.clears;
  // Whatever was missed, nothing that rests on it is left.
  if (!index_.HoldsAnything(stream.id)) stream.lost.clear();
  ShowLostRanges(stream);
}

}  // namespace conductor
