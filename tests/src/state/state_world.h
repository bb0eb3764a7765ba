// A StateMachine with shorthand around it, for tests written by hand. Contents are small numbers:
// content c is the block of four tokens 10c .. 10c+3. The context's profile is vllm_v1 with seed 0,
// so that ExactNames gives the names that a right engine publishes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/hash/chain.h"
#include "src/hash/fingerprint.h"
#include "src/index/walk.h"
#include "src/state/state_machine.h"
#include "tests/model/real_names.h"
#include "tests/model/store_object.h"

namespace conductor {

inline constexpr std::uint32_t kTestBlockSize = 4;
inline constexpr int kA = 1, kB = 2, kC = 3, kD = 4;

inline BlockName Name(std::uint64_t value) {
  return {value, {}};
}
inline std::vector<BlockName> NamesFrom(std::uint64_t first, std::size_t count) {
  std::vector<BlockName> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(Name(first + i));
  return names;
}
inline std::vector<int> ContentsFrom(int first, std::size_t count) {
  std::vector<int> contents;
  for (std::size_t i = 0; i < count; ++i) contents.push_back(first + static_cast<int>(i));
  return contents;
}
inline std::vector<std::int32_t> TokensOf(const std::vector<int>& contents) {
  std::vector<std::int32_t> tokens;
  for (int content : contents) {
    for (int i = 0; i < static_cast<int>(kTestBlockSize); ++i) tokens.push_back(10 * content + i);
  }
  return tokens;
}

class StateWorld {
 public:
  struct StoreOptions {
    HashCheck check = HashCheck::kEqual;
    bool keys_on_wire = true;
    Tier tier = Tier::kDevice;
  };

  void Apply(const Fact& fact) {
    records_.push_back(Record{{fact}});
    state->Apply(records_.back());
  }
  void Apply(StreamId stream, Event event) {
    Frame frame;
    frame.stream = stream;
    frame.number = number_++;
    frame.events.push_back(std::move(event));
    Apply(frame);
  }
  void Apply(StreamId stream, const StoreObject& object) {
    ApplyObject<PoolStored>(stream, object);
  }
  void Apply(StreamId stream, const GoneObject& gone) {
    ApplyObject<PoolRemoved>(stream, gone.object);
  }
  StreamId Register(const std::string& instance, std::uint32_t rank = 0,
                    PublisherType type = PublisherType::kVllm, PoolParts pool_parts = {}) {
    Registration registration;
    registration.instance_id = instance;
    registration.dp_rank = rank;
    registration.type = type;
    registration.pool_parts = std::move(pool_parts);
    registration.model_name = "m";
    registration.block_size = kTestBlockSize;
    registration.endpoint = "tcp://" + instance + ":" + std::to_string(5557 + rank);
    registration.hash_profile = profile;
    Apply(Registered{registration, UnverifiedBlocks::kContent});
    return state->next_stream_id() - 1;
  }
  void Unregister(const std::string& instance, std::uint32_t rank = 0) {
    Apply(Unregistered{{instance, "default", rank}});
  }

  void Store(StreamId stream, const std::vector<BlockName>& names, std::optional<BlockName> parent,
             const std::vector<int>& contents, StoreOptions options) {
    Stored event;
    event.tier = options.tier;
    event.extra_keys_on_wire = options.keys_on_wire;
    event.block_length = kTestBlockSize;
    event.parent = std::move(parent);
    for (std::size_t i = 0; i < names.size(); ++i) {
      event.blocks.push_back({names[i], FingerprintV1(TokensOf({contents[i]}), {}), options.check});
    }
    Apply(stream, std::move(event));
  }
  void Remove(StreamId stream, const std::vector<BlockName>& names, Tier tier = Tier::kDevice) {
    Apply(stream, Removed{tier, names});
  }

  QueryAnswer Answer(const std::vector<int>& contents, const std::string& salt = "") const {
    const std::vector<std::int32_t> tokens = TokensOf(contents);
    PromptQuery query;
    query.context = Key();
    query.token_ids = tokens;
    query.cache_salt = salt;
    const auto answer = MatchPrompt(state->index(), query);
    return answer ? *answer : QueryAnswer{};
  }
  TierCounts Ask(const std::string& instance, const std::vector<int>& contents,
                 std::uint32_t rank = 0) const {
    for (const InstanceHits& hits : Answer(contents).instances) {
      if (hits.instance_id == instance && hits.ranks.contains(rank)) {
        return hits.ranks.find(rank)->second;
      }
    }
    return {};
  }
  // longest_matched of rank 0
  std::uint64_t Longest(const std::string& instance, const std::vector<int>& contents) const {
    return Ask(instance, contents).disk;
  }

  static ContextKey Key() { return {"default", "m", "", kTestBlockSize}; }
  const Context& TheContext() const {
    const ContextTable& contexts = state->index().contexts();
    return contexts.context(contexts.Find(Key()));
  }
  std::uint64_t PrefixCount() const { return TheContext().blocks.load(); }
  const StreamFacts& Facts(StreamId stream) const { return *state->FindStream(stream); }
  void CleanUp() {
    while (state->CleanupSlice(1'000)) {
    }
  }
  // The digest of a new state that applies the same records, never cleaned up.
  Sum128 DigestOfReplay() const {
    StateMachine fresh;
    for (const Record& record : records_) fresh.Apply(record);
    return fresh.Digest();
  }

  // Of what is registered from here on.
  HashProfile profile = model::RealNames::Profile(HashStrategy::kVllmV1, "0");
  // Declared here so that a test can look at everything.
  std::unique_ptr<StateMachine> state = std::make_unique<StateMachine>();

 private:
  template <typename PoolEvent>
  void ApplyObject(StreamId stream, const StoreObject& object) {
    Frame frame;
    frame.stream = stream;
    frame.number = number_++;
    AddTo<PoolEvent>(frame, object);
    Apply(frame);
  }

  std::vector<Record> records_;
  std::uint64_t number_ = 0;
};

}  // namespace conductor
