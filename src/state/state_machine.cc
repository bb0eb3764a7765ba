#include "src/state/state_machine.h"

#include <algorithm>

#include "src/state/image_cut.h"

namespace conductor {
namespace {

// Far enough for memory to answer, near enough for the answer to be still in the cache.
constexpr std::size_t kFactsAhead = 4;

}  // namespace

void StateMachine::Apply(const Record& record) {
  for (std::size_t i = 0; i < record.facts.size(); ++i) {
    if (i + kFactsAhead < record.facts.size()) LookAhead(record.facts[i + kFactsAhead]);
    std::visit([this](const auto& f) { ApplyFact(f); }, record.facts[i]);
    CloseContexts();
  }
  index_.Reclaim();
}

// A context without registrations and blocks ceases to exist: whoever stored into it has no row
// there any more.
void StateMachine::CloseContexts() {
  std::vector<ContextId> suspects = index_.TakeEmptied();
  suspects.insert(suspects.end(), unregistered_.begin(), unregistered_.end());
  unregistered_.clear();
  for (ContextId id : suspects) {
    const Context& context = index_.contexts().context(id);
    if (context.Exists()) continue;
    const RowView rows = *context.rows.load(std::memory_order_relaxed);
    for (const Row* row : rows) {
      if (row == nullptr) continue;
      const StreamId stream = row->stream;
      index_.RetireHolders(stream, [id](const HolderKey& key) { return key.context == id; });
      Mutable(stream)->contexts.erase(id);
      index_.contexts().RemoveRow(id, stream);
    }
  }
}

const StreamFacts* StateMachine::FindStream(StreamId id) const {
  auto it = streams_.find(id);
  return it == streams_.end() ? nullptr : &it->second;
}

const StreamFacts* StateMachine::FindStream(const ServiceKey& key) const {
  auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : FindStream(it->second);
}

StreamFacts* StateMachine::Mutable(StreamId id) {
  auto it = streams_.find(id);
  if (it == streams_.end()) return nullptr;
  if (cut_ != nullptr) [[unlikely]] {
    cut_->BeforeStream(it->second);
  }
  return &it->second;
}

void StateMachine::SetStreamState(StreamId stream, StreamState state) {
  if (StreamShared* shared = index_.contexts().FindStream(stream)) {
    shared->state.store(state, std::memory_order_release);
  }
}

bool StateMachine::CleanupSlice(std::size_t budget) {
  const bool more = index_.CleanupSlice(budget);
  index_.Reclaim();
  return more;
}

Sum128 StateMachine::Digest() const {
  Sum128 digest =
      index_.HoldersDigest([this](StreamId id) { return streams_.at(id).IdentityMix(); });
  for (const auto& [id, stream] : streams_) digest += stream.FactsMix();
  return digest;
}

// --- registrations -------------------------------------------------------------------------------

Result<bool> StateMachine::CheckRegister(const Registration& registration) const {
  const auto conflict = [](const std::string& field, const std::string& message) {
    return InvalidField("invalid_registration", field, message);
  };
  const ServiceKey key = registration.Key();
  if (const StreamFacts* same_key = FindStream(key)) {
    const std::string field = registration.FirstDifference(same_key->registration);
    if (field.empty()) return true;
    return conflict(field, field + ": instance '" + key.instance_id + "', tenant '" +
                               key.tenant_id + "', rank " + std::to_string(key.dp_rank) +
                               " is registered with another value; unregister it first");
  }
  if (auto it = by_endpoint_.find(registration.EndpointKey()); it != by_endpoint_.end()) {
    const Registration& other = streams_.at(it->second).registration;
    return conflict("endpoint", "endpoint: '" + registration.endpoint + "' belongs to instance '" +
                                    other.instance_id + "', tenant '" + other.tenant_id +
                                    "', rank " + std::to_string(other.dp_rank));
  }
  const ContextId id = index_.contexts().Find(registration.Context());
  if (id != 0 && index_.contexts().context(id).Exists() &&
      index_.contexts().context(id).has_engine_profile &&
      registration.type != PublisherType::kMooncake) {
    const HashProfile& have =
        index_.contexts().context(id).profile.load(std::memory_order_acquire)->profile;
    const HashProfile& want = registration.hash_profile;
    const char* field = have.strategy != want.strategy                   ? "strategy"
                        : have.algorithm != want.algorithm               ? "algorithm"
                        : have.python_hash_seed != want.python_hash_seed ? "python_hash_seed"
                                                                         : nullptr;
    if (field != nullptr) {
      return conflict(field, std::string(field) + ": model '" + registration.model_name +
                                 "' with this tenant, adapter and block size has another hash "
                                 "profile");
    }
  }
  return false;
}

void StateMachine::ApplyFact(const Registered& fact) {
  ApplyFact(Unregistered{fact.registration.Key()});  // none, as the service checks before
  const StreamId id = next_stream_++;
  const Registration& registration = fact.registration;
  const ContextKey context_key = registration.Context();
  index_.contexts().AddStream(id, context_key);
  StreamFacts& stream = streams_[id];
  stream.id = id;
  stream.registration = registration;
  stream.unverified_blocks = fact.unverified_blocks;
  by_key_[registration.Key()] = id;
  by_endpoint_[registration.EndpointKey()] = id;
  // A pool is a subscription, never a row; its events name their own contexts.
  if (registration.type == PublisherType::kMooncake) return;
  const ContextId context_id = index_.contexts().FindOrAdd(context_key);
  if (context_id == 0) return;
  Context& context = index_.contexts().context(context_id);
  if (!context.Exists() || !context.has_engine_profile) {
    index_.contexts().SetProfile(context_id, registration.hash_profile, /*of_engine=*/true);
  }
  index_.contexts().RowOf(context_id, id, registration.instance_id, registration.dp_rank);
  JoinContext(stream, context_id);
  stream.contexts.insert(context_id);
}

// Its registration keeps the context from now on.
void StateMachine::JoinContext(StreamFacts& stream, ContextId id) {
  Context& context = index_.contexts().context(id);
  context.registrations.fetch_add(1, std::memory_order_release);
  const ContextProfile* profile = context.profile.load(std::memory_order_relaxed);
  const bool same = profile != nullptr && profile->profile == stream.registration.hash_profile;
  stream.own_context = context.has_engine_profile && same ? id : 0;
}

void StateMachine::ApplyFact(const Unregistered& fact) {
  auto it = by_key_.find(fact.key);
  if (it == by_key_.end()) return;
  const StreamId id = it->second;
  StreamFacts& stream = *Mutable(id);
  RetireAll(id);
  for (ContextId context : stream.contexts) index_.contexts().RemoveRow(context, id);
  if (stream.registration.type != PublisherType::kMooncake) {
    const ContextId context = index_.contexts().Find(stream.registration.Context());
    if (context != 0) {
      index_.contexts().context(context).registrations.fetch_sub(1, std::memory_order_release);
      unregistered_.push_back(context);
    }
  }
  index_.contexts().RemoveStream(id);
  by_endpoint_.erase(stream.registration.EndpointKey());
  by_key_.erase(it);
  streams_.erase(id);
}

// --- the life of a stream ------------------------------------------------------------------------

void StateMachine::RetireAll(StreamId stream) {
  index_.RetireHolders(stream, [](const HolderKey&) { return true; });
}

void StateMachine::ShowLostRanges(const StreamFacts& stream) {
  if (StreamShared* shared = index_.contexts().FindStream(stream.id)) {
    shared->has_lost_ranges.store(!stream.lost.empty(), std::memory_order_release);
  }
}

void StateMachine::ApplyFact(const NewEpoch& fact) {
  StreamFacts* stream = Mutable(fact.stream);
  if (stream == nullptr) return;
  RetireAll(fact.stream);
  stream->StartLife(fact.unverified_blocks);
  ShowLostRanges(*stream);
  ++stream->epoch;
  ++stream->epoch_changes;
}

void StateMachine::ApplyFact(const CountingGroup& fact) {
  if (StreamFacts* stream = Mutable(fact.stream)) stream->counting_group = fact.group;
}

void StateMachine::ApplyFact(const HistoryStart& fact) {
  if (StreamFacts* stream = Mutable(fact.stream)) stream->history_from = fact.number;
}

void StateMachine::ApplyFact(const Lost& fact) {
  StreamFacts* stream = Mutable(fact.stream);
  if (stream == nullptr || fact.to < fact.from) return;
  stream->AddLost(fact.from, fact.to);
  ShowLostRanges(*stream);
  stream->cursor = fact.to;
}

void StateMachine::ApplyFact(const Dropped& fact) {
  StreamFacts* stream = Mutable(fact.stream);
  if (stream == nullptr) return;
  RetireAll(fact.stream);
  ++stream->drops;
  if (fact.reason == DropReason::kLostEvents) return;  // goes on behind the hole
  // What comes next is fetched from the start: as if nothing had been seen.
  const bool verified = stream->verified_ever, differs = stream->differs_ever;
  stream->StartLife(stream->unverified_blocks);
  ShowLostRanges(*stream);
  stream->verified_ever = verified;
  stream->differs_ever = differs;
}

void StateMachine::ApplyFact(const Evicted& fact) {
  StreamFacts* stream = Mutable(fact.stream);
  if (stream == nullptr) return;
  ContextKey key = stream->registration.Context();
  key.lora_name = fact.lora_name;
  if (!fact.tenant_id.empty()) key.tenant_id = fact.tenant_id;
  if (!fact.model_name.empty()) key.model_name = fact.model_name;
  if (fact.block_size != 0) key.block_size = fact.block_size;
  const ContextId context = index_.contexts().Find(key);
  if (context == 0) return;
  const bool pool = stream->registration.type == PublisherType::kMooncake;
  const bool evicted = pool ? EvictParts(*stream, context, fact)
                            : index_.Evict(context, fact.stream, fact.tier, fact.name);
  if (evicted) ++stream->evictions;
}

}  // namespace conductor
