#include "src/service/state_views.h"

#include <string_view>

#include "src/index/epoch.h"

namespace conductor {
namespace {

constexpr Tier kTiers[] = {Tier::kDevice, Tier::kCpuLocal, Tier::kCpuShare, Tier::kDisk};

std::string_view ClassName(const Holder& holder, BlockClass block_class) {
  if (holder.key.pool != 0) return "pool";
  if (block_class == BlockClass::kShared) return "shared";
  return IsContent(block_class) ? "own_name" : "name_only";
}

void AppendHolders(const StateMachine& state, const Context& context, EntryId id,
                   std::vector<std::string>& lines) {
  const HolderTable& holders = state.index().holders();
  const HolderSet* set = holders.Find(state.index().StateOf(id));
  for (std::uint32_t i = 0; set != nullptr && i < set->size; ++i) {
    const Holder& holder = holders.holder(set->holders[i]);
    const StreamFacts* facts = state.FindStream(holder.key.stream);
    if (holder.retired.load() || facts == nullptr) continue;
    lines.push_back("tenant=" + context.key.tenant_id + " model=" + context.key.model_name +
                    " lora=" + context.key.lora_name +
                    " block_size=" + std::to_string(context.key.block_size) +
                    " instance=" + facts->registration.instance_id +
                    " dp_rank=" + std::to_string(facts->registration.dp_rank) +
                    " tier=" + std::string(ToString(holder.key.tier)) +
                    " class=" + std::string(ClassName(holder, state.index().ClassOf(id))) +
                    " tokens=" + std::to_string(state.index().LengthOf(id)));
  }
}

}  // namespace

std::vector<ServiceView> ServicesOf(const StateMachine& state) {
  std::vector<ServiceView> views;
  views.reserve(state.streams().size());
  for (const auto& [id, facts] : state.streams()) {
    ServiceView& view = views.emplace_back();
    view.registration = facts.registration;
    view.stream = id;
    view.epoch = facts.epoch;
    view.last_seq = facts.cursor;
    view.history_from = facts.history_from;
    view.lost_ranges = facts.lost;
    view.hash_check = std::string(facts.HashCheckWord());
    view.counters = facts.Counters();
    for (const Tier tier : kTiers) {
      view.blocks_by_tier[static_cast<int>(tier) - 1] = state.index().BlocksOf(id, tier);
    }
  }
  return views;
}

std::vector<ContextView> ContextsOf(const StateMachine& state) {
  std::vector<ContextView> views;
  const EpochGuard guard;
  const ContextTable& contexts = state.index().contexts();
  for (ContextId id = 1; id < contexts.end_id(); ++id) {
    const Context& context = contexts.context(id);
    if (!context.Exists()) continue;
    ContextView& view = views.emplace_back();
    view.key = context.key;
    view.hash_profile = context.profile.load(std::memory_order_acquire)->profile;
    view.prefix_count = context.blocks.load(std::memory_order_acquire);
    for (const Row* row : *context.rows.load(std::memory_order_acquire)) {
      if (row != nullptr) view.instances[row->instance_id].insert(row->dp_rank);
    }
  }
  return views;
}

std::vector<std::string> HoldersOfBlock(const StateMachine& state, std::uint64_t hash) {
  std::vector<std::string> lines;
  const EpochGuard guard;
  const PrefixIndex& index = state.index();
  for (ContextId id = 1; id < index.contexts().end_id(); ++id) {
    const Context& context = index.contexts().context(id);
    if (const EntryId shared = index.FindName(id, kSharedScope, BlockName{hash, {}})) {
      AppendHolders(state, context, shared, lines);
    }
    index.ForProjected(id, hash, [&](EntryId own) { AppendHolders(state, context, own, lines); });
  }
  return lines;
}

}  // namespace conductor
