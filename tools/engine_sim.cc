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
  const bool vllm = options.profile.strategy == HashStrategy::kVllmV1;
  if (!sizes_ok || (vllm && (options.short_pages || options.host_blocks > 0))) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "engine: expected block size, blocks and ranks above 0, at most 1024 ranks, "
                     "and short pages and a host cache only of SGLang");
  }
  std::unique_ptr<EngineSim> engine(new EngineSim(options));
  for (std::uint32_t rank = 0; rank < options.dp_ranks; ++rank) {
    PublisherOptions publisher = options.publisher;
    CONDUCTOR_ASSIGN_OR_RETURN(publisher.endpoint, RankEndpoint(publisher.endpoint, rank));
    CONDUCTOR_ASSIGN_OR_RETURN(publisher.replay_endpoint,
                               RankEndpoint(publisher.replay_endpoint, rank));
    auto state = std::make_unique<Rank>(options.blocks, options.host_blocks);
    CONDUCTOR_ASSIGN_OR_RETURN(state->publisher, Publisher::Start(context, std::move(publisher)));
    engine->ranks_.push_back(std::move(state));
  }
  return engine;
}

Status EngineSim::checkPrompt(const PromptRequest& request) const {
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
  if (!IsVllm() && !(request.lora_name.empty() && request.block_extra_keys.empty())) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "prompt: SGLang's events tell no adapter and no extra keys");
  }
  return {};
}

std::size_t EngineSim::positions(const PromptRequest& request) const {
  const std::size_t tokens = request.tokens.size();
  const bool bigram = options_.profile.strategy == HashStrategy::kSglangBigram;
  return bigram && tokens > 0 ? tokens - 1 : tokens;
}

Result<PromptOutcome> EngineSim::Prompt(const PromptRequest& request) {
  CONDUCTOR_RETURN_IF_ERROR(checkPrompt(request));
  PromptRequest effective = request;
  // Releases of this era hashed the adapter's number, not its name.
  if (IsVllm() && options_.era == Era::kA && !request.lora_name.empty()) {
    effective.lora_name = LoraNameOfId(loraId(request.lora_name));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(
      std::vector<Digest> chain,
      hasher_.HashPrompt(effective.tokens, options_.block_size, effective.lora_name,
                         effective.cache_salt, effective.block_extra_keys));
  const std::size_t count = positions(effective);
  if (!options_.short_pages) chain.resize(std::min(chain.size(), count / options_.block_size));

  Rank& rank = *ranks_[request.dp_rank];
  std::unique_lock lock(rank.mutex);
  const CacheChange change = rank.cache.Admit(chain);
  PromptOutcome outcome{.hit_tokens = std::min(count, change.hit_blocks * options_.block_size),
                        .stored_blocks = change.stored_blocks,
                        .removed_blocks = change.removed.size(),
                        .removed = change.removed};
  std::vector<EngineEvent> events;
  appendRemoved(change, "GPU", events);
  if (!IsVllm()) {
    appendPages(effective, chain, change, "GPU", events);
  } else if (change.stored_blocks > 0) {
    events.emplace_back(storedEvent(effective, chain, change));
  }
  if (options_.host_blocks > 0) {
    const CacheChange host = rank.host.Admit(chain);
    outcome.host_hit_tokens = std::min(count, host.hit_blocks * options_.block_size);
    appendRemoved(host, "CPU_PINNED", events);
    appendPages(effective, chain, host, "CPU_PINNED", events);
  }
  if (!events.empty()) {
    outcome.seq = rank.publisher->Publish(encode(std::move(events), request.dp_rank));
  }
  return outcome;
}

void EngineSim::appendRemoved(const CacheChange& change, const std::string& medium,
                              std::vector<EngineEvent>& events) const {
  for (const Digest& digest : change.removed) {
    BlockRemovedEvent removed;
    removed.block_hashes.push_back(wireHash(digest));
    removed.medium = medium;
    removed.group_idx = 0;
    events.emplace_back(std::move(removed));
  }
}

// One event for the run of whole pages, one for a short last page, as SGLang merges its own.
void EngineSim::appendPages(const PromptRequest& request, const std::vector<Digest>& chain,
                            const CacheChange& change, const std::string& medium,
                            std::vector<EngineEvent>& events) const {
  const std::size_t size = options_.block_size;
  const std::size_t count = positions(request);
  const bool bigram = options_.profile.strategy == HashStrategy::kSglangBigram;
  std::size_t page = change.hit_blocks;
  const std::size_t end = change.hit_blocks + change.stored_blocks;
  while (page < end) {
    const std::size_t whole_end = std::min(end, count / size);
    const std::size_t run_end = page < whole_end ? whole_end : page + 1;
    const std::size_t first = page * size, last = std::min(count, run_end * size);
    BlockStoredEvent event;
    event.medium = medium;
    event.block_size = static_cast<std::int64_t>(std::min(size, last - first));
    event.bigram = bigram;
    event.token_ids.assign(
        request.tokens.begin() + static_cast<std::ptrdiff_t>(first),
        request.tokens.begin() + static_cast<std::ptrdiff_t>(last + (bigram ? 1 : 0)));
    if (page > 0) event.parent_block_hash = wireHash(chain[page - 1]);
    if (!request.cache_salt.empty()) event.cache_salt = request.cache_salt;
    for (; page < run_end; ++page) event.block_hashes.push_back(wireHash(chain[page]));
    events.emplace_back(std::move(event));
  }
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
  ranks_[rank]->host.Clear();
  return ranks_[rank]->publisher->Publish(encode({AllBlocksClearedEvent{}}, rank));
}

void EngineSim::Restart(std::uint32_t rank) {
  CHECK(rank < ranks_.size());
  std::unique_lock lock(ranks_[rank]->mutex);
  ranks_[rank]->cache.Clear();
  ranks_[rank]->host.Clear();
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
  if (!IsVllm()) return EncodeSglangBatch(options_.sglang_era, batch);
  return EncodeBatch(options_.era, batch);
}

WireHash EngineSim::wireHash(const Digest& digest) const {
  if (!IsVllm()) return static_cast<std::int64_t>(hasher_.Project(digest));
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
