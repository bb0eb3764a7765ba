// The real state and the reference model, fed the same records and asked the same questions. The
// first difference comes back in words; empty: none. Used by the differential test (from seeds) and
// by the fuzzer of operations (from bytes). One thread; `names` outlives the object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/service/memory_cap.h"
#include "src/state/state_machine.h"
#include "tests/model/random_ops.h"
#include "tests/model/real_names.h"
#include "tests/model/reference_model.h"

namespace conductor::model {

// With profiles that the real query path can hash for.
RandomOpsOptions RealOptions();

class StatePair {
 public:
  StatePair(std::uint64_t seed, const RealNames& names, RandomOpsOptions options);
  // Cleanup and restarts then follow from the source's first choice.
  StatePair(RandomSource source, const RealNames& names, RandomOpsOptions options);

  // From here on blocks are given up to stay below the cap.
  void SetCap(std::uint64_t max_blocks);

  // One record to both, then questions about prompts, hashes and facts.
  std::string Step();
  // A second state from the same records has the same digest, whatever was cleaned up when.
  std::string Restart();

  bool ChoicesUsedUp() const { return ops_.ChoicesUsedUp(); }

 private:
  void Apply(const Record& record);
  std::string StayBelowCap();
  std::string ComparePrompt();
  std::string CompareHashes();
  std::string CompareFacts() const;
  std::string CompareStream(StreamId id, const Stream& stream) const;
  std::string Where() const;
  std::string Entries() const;

  RandomOps ops_;
  RandomSource cleanup_;
  ReferenceModel model_;
  std::unique_ptr<StateMachine> real_ = std::make_unique<StateMachine>();
  std::vector<Record> records_;
  std::unique_ptr<MemoryCap> cap_;
};

}  // namespace conductor::model
