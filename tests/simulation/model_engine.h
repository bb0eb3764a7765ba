// What one simulated engine has in its cache, and the events by which it says so: the truth that
// the index is compared with at the end. Real vLLM events (tools/vllm_events.h), made from random
// work: prompts stored, blocks evicted anywhere in a chain, blocks copied to the CPU tier, clears,
// and events that a router has to ignore. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tests/simulation/prompt_pool.h"
#include "tools/engine_sim.h"
#include "tools/vllm_encoder.h"

namespace conductor::simulation {

// The blocks of one life, by tier.
using CacheContent = std::map<Tier, std::set<Digest>>;

struct CacheChange {
  enum class Kind { kAdd, kRemove, kClearDevice };
  Kind kind = Kind::kAdd;
  Tier tier = Tier::kDevice;
  Digest digest{};
};
void ApplyChange(const CacheChange& change, CacheContent& content);

struct EngineTraits {
  enginesim::Era era = enginesim::Era::kC;
  enginesim::NameForm names = enginesim::NameForm::kInt;
  bool right_seed = true;       // false: hashes with another seed than it is registered with
  std::int64_t main_group = 0;  // the group of full attention; the other one is ignored
  bool cpu_tier = false;
  bool tokenless_cpu = false;  // copies are announced by name only
  bool noise = false;
  std::uint32_t dp_rank = 0;

  static EngineTraits Any(Random& random);
};

// One publication: its events and what they say about the cache.
struct Work {
  std::vector<enginesim::EngineEvent> events;
  std::vector<CacheChange> changes;
};

class ModelEngine {
 public:
  ModelEngine(const EngineTraits& traits, const PromptPool& pool);

  // The next piece of work of an engine whose cache is `content`; perhaps none.
  Work Next(Random& random, const CacheContent& content) const;
  std::string Encode(const Work& work, double seconds) const;

  // The prompts it can serve, and the digests of their blocks.
  struct Served {
    const Prompt* prompt;
    std::vector<Digest> chain;
  };
  const std::vector<Served>& served() const { return served_; }
  const EngineTraits& traits() const { return traits_; }
  static HashProfile RegisteredProfile();

 private:
  void Store(const Served& served, std::size_t end, const CacheContent& content, Work& work) const;
  void StoreStretch(const Served& served, std::pair<std::size_t, std::size_t> range,
                    Work& work) const;
  void CopyToCpu(const Served& served, Random& random, const CacheContent& content,
                 Work& work) const;
  void Evict(Random& random, const CacheContent& content, Work& work) const;
  void AddNoise(Random& random, Work& work) const;
  enginesim::BlockStoredEvent Describe(const Served& served,
                                       std::pair<std::size_t, std::size_t> range) const;
  enginesim::WireHash Spell(const Digest& digest) const;
  bool HasGroups() const;
  bool HasKinds() const;

  const EngineTraits traits_;
  const BlockHasher hasher_;
  std::vector<Served> served_;
};

}  // namespace conductor::simulation
