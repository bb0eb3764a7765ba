#include "cli/offline_state.h"

#include "src/index/epoch.h"

namespace conductor::cli {

namespace {

constexpr std::size_t kCleanupEntriesPerRecord = 2'048;
constexpr Tier kTiers[] = {Tier::kDevice, Tier::kCpuLocal, Tier::kCpuShare, Tier::kDisk};

std::string_view ClassName(BlockClass block_class) {
  if (block_class == BlockClass::kShared) return "shared";
  return IsContent(block_class) ? "own_name" : "name_only";
}

}  // namespace

Result<OfflineState> OfflineState::Read(const EventLog& log) {
  OfflineState offline;
  const Seq first = log.FirstSeq(), last = log.LastSeq();
  if (first > last) return offline;
  if (first != 1) {
    return MakeError(ErrorCode::kDataLoss, "log: the first record is " + std::to_string(first) +
                                               ", expected 1: its beginning is missing");
  }
  CONDUCTOR_RETURN_IF_ERROR(log.Read(first, last, [&](Seq, const Record& record) -> Status {
    offline.state_->Apply(record);
    offline.state_->CleanupSlice(kCleanupEntriesPerRecord);
    return {};
  }));
  return offline;
}

std::vector<ServiceView> OfflineState::Services() const {
  std::vector<ServiceView> views;
  for (const auto& [id, facts] : state_->streams()) {
    ServiceView& view = views.emplace_back();
    view.registration = facts.registration;
    view.stream = id;
    view.epoch = facts.epoch;
    view.last_seq = facts.cursor;
    view.history_from = facts.history_from;
    view.lost_ranges = facts.lost;
    view.hash_check = std::string(facts.HashCheckWord());
    view.counters = facts.Counters();
    for (int i = 0; i < kTierCount; ++i) {
      view.blocks_by_tier[i] = state_->index().BlocksOf(id, kTiers[i]);
    }
  }
  return views;
}

std::vector<ContextView> OfflineState::Contexts() const {
  std::vector<ContextView> views;
  const EpochGuard guard;
  const ContextTable& contexts = state_->index().contexts();
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

std::vector<std::string> OfflineState::Block(std::uint64_t hash) const {
  std::vector<std::string> lines;
  const EpochGuard guard;
  const PrefixIndex& index = state_->index();
  for (ContextId id = 1; id < index.contexts().end_id(); ++id) {
    const Context& context = index.contexts().context(id);
    std::vector<EntryId> entries;
    if (const EntryId shared = index.FindName(id, kSharedScope, BlockName{hash, {}})) {
      entries.push_back(shared);
    }
    index.ForProjected(id, hash, [&](EntryId own) { entries.push_back(own); });
    for (const EntryId entry : entries) {
      const HolderSet* set = index.holders().Find(index.entry(entry).state.load());
      for (std::uint32_t i = 0; set != nullptr && i < set->size; ++i) {
        const Holder& holder = index.holders().holder(set->holders[i]);
        const StreamFacts* facts = state_->FindStream(holder.key.stream);
        if (holder.retired.load() || facts == nullptr) continue;
        lines.push_back("tenant=" + context.key.tenant_id + " model=" + context.key.model_name +
                        " lora=" + context.key.lora_name +
                        " block_size=" + std::to_string(context.key.block_size) +
                        " instance=" + facts->registration.instance_id +
                        " dp_rank=" + std::to_string(facts->registration.dp_rank) +
                        " tier=" + std::string(ToString(holder.key.tier)) +
                        " class=" + std::string(ClassName(index.entry(entry).block_class.load())) +
                        " tokens=" + std::to_string(index.entry(entry).length.load()));
      }
    }
  }
  return lines;
}

}  // namespace conductor::cli
