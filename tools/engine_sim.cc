#include "tools/engine_sim.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/check.h"
#include "src/hash/extra_keys.h"

namespace conductor::enginesim {
namespace {

double SystemSeconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

}  // namespace

Result<NameForm> ParseNameForm(std::string_view text) {
  if (text == "int") return NameForm::kInt;
  if (text == "signed") return NameForm::kSignedInt;
  if (text == "bytes") return NameForm::kBytes;
  return MakeError(ErrorCode::kInvalidArgument,
                   "names: expected int, signed or bytes, got '" + std::string(text) + "'");
}

EngineSim::EngineSim(const EngineOptions& options) : options_(options), hasher_(options.profile) {}

Result<std::unique_ptr<EngineSim>> EngineSim::Start(const ZmqContext& context,
                                                    const EngineOptions& options) {
  const bool sizes_ok = options.block_size > 0 && options.blocks > 0 && options.dp_ranks > 0 &&
                        options.dp_ranks <= kDpRanksMax;
  if (!sizes_ok || options.profile.strategy != HashStrategy::kVllmV1) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "engine: expected a vllm_v1 profile, block size, blocks and ranks above 0 and "
                     "at most 1024 ranks");
  }
  std::unique_ptr<EngineSim> engine(new EngineSim(options));
  for (std::uint32_t rank = 0; rank < options.dp_ranks; ++rank) {
    PublisherOptions publisher = options.publisher;
    CONDUCTOR_ASSIGN_OR_RETURN(publisher.endpoint, RankEndpoint(publisher.endpoint, rank));
    CONDUCTOR_ASSIGN_OR_RETURN(publisher.replay_endpoint,
                               RankEndpoint(publisher.replay_endpoint, rank));
    auto state = std::make_unique<Rank>(options.blocks);
    CONDUCTOR_ASSIGN_OR_RETURN(state->publisher, Publisher::Start(context, std::move(publisher)));
    engine->ranks_.push_back(std::move(state));
  }
  return engine;
}

Result<PromptOutcome> EngineSim::Prompt(const PromptRequest& request) {
  if (request.dp_rank >= ranks_.size()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "prompt: rank " + std::to_string(request.dp_rank) + ", the engine has " +
                         std::to_string(ranks_.size()));
  }
  if (request.tokens.size() > kPromptTokensMax) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "prompt: " + std::to_string(request.tokens.size()) + " tokens, at most " +
                         std::to_string(kPromptTokensMax));
  }
  PromptRequest effective = request;
  // Releases of this era hashed the adapter's number, not its name.
  if (options_.era == Era::kA && !request.lora_name.empty()) {
    effective.lora_name = LoraNameOfId(loraId(request.lora_name));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(
      const std::vector<Digest> chain,
      hasher_.HashPrompt(effective.tokens, options_.block_size, effective.lora_name,
                         effective.cache_salt, effective.block_extra_keys));

  Rank& rank = *ranks_[request.dp_rank];
  std::unique_lock lock(rank.mutex);
  const CacheChange change = rank.cache.Admit(chain);
  PromptOutcome outcome{.hit_tokens = change.hit_blocks * options_.block_size,
                        .stored_blocks = change.stored_blocks,
                        .removed_blocks = change.removed.size(),
                        .seq = std::nullopt};
  std::vector<EngineEvent> events;
  for (const Digest& digest : change.removed) {
    BlockRemovedEvent removed;
    removed.block_hashes.push_back(wireHash(digest));
    removed.group_idx = 0;
    events.emplace_back(std::move(removed));
  }
  if (change.stored_blocks > 0) events.emplace_back(storedEvent(effective, chain, change));
  if (!events.empty()) {
    outcome.seq = rank.publisher->Publish(encode(std::move(events), request.dp_rank));
  }
  return outcome;
}

BlockStoredEvent EngineSim::storedEvent(const PromptRequest& request,
                                        const std::vector<Digest>& chain,
                                        const CacheChange& change) {
  BlockStoredEvent event;
  const std::size_t begin = change.hit_blocks;
  const std::size_t end = begin + change.stored_blocks;
  const auto token = [&](std::size_t block) {
    return request.tokens.begin() + static_cast<std::ptrdiff_t>(block * options_.block_size);
  };
  event.token_ids.assign(token(begin), token(end));
  event.block_size = options_.block_size;
  event.group_idx = 0;
  event.spec_kind = "full_attention";
  if (begin > 0) event.parent_block_hash = wireHash(chain[begin - 1]);
  bool has_keys = false;
  std::vector<ExtraKeys> extra_keys;
  for (std::size_t block = begin; block < end; ++block) {
    event.block_hashes.push_back(wireHash(chain[block]));
    const ExtraKeys none;
    const ExtraKeys& own =
        block < request.block_extra_keys.size() ? request.block_extra_keys[block] : none;
    extra_keys.push_back(EngineExtraKeys(request.lora_name, block, own, request.cache_salt));
    has_keys = has_keys || !extra_keys.back().empty();
  }
  // The engine says one entry per block, nil where there is none, also when all are nil.
  if (has_keys || HasExtraKeys(options_.era)) event.extra_keys = std::move(extra_keys);
  if (!request.lora_name.empty()) {
    event.lora_id = loraId(request.lora_name);
    if (!LoraIdOfName(request.lora_name)) event.lora_name = request.lora_name;
  }
  return event;
}

std::uint64_t EngineSim::PublishEvents(std::vector<EngineEvent> events, std::uint32_t rank) {
  CHECK(rank < ranks_.size());
  std::unique_lock lock(ranks_[rank]->mutex);
  return ranks_[rank]->publisher->Publish(encode(std::move(events), rank));
}

std::uint64_t EngineSim::Clear(std::uint32_t rank) {
  CHECK(rank < ranks_.size());
  std::unique_lock lock(ranks_[rank]->mutex);
  ranks_[rank]->cache.Clear();
  return ranks_[rank]->publisher->Publish(encode({AllBlocksClearedEvent{}}, rank));
}

void EngineSim::Restart(std::uint32_t rank) {
  CHECK(rank < ranks_.size());
  std::unique_lock lock(ranks_[rank]->mutex);
  ranks_[rank]->cache.Clear();
  ranks_[rank]->publisher->Restart();
}

std::size_t EngineSim::CachedBlocks(std::uint32_t rank) const {
  std::unique_lock lock(ranks_[rank]->mutex);
  return ranks_[rank]->cache.size();
}

std::string EngineSim::encode(std::vector<EngineEvent> events, std::uint32_t rank) const {
  EventBatch batch;
  batch.ts = options_.now ? options_.now() : SystemSeconds();
  batch.events = std::move(events);
  batch.dp_rank = rank;
  return EncodeBatch(options_.era, batch);
}

WireHash EngineSim::wireHash(const Digest& digest) const {
  switch (options_.names) {
    case NameForm::kBytes:
      return std::string(digest.begin(), digest.end());
    case NameForm::kSignedInt:
      return static_cast<std::int64_t>(hasher_.Project(digest));
    case NameForm::kInt:
      break;
  }
  return hasher_.Project(digest);
}

std::int64_t EngineSim::loraId(const std::string& lora_name) {
  if (const std::optional<std::int64_t> id = LoraIdOfName(lora_name)) return *id;
  std::unique_lock lock(lora_mutex_);
  const auto next = static_cast<std::int64_t>(lora_ids_.size()) + 1;
  return lora_ids_.try_emplace(lora_name, next).first->second;
}

}  // namespace conductor::enginesim
