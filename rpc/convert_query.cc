#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "rpc/convert.h"
#include "src/hash/utf8.h"

namespace conductor::rpc {
namespace {

constexpr std::size_t kEmbedsDigestBytes = 32;

Result<ContextKey> ToContext(const std::string& model, std::int64_t block_size,
                             const std::string& tenant_id, const std::string& lora_name) {
  if (model.empty()) return InvalidField("missing", "model", "model: expected a name, got none");
  if (block_size < 1 || block_size > kBlockSizeMax) {
    return InvalidField("out_of_range", "block_size",
                        "block_size: expected 1.." + std::to_string(kBlockSizeMax) + ", got " +
                            std::to_string(block_size));
  }
  return ContextKey{tenant_id.empty() ? "default" : tenant_id, model, lora_name,
                    static_cast<std::uint32_t>(block_size)};
}

QueryOptions ToOptions(const v1::QueryOptions& options) {
  return {options.instance_id(), options.top_k(), options.min_tokens(), options.detail()};
}

void FillOptions(const QueryOptions& options, v1::QueryOptions* out) {
  out->set_instance_id(options.instance_id);
  out->set_top_k(options.top_k);
  out->set_min_tokens(options.min_tokens);
  out->set_detail(options.detail);
}

tl::unexpected<Error> TooMany(const char* field, int count, const Limits& limits) {
  return tl::unexpected(Error{ErrorCode::kResourceExhausted,
                              std::string(field) + ": expected at most " +
                                  std::to_string(limits.tokens_max) + " entries, got " +
                                  std::to_string(count),
                              "too_large", field, -1});
}

Result<ExtraKeys> ToExtraKeys(const v1::BlockExtraKeys& block, int block_index) {
  ExtraKeys keys;
  keys.reserve(static_cast<std::size_t>(block.keys_size()));
  for (const auto& key : block.keys()) {
    switch (key.kind_case()) {
      case v1::ExtraKey::kText:
        keys.push_back({ExtraKey::Kind::kText, key.text(), 0});
        break;
      case v1::ExtraKey::kInteger:
        keys.push_back({ExtraKey::Kind::kInteger, "", key.integer()});
        break;
      case v1::ExtraKey::kItem:
        keys.push_back({ExtraKey::Kind::kItem, key.item().identifier(), key.item().offset()});
        break;
      case v1::ExtraKey::kEmbedsDigest:
        if (key.embeds_digest().size() != kEmbedsDigestBytes) {
          return InvalidField("invalid_value", "extra_keys",
                              "extra_keys: embeds_digest: expected 32 bytes, got " +
                                  std::to_string(key.embeds_digest().size()),
                              block_index);
        }
        keys.push_back({ExtraKey::Kind::kBytes, key.embeds_digest(), 0});
        break;
      case v1::ExtraKey::KIND_NOT_SET:
        return InvalidField("invalid_value", "extra_keys", "extra_keys: an entry without a value",
                            block_index);
    }
  }
  return keys;
}

void FillExtraKeys(const ExtraKeys& keys, v1::BlockExtraKeys* block) {
  for (const auto& key : keys) {
    auto* out = block->add_keys();
    switch (key.kind) {
      case ExtraKey::Kind::kText:
        out->set_text(key.text);
        break;
      case ExtraKey::Kind::kInteger:
        out->set_integer(key.integer);
        break;
      case ExtraKey::Kind::kItem:
        out->mutable_item()->set_identifier(key.text);
        out->mutable_item()->set_offset(key.integer);
        break;
      case ExtraKey::Kind::kBytes:
        out->set_embeds_digest(key.text);
        break;
    }
  }
}

// One memcpy: the memory form of the repeated field is the span's.
template <typename Field, typename Span>
void AssignPacked(Span values, Field* field) {
  field->Resize(static_cast<int>(values.size()), 0);
  if (!values.empty()) std::memcpy(field->mutable_data(), values.data(), values.size_bytes());
}

void FillWithoutTokens(const PromptQuery& query, v1::QueryRequest* request) {
  request->set_model(query.context.model_name);
  request->set_block_size(query.context.block_size);
  request->set_tenant_id(query.context.tenant_id);
  request->set_lora_name(query.context.lora_name);
  request->set_cache_salt(query.cache_salt);
  for (const auto& keys : query.extra_keys) FillExtraKeys(keys, request->add_extra_keys());
  FillOptions(query.options, request->mutable_options());
}

// Of protobuf's wire format.
constexpr std::uint32_t kLengthDelimited = 2;
constexpr std::size_t kTagAndLengthBytesMax = 20;

void AppendVarint(std::uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendLittleEndian(std::span<const std::int32_t> values, std::string* out) {
  if constexpr (std::endian::native == std::endian::little) {
    out->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  } else {
    for (const std::int32_t value : values) {
      for (int shift = 0; shift < 32; shift += 8) {
        out->push_back(static_cast<char>(static_cast<std::uint32_t>(value) >> shift));
      }
    }
  }
}

void FillInstance(const InstanceHits& hits, bool detail, v1::InstanceHits* out) {
  out->set_instance_id(WireText(hits.instance_id));
  out->set_longest_matched(hits.best.disk);
  out->set_device(hits.best.device);
  out->set_cpu_local(hits.best.cpu_local);
  out->set_cpu_share(hits.best.cpu_share);
  out->set_disk(hits.best.disk);
  auto& dp = *out->mutable_dp();
  auto& ranks = *out->mutable_rank_matches();
  for (const auto& [rank, counts] : hits.ranks) {
    dp[rank] = counts.device;
    auto& match = ranks[rank];
    match.set_device(counts.device);
    match.set_cpu_local(counts.cpu_local);
    match.set_cpu_share(counts.cpu_share);
    match.set_disk(counts.disk);
  }
  if (detail) out->set_stream_state(std::string(ToString(hits.stream_state)));
}

}  // namespace

std::string WireText(std::string_view text) {
  if (IsValidUtf8(text)) return std::string(text);
  std::string clean;
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x80) {
      clean.push_back(c);
    } else {
      clean += "\xEF\xBF\xBD";  // U+FFFD
    }
  }
  return clean;
}

Result<PromptQuery> ToPromptQuery(const v1::QueryRequest& request, const Limits& limits) {
  auto context =
      ToContext(request.model(), request.block_size(), request.tenant_id(), request.lora_name());
  if (!context) return tl::unexpected(context.error());
  if (static_cast<std::size_t>(request.token_ids_size()) > limits.tokens_max) {
    return TooMany("token_ids", request.token_ids_size(), limits);
  }
  if (static_cast<std::size_t>(request.extra_keys_size()) > limits.tokens_max) {
    return TooMany("extra_keys", request.extra_keys_size(), limits);
  }
  PromptQuery query{
      .context = *std::move(context),
      .token_ids = {request.token_ids().data(), static_cast<std::size_t>(request.token_ids_size())},
      .cache_salt = request.cache_salt(),
      .extra_keys = {},
      .options = ToOptions(request.options())};
  for (int i = 0; i < request.extra_keys_size(); ++i) {
    auto keys = ToExtraKeys(request.extra_keys(i), i);
    if (!keys) return tl::unexpected(keys.error());
    query.extra_keys.push_back(*std::move(keys));
  }
  return query;
}

Result<HashQuery> ToHashQuery(const v1::QueryByHashRequest& request, const Limits& limits) {
  auto context =
      ToContext(request.model(), request.block_size(), request.tenant_id(), request.lora_name());
  if (!context) return tl::unexpected(context.error());
  if (static_cast<std::size_t>(request.seq_hashes_size()) > limits.tokens_max) {
    return TooMany("seq_hashes", request.seq_hashes_size(), limits);
  }
  return HashQuery{
      .context = *std::move(context),
      .hashes = {request.seq_hashes().data(), static_cast<std::size_t>(request.seq_hashes_size())},
      .options = ToOptions(request.options())};
}

void FillQueryRequest(const PromptQuery& query, v1::QueryRequest* request) {
  FillWithoutTokens(query, request);
  AssignPacked(query.token_ids, request->mutable_token_ids());
}

void AppendQueryRequest(const PromptQuery& query, std::string* out) {
  v1::QueryRequest rest;
  FillWithoutTokens(query, &rest);
  const std::size_t token_bytes = query.token_ids.size_bytes();
  out->reserve(out->size() + rest.ByteSizeLong() + kTagAndLengthBytesMax + token_bytes);
  rest.AppendToString(out);
  if (query.token_ids.empty()) return;
  AppendVarint(v1::QueryRequest::kTokenIdsFieldNumber << 3 | kLengthDelimited, out);
  AppendVarint(token_bytes, out);
  AppendLittleEndian(query.token_ids, out);
}

void FillQueryByHashRequest(const HashQuery& query, v1::QueryByHashRequest* request) {
  request->set_model(query.context.model_name);
  request->set_block_size(query.context.block_size);
  request->set_tenant_id(query.context.tenant_id);
  request->set_lora_name(query.context.lora_name);
  AssignPacked(query.hashes, request->mutable_seq_hashes());
  FillOptions(query.options, request->mutable_options());
}

void FillQueryResponse(const QueryAnswer& answer, bool detail, v1::QueryResponse* response) {
  for (const auto& hits : answer.instances) FillInstance(hits, detail, response->add_instances());
  response->set_log_seq(answer.log_seq);
  for (const auto& id : answer.degraded) response->add_degraded(WireText(id));
  response->set_context_known(answer.context_known);
  if (!detail) return;
  response->set_hint(WireText(answer.hint));
  for (const auto& key : answer.nearest_contexts) {
    auto* name = response->add_nearest_contexts();
    name->set_model_name(WireText(key.model_name));
    name->set_lora_name(WireText(key.lora_name));
    name->set_block_size(key.block_size);
    name->set_tenant_id(WireText(key.tenant_id));
  }
}

QueryAnswer ToQueryAnswer(const v1::QueryResponse& response) {
  QueryAnswer answer;
  answer.instances.reserve(static_cast<std::size_t>(response.instances_size()));
  for (const auto& in : response.instances()) {
    InstanceHits hits;
    hits.instance_id = in.instance_id();
    hits.best = {in.device(), in.cpu_local(), in.cpu_share(), in.disk()};
    for (const auto& [rank, counts] : in.rank_matches()) {
      hits.ranks[rank] = {counts.device(), counts.cpu_local(), counts.cpu_share(), counts.disk()};
    }
    if (!in.stream_state().empty()) hits.stream_state = ParseStreamState(in.stream_state());
    answer.instances.push_back(std::move(hits));
  }
  answer.log_seq = response.log_seq();
  answer.degraded.assign(response.degraded().begin(), response.degraded().end());
  answer.context_known = response.context_known();
  answer.hint = response.hint();
  for (const auto& name : response.nearest_contexts()) {
    answer.nearest_contexts.push_back(
        {name.tenant_id(), name.model_name(), name.lora_name(), name.block_size()});
  }
  return answer;
}

}  // namespace conductor::rpc
