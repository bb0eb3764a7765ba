// The real state and the reference model, fed the same records and asked the same questions. The
// first difference comes back in words; empty: none. Used by the differential test (from seeds) and
// by the fuzzer of operations (from bytes). One thread; `names` outlives the object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/service/memory_cap.h"
#include "src/state/image_cut.h"
#include "src/state/state_machine.h"
#include "src/state/image_tape.h"
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

  // From here on an image is being taken most of the time, in small steps between the records. Each
  // one that is done is loaded, has the records behind it applied, and goes on in the state's
  // place.
  void TakeImages() { takes_images_ = true; }

  // One record to both, then questions about prompts, hashes and facts.
  std::string Step();
  // A second state from the same records has the same digest, whatever was cleaned up when.
  std::string Restart();

  bool ChoicesUsedUp() const { return ops_.ChoicesUsedUp(); }

 private:
  // An image that is being taken (state_pair_image.cc).
  struct Image {
    Image(StateMachine& state, std::size_t records);
    std::size_t records;  // that it holds
    std::string digest;
    ImageTape tape;
    ImageCut cut;
  };
  std::string StepImage();
  std::string LoadImage();

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
  bool takes_images_ = false;
  std::unique_ptr<Image> image_;
};

}  // namespace conductor::model
