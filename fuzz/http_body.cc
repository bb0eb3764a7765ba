// Bodies of /query, /query_by_hash, /register and /unregister, in both formats.
// Property: a body is refused by name, or read; the same body in the other format has the same
// fate: equal values, or the same reason, field and index; a registration that is accepted fits
// the log; every refusal is answered by a readable body.
//
// Input: what it is, then the body.
#include "fuzz/fact_text.h"
#include "fuzz/logged_record.h"
#include "fuzz/other_format.h"
#include "fuzz/target.h"
#include "http/answers.h"
#include "http/request_bodies.h"

namespace conductor::fuzz {
namespace {

using http::BodyFormat;

// The lowest bits of the first byte.
enum BodyKind : std::uint8_t { kQuery = 0, kQueryByHash = 1, kRegister = 2, kUnregister = 3 };
constexpr std::uint8_t kKindBits = 3;
constexpr std::uint8_t kMsgpackFlag = 4;
constexpr std::uint8_t kSmallLimitsFlag = 8;

class NoSink final : public http::BodySink {
 public:
  bool OnEvent(const http::BodyEvent&, Error*) override { return true; }
};

// A refusal is named, and its answer is a body that a strict client can read.
void RequireAnswer(const Error& error) {
  Require(!error.message.empty() && !error.reason.empty(), "a refusal is named");
  for (const BodyFormat format : {BodyFormat::kJson, BodyFormat::kMsgpack}) {
    NoSink sink;
    const auto read = http::ReadBody(http::WriteError(error, format), format, sink);
    Require(read.has_value(), "the answer of a refusal can be read",
            read ? "" : read.error().message + " in the answer to: " + error.message);
  }
}

std::string Quoted(const std::string& text) {
  return std::to_string(text.size()) + ":" + text + " ";
}

std::string Meaning(const http::QueryBody& query) {
  std::string text = Quoted(query.context.tenant_id) + Quoted(query.context.model_name) +
                     Quoted(query.context.lora_name) + Quoted(query.cache_salt) +
                     Quoted(query.options.instance_id);
  for (const std::uint64_t number :
       {std::uint64_t{query.context.block_size}, std::uint64_t{query.options.top_k},
        query.options.min_tokens, std::uint64_t{query.options.detail},
        std::uint64_t{query.token_ids.size()}, std::uint64_t{query.hashes.size()}}) {
    text += std::to_string(number) + " ";
  }
  for (const std::int32_t token : query.token_ids) text += std::to_string(token) + " ";
  for (const std::uint64_t hash : query.hashes) text += std::to_string(hash) + " ";
  for (const ExtraKeys& keys : query.extra_keys) {
    text += "[";
    for (const ExtraKey& key : keys) {
      text += std::to_string(static_cast<int>(key.kind)) + " " + Quoted(key.text) +
              std::to_string(key.integer) + " ";
    }
    text += "]";
  }
  return text;
}

template <typename Value>
std::string Optional(const std::optional<Value>& value) {
  if (!value) return "- ";
  if constexpr (std::is_same_v<Value, std::string>) {
    return Quoted(*value);
  } else {
    return std::to_string(*value) + " ";
  }
}

std::string Meaning(const RegistrationRequest& r) {
  std::string text;
  for (const auto* field : {&r.instance_id, &r.endpoint, &r.type, &r.modelname, &r.replay_endpoint,
                            &r.lora_name, &r.tenant_id, &r.topic, &r.snapshot_endpoint}) {
    text += Optional(*field);
  }
  for (const auto* field : {&r.block_size, &r.dp_rank, &r.cache_group}) text += Optional(*field);
  if (r.hash_profile) {
    const auto& p = *r.hash_profile;
    text += "profile ";
    for (const auto* field :
         {&p.strategy, &p.algorithm, &p.python_hash_seed, &p.index_projection}) {
      text += Optional(*field);
    }
  }
  if (r.pool_parts) {
    text += "parts ";
    for (const auto& [name, total] : *r.pool_parts) {
      text += Quoted(name) + std::to_string(total) + " ";
    }
  }
  // What the domain makes of it.
  const auto registration = MakeRegistration(r);
  if (registration) {
    RequireLoggable(*registration);
    return text + Text(*registration);
  }
  const Error& error = registration.error();
  RequireAnswer(error);
  return text + error.reason + " " + error.field;
}

std::string Meaning(const ServiceKey& key) {
  return Quoted(key.instance_id) + Quoted(key.tenant_id) + std::to_string(key.dp_rank);
}

// Either a value's meaning, or a refusal's stable words.
struct Fate {
  bool accepted = false;
  std::string text;
  std::string reason;
};

template <typename Value>
Fate FateOf(const Result<Value>& result) {
  if (result) return {true, Meaning(*result), ""};
  const Error& error = result.error();
  RequireAnswer(error);
  return {false, error.reason + " " + error.field + " " + std::to_string(error.index),
          error.reason};
}

Fate Parse(std::string_view body, std::uint8_t head, BodyFormat format) {
  Limits limits;
  if ((head & kSmallLimitsFlag) != 0) limits.tokens_max = 4;
  switch (head & kKindBits) {
    case kQuery:
      return FateOf(http::ParseQuery(body, format, http::QueryKind::kByTokens, limits));
    case kQueryByHash:
      return FateOf(http::ParseQuery(body, format, http::QueryKind::kByHash, limits));
    case kRegister:
      return FateOf(http::ParseRegistration(body, format));
    default:
      return FateOf(http::ParseUnregistration(body, format));
  }
}

}  // namespace

void RunInput(Bytes input) {
  InputReader reader(input);
  const std::uint8_t head = reader.Byte();
  const std::string_view body = AsText(reader.rest());
  const bool msgpack = (head & kMsgpackFlag) != 0;
  const BodyFormat format = msgpack ? BodyFormat::kMsgpack : BodyFormat::kJson;
  const Fate fate = Parse(body, head, format);
  const Rewritten rewritten = InOtherFormat(body, format);
  if (!rewritten.readable) {
    Require(!fate.accepted, "a damaged body is refused");
    return;
  }
  Require(fate.reason != "invalid_json" && fate.reason != "invalid_msgpack",
          "a whole body is not called damaged", fate.text);
  if (!rewritten.body) return;
  const Fate other =
      Parse(*rewritten.body, head, msgpack ? BodyFormat::kJson : BodyFormat::kMsgpack);
  Require(fate.accepted == other.accepted, "both formats accept the same",
          fate.text + "\n" + other.text);
  // Msgpack says the size of an array first, so that it may be too large before it is wrong.
  if (!fate.accepted && (fate.reason == "too_large" || other.reason == "too_large")) return;
  Require(fate.text == other.text, "both formats mean the same", fate.text + "\n" + other.text);
}

std::vector<std::string> Seeds() {
  const std::vector<std::pair<BodyKind, std::string>> bodies = {
      {kQuery, R"({"model":"m","block_size":16,"token_ids":[1,-2,2147483647]})"},
      {kQuery,
       R"({"model":"m","block_size":4,"token_ids":[1,2,3,4,5],"tenant_id":"t","lora_name":"l",)"
       R"("cache_salt":"pepper","instance_id":"i","extra_keys":[null,["img",7,["id",-3]]],)"
       R"("top_k":5,"min_tokens":6,"detail":true})"},
      {kQuery, R"({"model":"m","block_size":0,"token_ids":[2147483648],"nope":{}})"},
      {kQueryByHash,
       R"({"model":"m","block_size":4,"seq_hashes":[18446744073709551615,-1,"-1","7"]})"},
      {kQueryByHash, R"({"model":"m","block_size":4,"block_hash":[1,2],"top_k":null})"},
      {kRegister,
       R"({"endpoint":"tcp://10.0.0.1:5557","type":"vLLM","modelname":"m","instance_id":"i",)"
       R"("block_size":16,"dp_rank":0,"replay_endpoint":"tcp://10.0.0.1:5558","topic":"kv",)"
       R"("lora_name":"l","tenant_id":"t","cache_group":0,"hash_profile":{"strategy":"vllm_v1",)"
       R"("algorithm":"sha256_cbor","python_hash_seed":"0","index_projection":"low64_be"}})"},
      {kRegister,
       R"({"endpoint":"ipc://s","type":"Mooncake","modelname":"m","block_size":16,"dp_rank":0,)"
       R"("pool_parts":{"tp":8,"kv":2},"hash_profile":{"strategy":"sglang","algorithm":)"
       R"("sha256_raw","index_projection":"first64_be"}})"},
      {kUnregister, R"({"instance_id":"i","dp_rank":0,"tenant_id":"t","type":"vLLM"})"},
  };
  std::vector<std::string> seeds;
  for (const auto& [kind, body] : bodies) {
    const auto msgpack = InOtherFormat(body, BodyFormat::kJson).body;
    Require(msgpack.has_value(), "a seed can be rewritten");
    for (const std::uint8_t limits : {std::uint8_t{0}, kSmallLimitsFlag}) {
      seeds.push_back(std::string(1, static_cast<char>(kind | limits)) + body);
      seeds.push_back(std::string(1, static_cast<char>(kind | limits | kMsgpackFlag)) + *msgpack);
    }
  }
  return seeds;
}

}  // namespace conductor::fuzz
