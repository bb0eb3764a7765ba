// StateMachine: the state, and Apply, the one pure function that changes it.
//
// The same records in the same order give the same state: same answers, same digest. Apply reads no
// clock, no configuration and no random source; whatever depends on those is a fact in the record.
// A fact about a stream that is not registered (any more) changes nothing.
//
// One thread mutates (the apply thread, or a test). The index inside may be read by any thread at
// the same time (index/walk.h); everything else here only by the owner, or under its lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/fact.h"
#include "src/index/prefix_index.h"
#include "src/state/pool_places.h"
#include "src/state/stream_facts.h"

namespace conductor {

class ImageCut;

class StateMachine {
 public:
  StateMachine() = default;

  void Apply(const Record& record);

  // What a registration would meet: an error naming the field that conflicts; true when the
  // identical configuration is registered already; false when it can be registered.
  Result<bool> CheckRegister(const Registration& registration) const;

  const std::map<StreamId, StreamFacts>& streams() const { return streams_; }
  const StreamFacts* FindStream(StreamId id) const;
  const StreamFacts* FindStream(const ServiceKey& key) const;
  StreamId next_stream_id() const { return next_stream_; }

  const PrefixIndex& index() const { return index_; }
  // The digest of DESIGN section 4: holders' sums, registrations, stream facts. O(holders +
  // streams).
  Sum128 Digest() const;

  // Physical cleanup and reclamation; changes neither answers nor digest. True: more is left.
  bool CleanupSlice(std::size_t budget);
  // Live states of streams, for the answers' trust marks. Thread-safe.
  void SetStreamState(StreamId stream, StreamState state);

 private:
  friend class ImageCut;     // takes an image while Apply goes on
  friend class ImageLoader;  // fills an empty state from one

  StateMachine(const StateMachine&) = delete;
  StateMachine& operator=(const StateMachine&) = delete;

  void ApplyFact(const Registered& fact);
  void ApplyFact(const Unregistered& fact);
  void ApplyFact(const Frame& fact);
  void ApplyFact(const NewEpoch& fact);
  void ApplyFact(const CountingGroup& fact);
  void ApplyFact(const HistoryStart& fact);
  void ApplyFact(const Lost& fact);
  void ApplyFact(const Dropped& fact);
  void ApplyFact(const Evicted& fact);
  void ApplyFact(const PublisherSnapshot& fact);

  void ApplyEvent(StreamFacts& stream, const Stored& event);
  void ApplyEvent(StreamFacts& stream, const Removed& event);
  void ApplyEvent(StreamFacts& stream, const Cleared& event);
  void ApplyEvent(StreamFacts& stream, const PoolStored& event);
  void ApplyEvent(StreamFacts& stream, const PoolRemoved& event);
  void ApplyEvent(StreamFacts& stream, const PoolCleared& event);
  PoolArrival ObjectOf(const StreamFacts& stream, const PoolObject& event, bool stores);

  // To be changed: an image that is being taken sees it first.
  StreamFacts* Mutable(StreamId id);
  void LookAhead(const Fact& fact);
  // The context an event belongs to, opened when needed; 0 when it cannot be.
  ContextId OpenContext(StreamFacts& stream, const std::optional<std::string>& lora_name);
  void StoreTokens(StreamFacts& stream, ContextId context, std::uint32_t row, const Stored& event);
  StoreResult StoreBlock(StreamFacts& stream, PrefixIndex::Arrival* arrival);
  void StoreNames(StreamFacts& stream, ContextId context, std::uint32_t row, const Stored& event);
  bool EvictParts(const StreamFacts& stream, ContextId context, const Evicted& fact);
  bool ReplaceDevice(StreamFacts& stream, const PublisherSnapshot& fact);
  void JoinContext(StreamFacts& stream, ContextId id);
  void RetireAll(StreamId stream);
  // After every change of the lost ranges.
  void ShowLostRanges(const StreamFacts& stream);
  void CloseContexts();

  PrefixIndex index_;
  std::map<StreamId, StreamFacts> streams_;
  std::map<ServiceKey, StreamId> by_key_;
  std::map<std::string, StreamId> by_endpoint_;
  StreamId next_stream_ = 1;
  ImageCut* cut_ = nullptr;
  // Where the frames ahead look first. Only a hint: it may be of a stream or context that is gone.
  struct Ahead {
    StreamId stream = 0;
    ContextId context = 0;
  } ahead_;
  PoolPlaces pool_places_;               // of the frame at hand
  std::string pool_slot_;                // of the pool object at hand; kept for its room
  std::vector<ContextId> unregistered_;  // contexts that lost a registration in this fact
};

}  // namespace conductor
