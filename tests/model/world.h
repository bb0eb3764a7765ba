// A reference model with shorthand around it, for tests that are written by hand.
// Contents are small numbers: content c has fingerprint 1000 + c and four tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/reference_model.h"
#include "tests/model/store_object.h"

namespace conductor::model {

inline constexpr int kA = 1, kB = 2, kC = 3, kD = 4;
inline constexpr std::uint32_t kTestBlockSize = 4;

inline BlockName Name(std::uint64_t value) {
  return {value, ""};
}

// A 32-byte digest with that projection.
inline BlockName DigestName(std::uint64_t value, char first_byte) {
  std::string digest(32, '\0');
  digest[0] = first_byte;
  for (int i = 0; i < 8; ++i) digest[31 - i] = static_cast<char>(value >> (8 * i));
  return {value, digest};
}

struct StoreOptions {
  HashCheck check = HashCheck::kDiffers;
  bool keys_on_wire = true;
  Tier tier = Tier::kDevice;
  std::optional<std::string> lora_name;
  std::optional<SaltDigest> salt;
};

class World {
 public:
  explicit World(std::uint64_t fragments_max = kFragmentsMax) : model(fragments_max) {}

  StreamId Register(const std::string& instance, std::uint32_t rank = 0,
                    PublisherType type = PublisherType::kVllm,
                    UnverifiedBlocks unverified = UnverifiedBlocks::kContent) {
    Registration registration;
    registration.instance_id = instance;
    registration.dp_rank = rank;
    registration.type = type;
    registration.model_name = "m";
    registration.block_size = kTestBlockSize;
    ApplyFact(Registered{registration, unverified});
    return ++registered_;
  }

  void ApplyFact(const Fact& fact) {
    model.Apply(Record{{fact}});
    broken = broken.empty() ? model.CheckInvariants() : broken;
  }
  void Apply(StreamId stream, const Event& event) {
    Frame frame;
    frame.stream = stream;
    frame.number = number_++;
    frame.events.push_back(event);
    ApplyFact(frame);
  }
  void Apply(StreamId stream, const StoreObject& object) {
    ApplyObject<PoolStored>(stream, object);
  }
  void Apply(StreamId stream, const GoneObject& gone) {
    ApplyObject<PoolRemoved>(stream, gone.object);
  }

  void Store(StreamId stream, const std::vector<BlockName>& names, std::optional<BlockName> parent,
             const std::vector<int>& contents, const StoreOptions& options = {}) {
    Stored event;
    event.tier = options.tier;
    event.lora_name = options.lora_name;
    event.extra_keys_on_wire = options.keys_on_wire;
    event.block_length = kTestBlockSize;
    event.parent = std::move(parent);
    event.salt = options.salt;
    for (std::size_t i = 0; i < names.size(); ++i) {
      event.blocks.push_back(
          {names[i], 1000 + static_cast<std::uint64_t>(contents[i]), options.check});
    }
    Apply(stream, event);
  }
  void StoreNames(StreamId stream, const std::vector<BlockName>& names, Tier tier = Tier::kDevice) {
    Stored event;
    event.tier = tier;
    event.has_tokens = false;
    for (const BlockName& name : names) event.blocks.push_back({name, 0, HashCheck::kNotComputed});
    Apply(stream, event);
  }
  void Remove(StreamId stream, const std::vector<BlockName>& names, Tier tier = Tier::kDevice) {
    Apply(stream, Removed{tier, names});
  }

  ContextKey Key(const std::string& lora_name = "") const {
    return {"default", "m", lora_name, kTestBlockSize};
  }
  // Without exact names the prompt's chain has names that nobody uses.
  PromptSpec Prompt(const std::vector<int>& contents,
                    const std::vector<std::uint64_t>& exact_names = {}) const {
    PromptSpec prompt;
    prompt.context = Key();
    for (std::size_t i = 0; i < contents.size(); ++i) {
      prompt.positions.push_back(
          {1000 + static_cast<std::uint64_t>(contents[i]), kTestBlockSize,
           i < exact_names.size() ? exact_names[i] : 0xeeee000000000000u + i});
    }
    return prompt;
  }
  TierCounts Ask(const std::string& instance, const PromptSpec& prompt, std::uint32_t rank = 0) {
    return model.Query(prompt)[instance][rank];
  }
  // longest_matched of rank 0
  std::uint64_t Longest(const std::string& instance, const std::vector<int>& contents,
                        const std::vector<std::uint64_t>& exact_names = {}) {
    return Ask(instance, Prompt(contents, exact_names)).disk;
  }
  const Counters& CountersOf(StreamId stream) const { return model.streams().at(stream).counters; }

  ReferenceModel model;
  std::string broken;  // the first invariant that did not hold

 private:
  template <typename PoolEvent>
  void ApplyObject(StreamId stream, const StoreObject& object) {
    Frame frame;
    frame.stream = stream;
    frame.number = number_++;
    AddTo<PoolEvent>(frame, object);
    ApplyFact(frame);
  }

  StreamId registered_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace conductor::model
