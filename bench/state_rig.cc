#include "bench/state_rig.h"

#include <algorithm>

namespace conductor::bench {
namespace {

// The service's own slice.
constexpr std::size_t kCleanupEntriesPerSlice = 2'048;

}  // namespace

StateRig::StateRig(std::size_t instances)
    : instances_(instances), state_(std::make_unique<StateMachine>()) {
  for (std::size_t i = 0; i < instances; ++i) {
    const std::string endpoint = "tcp://10.0.0.1:" + std::to_string(10'000 + i);
    state_->Apply(
        Record{{Registered{MakeBenchRegistration(i, endpoint), UnverifiedBlocks::kContent}}});
  }
}

Record StateRig::Prepare(std::size_t instance, Event event) {
  Record record;
  record.facts.emplace_back(MakeFrame(instance + 1, next_number_++, std::move(event)));
  return record;
}

void StateRig::Apply(const Record& record) {
  state_->Apply(record);
  state_->CleanupSlice(kCleanupEntriesPerSlice);
}

void StateRig::StorePrompt(const PromptSource& source, std::size_t instance, std::uint64_t prompt,
                           std::size_t blocks) {
  for (std::size_t begin = 0; begin < blocks; begin += kEventBlocks) {
    Apply(instance, source.StoredEvent(prompt, begin, std::min(kEventBlocks, blocks - begin)));
  }
}

void AddDigest(Checksum& sum, Sum128 digest) {
  sum.Add(static_cast<std::uint64_t>(digest));
  sum.Add(static_cast<std::uint64_t>(digest >> 64));
}

}  // namespace conductor::bench
