// Random operations for the comparison of the real state with the reference model: plausible
// streams (right and wrong hash profile, hidden and visible extra keys, adapters, salts, tiers,
// duplicates, orphans, token-less events, pools) and forged ones (contradicting links, cycles,
// impossible comparisons), over a universe of prompts so small that collisions are frequent.
//
// Everything follows from the seed (or, for a fuzzer, from the bytes), on every machine. One
// thread. `names` must outlive the object.
//
//   SyntheticNames names;
//   RandomOps ops(seed, names);
//   model.Apply(ops.NextRecord());
//   model.Query(ops.NextPrompt().spec);
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/fact.h"
#include "src/types.h"
#include "tests/model/block_names.h"
#include "tests/model/random_source.h"
#include "tests/model/reference_model.h"

namespace conductor::model {

// What to leave out, to narrow a difference down.
struct RandomOpsOptions {
  bool forged_links = true;     // names stored with arbitrary parents, contents and comparisons
  bool mixed_spellings = true;  // one stream spells a name now as an integer, now as a digest
  bool pools = true;
  bool token_less = true;
  bool registrations_change = true;
  std::size_t more_publishers = 0;  // so many more that hash as they say
  // What the registrations say. Apply does not hash, so that only a comparison through the real
  // query path needs real ones (RealNames::Profile with seed "0").
  HashProfile vllm_profile;
  HashProfile sglang_profile;
};

// A prompt in the model's terms, and as a user would send it.
struct RandomPrompt {
  PromptSpec spec;
  std::vector<std::int32_t> token_ids;
  std::string cache_salt;
  std::vector<std::string> items;  // per block; empty: none. Each stands at its block's first token
};

class RandomOps {
 public:
  RandomOps(std::uint64_t seed, const BlockNames& names, RandomOpsOptions options = {})
      : RandomOps(RandomSource(seed), names, std::move(options)) {}
  RandomOps(RandomSource source, const BlockNames& names, RandomOpsOptions options = {});

  // The first record registers every service; later ones are mostly 1 to 3 facts.
  Record NextRecord();
  RandomPrompt NextPrompt();
  HashSpec NextHashes();
  bool ChoicesUsedUp() const { return random_.UsedUp(); }

 private:
  enum class Spelling { kInteger, kDigest, kMixed };
  struct Slot {  // a service key and the engine behind it
    Registration registration;
    std::string seed = "0";  // "0" is the profile of the context
    bool keys_on_wire = true;
    Spelling spelling = Spelling::kInteger;
    StreamId stream = 0;  // 0: not registered
    std::uint64_t next_number = 0;
    std::deque<std::pair<Tier, BlockName>> stored;  // lately
  };
  struct Path {  // a prompt: where it lives and its blocks
    ContextKey context;
    HashStrategy strategy = HashStrategy::kVllmV1;
    std::string salt;
    std::vector<BlockContent> blocks;
  };

  void AddSlots();
  Slot& ActiveSlot();
  Registered Register(Slot& slot);
  Fact NextFact();
  void AddManyLost(Slot& slot, Record* record);
  Frame NextFrame(Slot& slot);
  Evicted NextEvicted(Slot& slot);

  void AddPath(Slot& slot, std::vector<Event>* events);
  void AddTokenLess(Slot& slot, std::vector<Event>* events);
  void AddForged(Slot& slot, std::vector<Event>* events);
  void AddPool(Slot& slot, Frame* frame);
  Removed NextRemoved(Slot& slot);
  Removed RemovePath(Slot& slot);

  Path RandomPath(const ContextKey& base, HashStrategy strategy);
  Path PathOf(const Slot& slot);
  BlockContent RandomContent(HashStrategy strategy);
  Tier RandomTier();
  HashCheck CheckOf(const Slot& slot, const Path& path, std::size_t block);
  std::vector<Digest> Chain(const Path& path, const std::string& seed) const;
  BlockName Spell(const Slot& slot, HashStrategy strategy, const Digest& digest);
  BlockName ForgedName(const Slot& slot);

  RandomSource random_;
  const BlockNames& names_;
  RandomOpsOptions options_;
  std::vector<Slot> slots_;
  std::vector<std::vector<BlockContent>> favourites_;
  StreamId streams_registered_ = 0;
  bool started_ = false;
};

}  // namespace conductor::model
