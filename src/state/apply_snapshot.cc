// A publisher's own snapshot: what its device has now, by name, in place of what the log said.
#include <algorithm>

#include "src/state/state_machine.h"

namespace conductor {

// A name that is live at this moment, the stream's own outgoing blocks included, keeps its place:
// within one life a name stands for one content. Any other is known by name only.
void StateMachine::ApplyFact(const PublisherSnapshot& fact) {
  StreamFacts* stream = Mutable(fact.stream);
  if (stream == nullptr) return;
  const bool complete = ReplaceDevice(*stream, fact);
  ++stream->snapshots;
  stream->cursor.reset();
  if (fact.resume_number > 0) stream->cursor = fact.resume_number - 1;
  stream->publisher_epoch = fact.epoch;
  // What was lost before it matters no more, unless the snapshot itself did not fit.
  if (complete) {
    stream->lost.clear();
    stream->history_from.reset();
  }
  ShowLostRanges(*stream);
}

// False: some of the blocks could not be taken in; they are missed, and counted.
bool StateMachine::ReplaceDevice(StreamFacts& stream, const PublisherSnapshot& fact) {
  const auto outgoing = index_.DetachHolders(
      stream.id, [](const HolderKey& key) { return key.tier == Tier::kDevice && key.pool == 0; });
  // A name that two chains share is there once.
  std::vector<const BlockName*> names;
  names.reserve(fact.links.size());
  for (const auto& [parent, name] : fact.links) names.push_back(&name);
  std::sort(names.begin(), names.end(),
            [](const BlockName* a, const BlockName* b) { return *a < *b; });
  const auto end = std::unique(names.begin(), names.end(),
                               [](const BlockName* a, const BlockName* b) { return *a == *b; });
  names.erase(end, names.end());

  Stored event;
  event.has_tokens = false;
  for (const BlockName* name : names) event.blocks.push_back({*name});
  const std::uint64_t refused = stream.fragments_rejected + stream.blocks_rejected;
  if (!event.blocks.empty()) ApplyEvent(stream, event);
  index_.RetireDetached(outgoing);
  return refused == stream.fragments_rejected + stream.blocks_rejected;
}

}  // namespace conductor
