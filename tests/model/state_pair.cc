#include "tests/model/state_pair.h"

#include <set>
#include <utility>

#include "src/hex.h"
#include "src/index/walk.h"
#include "src/service/conductor_service.h"

namespace conductor::model {
namespace {

Hits ToHits(const QueryAnswer& answer) {
  Hits hits;
  for (const InstanceHits& instance : answer.instances) {
    hits[instance.instance_id] = {instance.ranks.begin(), instance.ranks.end()};
  }
  return hits;
}

std::string Text(const Hits& hits) {
  std::string text;
  for (const auto& [instance, ranks] : hits) {
    for (const auto& [rank, c] : ranks) {
      text += instance + "/" + std::to_string(rank) + ": " + std::to_string(c.device) + " " +
              std::to_string(c.cpu_local) + " " + std::to_string(c.cpu_share) + " " +
              std::to_string(c.disk) + "\n";
    }
  }
  return text;
}

// The instances in their order, with what they matched.
std::string Order(const QueryAnswer& answer) {
  std::string text;
  for (const InstanceHits& hits : answer.instances) {
    text += hits.instance_id + " " + std::to_string(hits.best.disk) + "\n" +
            Text({{hits.instance_id, {hits.ranks.begin(), hits.ranks.end()}}});
  }
  return text;
}

std::string EntryText(const ContextKey& key, StreamId scope, std::uint64_t name) {
  return key.tenant_id + "|" + key.model_name + "|" + key.lora_name + " " + std::to_string(scope) +
         ":" + std::to_string(name);
}

std::string HolderText(StreamId stream, Tier tier) {
  return std::to_string(stream) + "." + std::string(ToString(tier));
}

// The difference of two texts or numbers; empty: none.
template <typename Value>
std::string Difference(const std::string& what, const Value& real, const Value& model) {
  if (real == model) return "";
  if constexpr (std::is_arithmetic_v<Value>) {
    return what + ": real " + std::to_string(real) + ", model " + std::to_string(model);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return what + ": real\n" + real + "model\n" + model;
  } else {
    return what + " differs";
  }
}

}  // namespace

RandomOpsOptions RealOptions() {
  RandomOpsOptions options;
  options.vllm_profile = RealNames::Profile(HashStrategy::kVllmV1, "0");
  options.sglang_profile = RealNames::Profile(HashStrategy::kSglang, "0");
  return options;
}

StatePair::StatePair(std::uint64_t seed, const RealNames& names, RandomOpsOptions options)
    : ops_(seed, names, std::move(options)), cleanup_(seed ^ 0x5eedu) {}

StatePair::StatePair(RandomSource source, const RealNames& names, RandomOpsOptions options)
    : ops_(source, names, std::move(options)), cleanup_(source.Next()) {}

void StatePair::SetCap(std::uint64_t max_blocks) {
  Limits limits;
  limits.max_blocks = max_blocks;
  cap_ = std::make_unique<MemoryCap>(limits);
}

void StatePair::Apply(const Record& record) {
  real_->Apply(record);
  model_.Apply(record);
  records_.push_back(record);
}

// Every slice takes something, until there are no more blocks than there may be.
std::string StatePair::StayBelowCap() {
  for (const bool cleaned : {false, true}) {
    while (cleaned && real_->CleanupSlice(1'000)) {
    }
    cap_->LookAgain();
    do {
      const std::uint64_t before = real_->index().blocks();
      const Record record = cap_->NextSlice(*real_);
      if (record.facts.empty()) continue;
      Apply(record);
      if (real_->index().blocks() >= before) return "an eviction frees nothing";
    } while (cap_->IsOver(*real_));
    if (!cap_->exhausted()) return "";
  }
  return "nothing to evict";
}

std::string StatePair::Step() {
  Apply(ops_.NextRecord());
  if (cleanup_.Percent(50)) real_->CleanupSlice(cleanup_.Below(20));
  std::string difference;
  if (cap_ != nullptr) difference = StayBelowCap();
  if (!difference.empty()) return Where() + difference + "\n" + Entries() + model_.Dump();
  if (takes_images_) difference = StepImage();
  if (!difference.empty()) return Where() + difference + "\n" + Entries() + model_.Dump();
  if (cleanup_.Percent(1)) difference = Restart();
  if (difference.empty()) difference = real_->index().Inconsistency();
  if (difference.empty()) difference = ComparePrompt();
  if (difference.empty()) difference = CompareHashes();
  if (difference.empty()) difference = CompareFacts();
  if (difference.empty()) return "";
  return Where() + difference + "\n" + Entries() + model_.Dump();
}

std::string StatePair::Restart() {
  auto fresh = std::make_unique<StateMachine>();
  for (const Record& record : records_) fresh->Apply(record);
  const std::string difference =
      Difference("digest", Hex128(real_->Digest()), Hex128(fresh->Digest()));
  if (!difference.empty()) return "restart, rebuilt as the model: " + difference;
  if (cleanup_.Percent(50)) {
    image_.reset();  // given up with the state it was taken from
    real_ = std::move(fresh);
  }
  return "";
}

std::string StatePair::Where() const {
  std::string text = "record " + std::to_string(records_.size());
  for (const std::string& line : RenderRecord(records_.size(), records_.back())) {
    text += "\n" + line;
  }
  return text + "\n";
}

std::string StatePair::ComparePrompt() {
  const RandomPrompt prompt = ops_.NextPrompt();
  PromptQuery query;
  query.context = prompt.spec.context;
  query.token_ids = prompt.token_ids;
  query.cache_salt = prompt.cache_salt;
  for (const std::string& item : prompt.items) {
    query.extra_keys.push_back(RealNames::ItemKeys(BlockContent{{}, item}));
  }
  auto answer = MatchPrompt(real_->index(), query);
  if (!answer) return "prompt refused: " + answer.error().message;
  // The best few are the first of all.
  query.options.top_k = 1 + static_cast<std::uint32_t>(cleanup_.Below(4));
  auto few = MatchPrompt(real_->index(), query);
  if (!few) return "prompt refused: " + few.error().message;
  QueryAnswer first = *answer;
  first.instances.resize(std::min<std::size_t>(query.options.top_k, first.instances.size()));
  const std::string best = Difference("best of a prompt", Order(*few), Order(first));
  if (!best.empty()) return best;
  std::string asked = prompt.spec.salt ? "salted prompt" : "prompt";
  for (const PromptPosition& p : prompt.spec.positions) {
    asked += " " + std::to_string(p.fingerprint) + "/" + std::to_string(p.exact_name);
  }
  return Difference(asked, Text(ToHits(*answer)), Text(model_.Query(prompt.spec)));
}

std::string StatePair::CompareHashes() {
  const HashSpec spec = ops_.NextHashes();
  HashQuery query;
  query.context = spec.context;
  query.hashes = spec.hashes;
  std::string asked = "hashes";
  for (std::uint64_t hash : spec.hashes) asked += " " + std::to_string(hash);
  return Difference(asked, Text(ToHits(MatchHashes(real_->index(), query))),
                    Text(model_.QueryByHash(spec)));
}

std::string StatePair::CompareFacts() const {
  std::uint64_t blocks = 0;
  for (const auto& [key, context] : model_.contexts()) {
    const ContextId id = real_->index().contexts().Find(key);
    if (id == 0) return "no context " + key.model_name + "|" + key.lora_name;
    const conductor::Context& real = real_->index().contexts().context(id);
    const std::string of = " of " + key.model_name + "|" + key.lora_name;
    for (const std::string& difference :
         {Difference("blocks" + of, std::uint64_t{real.blocks.load()}, model_.PrefixCount(key)),
          Difference("fragments" + of, std::uint64_t{real.fragments.load()},
                     model_.FragmentCount(key))}) {
      if (!difference.empty()) return difference;
    }
    blocks += model_.PrefixCount(key);
  }
  for (const std::string& difference :
       {Difference("blocks", std::uint64_t{real_->index().blocks()}, blocks),
        Difference("fragments", std::uint64_t{real_->index().fragments()}, model_.FragmentCount()),
        Difference("streams", real_->streams().size(), model_.streams().size())}) {
    if (!difference.empty()) return difference;
  }
  for (const auto& [id, stream] : model_.streams()) {
    const std::string difference = CompareStream(id, stream);
    if (!difference.empty()) return "stream " + std::to_string(id) + ": " + difference;
  }
  return "";
}

std::string StatePair::CompareStream(StreamId id, const Stream& stream) const {
  const StreamFacts* facts = real_->FindStream(id);
  if (facts == nullptr) return "unknown";
  for (const std::string& difference :
       {Difference("cursor", facts->cursor, stream.cursor),
        Difference("epoch", facts->epoch, stream.epoch),
        Difference("history_from", facts->history_from, stream.history_from),
        Difference("lost ranges", facts->lost, stream.lost_ranges),
        Difference("verified_ever", facts->verified_ever, stream.ever_verified),
        Difference("remove_unknown", std::uint64_t{facts->remove_unknown},
                   stream.counters.remove_unknown),
        Difference("blocks_rejected", std::uint64_t{facts->blocks_rejected},
                   stream.counters.rejected_blocks),
        Difference("fragments_rejected", std::uint64_t{facts->fragments_rejected},
                   stream.counters.fragments_rejected)}) {
    if (!difference.empty()) return difference;
  }
  const auto tiers = model_.BlocksByTier(id);
  for (int t = 0; t < kTierCount; ++t) {
    const std::string difference =
        Difference("tier " + std::to_string(t),
                   std::uint64_t{real_->index().BlocksOf(id, static_cast<Tier>(t + 1))},
                   tiers[static_cast<std::size_t>(t)]);
    if (!difference.empty()) return difference;
  }
  return "";
}

// The live entries, as far as both sides name them: context, scope, name, holders.
std::string StatePair::Entries() const {
  std::set<std::string> real, model;
  const PrefixIndex& index = real_->index();
  index.ForEachId([&](EntryId id) {
    if (index.ScopeOf(id) == kRootScope || !index.IsLive(id)) return;
    const HolderSet* set = index.holders().Find(index.StateOf(id));
    std::set<std::string> holders;
    for (std::uint32_t i = 0; i < set->size; ++i) {
      const Holder& holder = index.holders().holder(set->holders[i]);
      if (!holder.retired.load()) {
        if (holder.key.pool == 0) holders.insert(HolderText(holder.key.stream, holder.key.tier));
      }
    }
    std::string text;
    for (const std::string& holder : holders) text += " " + holder;
    real.insert(EntryText(index.contexts().context(index.ContextOf(id)).key, index.ScopeOf(id),
                          index.ProjectedOf(id)) +
                text);
  });
  for (const auto& [key, context] : model_.contexts()) {
    for (const auto& [entry_key, entry] : context.entries) {
      std::set<std::string> holders;
      for (const auto& [holder, copies] : entry.copies) {
        holders.insert(HolderText(holder.stream, holder.tier));
      }
      std::string text;
      for (const std::string& holder : holders) text += " " + holder;
      model.insert(EntryText(key, entry_key.scope, entry_key.name.projected) + text);
    }
  }
  std::string difference;
  for (const std::string& line : real) {
    if (!model.contains(line)) difference += "only real:  " + line + "\n";
  }
  for (const std::string& line : model) {
    if (!real.contains(line)) difference += "only model: " + line + "\n";
  }
  return difference;
}

}  // namespace conductor::model
