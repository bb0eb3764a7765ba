// A StateMachine that frames are applied to, as the apply thread would: one record each, and a
// slice of physical cleanup after it. No log, no threads.
#pragma once

#include <memory>

#include "bench/harness.h"
#include "bench/workload.h"
#include "src/state/state_machine.h"

namespace conductor::bench {

class StateRig {
 public:
  explicit StateRig(std::size_t instances);

  StateMachine& state() { return *state_; }
  const PrefixIndex& index() const { return state_->index(); }
  std::size_t instances() const { return instances_; }

  // Prepares what Apply takes. `instance` counts from 0.
  Record Prepare(std::size_t instance, Event event);
  void Apply(const Record& record);
  void Apply(std::size_t instance, Event event) { Apply(Prepare(instance, std::move(event))); }

  // Stores blocks [0, blocks) of a prompt in events of kEventBlocks.
  void StorePrompt(const PromptSource& source, std::size_t instance, std::uint64_t prompt,
                   std::size_t blocks);

 private:
  const std::size_t instances_;
  std::unique_ptr<StateMachine> state_;
  std::uint64_t next_number_ = 0;
};

// The two halves of a state digest, for a checksum.
void AddDigest(Checksum& sum, Sum128 digest);

}  // namespace conductor::bench
