#include "src/service/memory_cap.h"

#include <algorithm>

namespace conductor {
namespace {

// Facts of one record, and those of one block more.
constexpr std::size_t kEvictedPerSliceMax = 4'096;
// Evicting goes on until this part of the cap is free.
constexpr std::uint64_t kLowWaterPart = 100;
// This part of max_bytes is kept free, for what a group may add before it is answered.
constexpr std::uint64_t kSpareBytesPart = 32;
// A growth of the bytes above the line is answered by this many times as many bytes' worth of
// blocks; what remains above max_bytes by a part of it, each time 1 % of the blocks are others.
constexpr double kGrowthAnswered = 4;
constexpr double kExcessAnswered = 8;

std::uint64_t LowWater(std::uint64_t cap) {
  return cap - std::min(cap, cap / kLowWaterPart + 1);
}

// A context that is not the registration's own is named, as far as it differs.
Evicted FactOf(const Victim& victim, const StateMachine& state) {
  const ContextKey& key = state.index().contexts().context(victim.context).key;
  const Registration& registration = state.FindStream(victim.stream)->registration;
  Evicted fact;
  fact.stream = victim.stream;
  fact.tier = victim.tier;
  fact.lora_name = key.lora_name;
  fact.name = victim.name;
  if (key.tenant_id != registration.tenant_id) fact.tenant_id = key.tenant_id;
  if (key.model_name != registration.model_name) fact.model_name = key.model_name;
  if (key.block_size != registration.block_size) fact.block_size = key.block_size;
  return fact;
}

}  // namespace

MemoryCap::MemoryCap(const Limits& limits)
    : max_blocks_(limits.max_blocks == 0 ? kNoCap : limits.max_blocks),
      line_bytes_(limits.max_bytes - limits.max_bytes / kSpareBytesPart) {}

void MemoryCap::Lower(std::uint64_t most, double bytes, const PrefixIndex& index) {
  const double worth = static_cast<double>(index.blocks()) / static_cast<double>(index.bytes());
  byte_cap_ = most - std::min(most, static_cast<std::uint64_t>(bytes * worth) + 1);
}

void MemoryCap::LookAtBytes(const PrefixIndex& index) {
  if (line_bytes_ == 0) return;
  const std::uint64_t bytes = index.bytes();
  if (bytes < LowWater(line_bytes_)) byte_cap_ = kNoCap;
  if (byte_cap_ == kNoCap) highest_bytes_ = line_bytes_;
  if (bytes > highest_bytes_) {
    const std::uint64_t grown = bytes - highest_bytes_;
    Lower(std::min(byte_cap_, index.blocks()), kGrowthAnswered * static_cast<double>(grown), index);
    highest_bytes_ = bytes;
  }
  // What had grown and is gone again is answered again.
  highest_bytes_ = std::min(highest_bytes_, bytes + line_bytes_ / kLowWaterPart);
  highest_bytes_ = std::max(highest_bytes_, line_bytes_);
  // New blocks have filled what was free, and it is still too much.
  if (!evicting_ && byte_cap_ != kNoCap && index.blocks() > byte_cap_ && bytes > line_bytes_) {
    Lower(byte_cap_, static_cast<double>(bytes - line_bytes_) / kExcessAnswered, index);
  }
}

Record MemoryCap::NextSlice(const StateMachine& state) {
  const PrefixIndex& index = state.index();
  LookAtBytes(index);
  const std::uint64_t blocks = index.blocks();
  if (blocks > Cap()) evicting_ = true;
  if (blocks <= LowWater(Cap())) evicting_ = false;
  const std::uint64_t change =
      blocks - std::min(blocks, exhausted_at_) + exhausted_at_ - std::min(blocks, exhausted_at_);
  if (exhausted_ && change <= exhausted_at_ / kLowWaterPart) return {};
  exhausted_ = false;
  if (!evicting_) return {};
  const std::uint64_t wanted = blocks - LowWater(Cap());
  std::vector<Victim> victims;
  const VictimSweep::Found found = sweep_.Next(index, wanted, kEvictedPerSliceMax, &victims);
  exhausted_at_ = blocks;
  exhausted_ = found.exhausted;
  if (found.blocks >= wanted) evicting_ = false;
  Record record;
  record.facts.reserve(victims.size());
  for (const Victim& victim : victims) record.facts.emplace_back(FactOf(victim, state));
  return record;
}

}  // namespace conductor
