// What runs on the callers' threads without a lock.
#include <algorithm>

#include "src/index/walk.h"
#include "src/service/hints.h"
#include "src/service/service_impl.h"
#include "src/service/state_views.h"

namespace conductor {
namespace {

Status CheckContext(const ContextKey& key) {
  if (key.model_name.empty()) {
    return InvalidField("invalid_value", "model", "model: must not be empty");
  }
  if (key.block_size < 1 || key.block_size > kBlockSizeMax) {
    return InvalidField("out_of_range", "block_size",
                        "block_size: expected 1.." + std::to_string(kBlockSizeMax) + ", got " +
                            std::to_string(key.block_size));
  }
  return {};
}

Status CheckCount(const std::string& field, std::size_t count, std::size_t count_max) {
  if (count <= count_max) return {};
  return tl::unexpected(Error{ErrorCode::kResourceExhausted,
                              field + ": " + std::to_string(count) + " entries, at most " +
                                  std::to_string(count_max) + " (limits.tokens_max)",
                              "too_large", field, -1});
}

bool Matched(const QueryAnswer& answer) {
  return std::any_of(answer.instances.begin(), answer.instances.end(),
                     [](const InstanceHits& hits) { return hits.best.disk > 0; });
}

ContextKey Normalised(ContextKey key) {
  if (key.tenant_id.empty()) key.tenant_id = "default";
  return key;
}

}  // namespace

Result<QueryAnswer> ConductorService::Impl::Query(const PromptQuery& query) const {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  CONDUCTOR_RETURN_IF_ERROR(CheckContext(query.context));
  CONDUCTOR_RETURN_IF_ERROR(
      CheckCount("token_ids", query.token_ids.size(), options_.limits.tokens_max));
  EpochGuard guard;
  const PrefixIndex& index = state().index();
  const Seq seq = applied_.load(std::memory_order_acquire);
  auto answer = query.context.tenant_id.empty()
                    ? MatchPrompt(index, {Normalised(query.context), query.token_ids,
                                          query.cache_salt, query.extra_keys, query.options})
                    : MatchPrompt(index, query);
  if (!answer) return answer;
  answer->log_seq = seq;
  const std::uint64_t matched = answer->instances.empty() ? 0 : answer->instances.front().best.disk;
  query_counters_.Add({1, query.token_ids.size(), matched});
  if (query.options.detail && !Matched(*answer)) {
    ExplainMiss(index, Normalised(query.context), query.token_ids.size(), *answer);
  }
  return answer;
}

Result<QueryAnswer> ConductorService::Impl::QueryByHash(const HashQuery& query) const {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  CONDUCTOR_RETURN_IF_ERROR(CheckContext(query.context));
  CONDUCTOR_RETURN_IF_ERROR(
      CheckCount("seq_hashes", query.hashes.size(), options_.limits.tokens_max));
  EpochGuard guard;
  const PrefixIndex& index = state().index();
  const Seq seq = applied_.load(std::memory_order_acquire);
  QueryAnswer answer = MatchHashes(index, {Normalised(query.context), query.hashes, query.options});
  answer.log_seq = seq;
  query_counters_.Add({1, 0, 0});
  if (query.options.detail && !Matched(answer)) {
    ExplainMiss(index, Normalised(query.context),
                query.hashes.size() * std::uint64_t{query.context.block_size}, answer);
  }
  return answer;
}

std::optional<Digest> ConductorService::Impl::FindDigest(StreamId stream,
                                                         const std::string& lora_name,
                                                         const BlockName& name) const {
  EpochGuard guard;
  const PrefixIndex& index = state().index();
  const StreamShared* shared = index.contexts().FindStream(stream);
  const ContextKey* base =
      shared == nullptr ? nullptr : shared->context.load(std::memory_order_acquire);
  if (base == nullptr) return std::nullopt;
  ContextKey key = *base;
  key.lora_name = lora_name;
  const ContextId context = index.contexts().Find(key);
  if (context == 0) return std::nullopt;
  return index.FindDigest(context, static_cast<Scope>(stream), name);
}

void ConductorService::Impl::OnStreamState(StreamId stream, StreamState new_state) {
  EpochGuard guard;
  state_.load(std::memory_order_acquire)->SetStreamState(stream, new_state);
}

Result<std::vector<std::string>> ConductorService::Impl::InspectBlock(std::uint64_t hash) const {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  MutexLock lock(catalogue_mutex_);
  return HoldersOfBlock(state(), hash);
}

}  // namespace conductor
