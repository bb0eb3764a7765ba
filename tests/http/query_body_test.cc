// What reaches Service from query, register and unregister bodies.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "http/request_bodies.h"

namespace conductor::http {
namespace {

using nlohmann::json;

std::string Msgpack(const json& body) {
  const auto bytes = json::to_msgpack(body);
  return {bytes.begin(), bytes.end()};
}

class BothFormatsTest : public ::testing::TestWithParam<BodyFormat> {
 protected:
  std::string Body(const json& body) const {
    return GetParam() == BodyFormat::kJson ? body.dump() : Msgpack(body);
  }
  QueryBody Parsed(const json& body, QueryKind kind = QueryKind::kByTokens) const {
    auto query = ParseQuery(Body(body), GetParam(), kind, {});
    EXPECT_TRUE(query) << query.error().message;
    return query.value_or(QueryBody{});
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, BothFormatsTest,
                         ::testing::Values(BodyFormat::kJson, BodyFormat::kMsgpack),
                         [](const auto& info) {
                           return info.param == BodyFormat::kJson ? "Json" : "Msgpack";
                         });

TEST_P(BothFormatsTest, MinimalQueryGetsTheDefaults) {
  const auto query = Parsed({{"model", "m"}, {"block_size", 16}, {"token_ids", {1, -2, 3}}});
  EXPECT_EQ(query.context, (ContextKey{"default", "m", "", 16}));
  EXPECT_EQ(query.token_ids, (std::vector<std::int32_t>{1, -2, 3}));
  EXPECT_EQ(query.options.top_k, 0u);
  EXPECT_FALSE(query.options.detail);
}

TEST_P(BothFormatsTest, EveryFieldOfAQueryArrives) {
  const auto query = Parsed({{"model", "m"},
                             {"block_size", 4},
                             {"token_ids", {2'147'483'647, -2'147'483'648}},
                             {"tenant_id", "t"},
                             {"lora_name", "l"},
                             {"cache_salt", "s"},
                             {"instance_id", "i"},
                             {"extra_keys", {nullptr, {"img", 7, {"id", -3}}}},
                             {"top_k", 5},
                             {"min_tokens", 6},
                             {"detail", true}});
  EXPECT_EQ(query.context, (ContextKey{"t", "m", "l", 4}));
  EXPECT_EQ(query.token_ids, (std::vector<std::int32_t>{2'147'483'647, -2'147'483'648}));
  EXPECT_EQ(query.cache_salt, "s");
  EXPECT_EQ(query.options.instance_id, "i");
  EXPECT_EQ(query.options.top_k, 5u);
  EXPECT_EQ(query.options.min_tokens, 6u);
  EXPECT_TRUE(query.options.detail);
  ASSERT_EQ(query.extra_keys.size(), 2u);
  EXPECT_TRUE(query.extra_keys[0].empty());
  const ExtraKeys expected = {{ExtraKey::Kind::kText, "img", 0},
                              {ExtraKey::Kind::kInteger, "", 7},
                              {ExtraKey::Kind::kItem, "id", -3}};
  EXPECT_EQ(query.extra_keys[1], expected);
}

TEST_P(BothFormatsTest, NullOptionalFieldsAreAbsentAndEmptyTenantIsDefault) {
  const auto query = Parsed({{"model", "m"},
                             {"block_size", 4},
                             {"token_ids", json::array()},
                             {"tenant_id", ""},
                             {"lora_name", nullptr},
                             {"top_k", nullptr},
                             {"detail", nullptr}});
  EXPECT_EQ(query.context, (ContextKey{"default", "m", "", 4}));
}

TEST_P(BothFormatsTest, HashesAreTheSame64BitsHoweverSpelled) {
  for (const char* field : {"seq_hashes", "block_hash"}) {
    const auto query = Parsed({{"model", "m"},
                               {"block_size", 4},
                               {field,
                                {18'446'744'073'709'551'615u, -1, "18446744073709551615", "-1",
                                 9'007'199'254'740'993, "0"}}},
                              QueryKind::kByHash);
    const std::uint64_t all = ~std::uint64_t{0};
    EXPECT_EQ(query.hashes,
              (std::vector<std::uint64_t>{all, all, all, all, 9'007'199'254'740'993u, 0}));
  }
}

TEST_P(BothFormatsTest, RegistrationArrivesFieldByField) {
  const json body = {{"endpoint", "tcp://h:1"},
                     {"type", "vLLM"},
                     {"modelname", "m"},
                     {"instance_id", "i"},
                     {"block_size", 16},
                     {"dp_rank", 0},
                     {"hash_profile",
                      {{"strategy", "vllm_v1"},
                       {"algorithm", "sha256"},
                       {"python_hash_seed", "0"},
                       {"index_projection", "low64_be"}}},
                     {"replay_endpoint", "tcp://h:2"},
                     {"lora_name", "l"},
                     {"tenant_id", "t"},
                     {"cache_group", nullptr},
                     {"topic", ""},
                     {"snapshot_endpoint", "tcp://h:3"},
                     {"pool_parts", {{"tp", 8}, {"kv", 2}}}};
  const auto request = ParseRegistration(Body(body), GetParam());
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->endpoint, "tcp://h:1");
  EXPECT_EQ(request->type, "vLLM");
  EXPECT_EQ(request->modelname, "m");
  EXPECT_EQ(request->instance_id, "i");
  EXPECT_EQ(request->block_size, 16);
  EXPECT_EQ(request->dp_rank, 0);
  ASSERT_TRUE(request->hash_profile);
  EXPECT_EQ(request->hash_profile->strategy, "vllm_v1");
  EXPECT_EQ(request->hash_profile->algorithm, "sha256");
  EXPECT_EQ(request->hash_profile->python_hash_seed, "0");
  EXPECT_EQ(request->hash_profile->index_projection, "low64_be");
  EXPECT_EQ(request->replay_endpoint, "tcp://h:2");
  EXPECT_EQ(request->lora_name, "l");
  EXPECT_EQ(request->tenant_id, "t");
  EXPECT_EQ(request->cache_group, std::nullopt);
  EXPECT_EQ(request->topic, "");
  EXPECT_EQ(request->snapshot_endpoint, "tcp://h:3");
  EXPECT_EQ(request->pool_parts, (std::map<std::string, std::int64_t>{{"kv", 2}, {"tp", 8}}));
}

TEST_P(BothFormatsTest, AbsentRegistrationFieldsStayAbsent) {
  const auto request = ParseRegistration(Body(json::object()), GetParam());
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->endpoint);
  EXPECT_FALSE(request->block_size);
  EXPECT_FALSE(request->hash_profile);
  EXPECT_FALSE(request->pool_parts);
}

TEST_P(BothFormatsTest, UnregisterTakesTheFieldsOfOlderClients) {
  const auto key = ParseUnregistration(Body({{"instance_id", "i"},
                                             {"dp_rank", 3},
                                             {"type", "vLLM"},
                                             {"modelname", "m"},
                                             {"lora_name", nullptr},
                                             {"block_size", 16}}),
                                       GetParam());
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(*key, (ServiceKey{"i", "default", 3}));
}

TEST(MsgpackQueryTest, BinaryTokensAreLittleEndianInt32) {
  const json body = {
      {"model", "m"},
      {"block_size", 4},
      {"token_ids", json::binary({1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x80})}};
  const auto query = ParseQuery(Msgpack(body), BodyFormat::kMsgpack, QueryKind::kByTokens, {});
  ASSERT_TRUE(query) << query.error().message;
  EXPECT_EQ(query->token_ids, (std::vector<std::int32_t>{1, -1, INT32_MIN}));
}

TEST(MsgpackQueryTest, BinaryHashesAreLittleEndianU64) {
  const json body = {
      {"model", "m"}, {"block_size", 4}, {"seq_hashes", json::binary({1, 0, 0, 0, 0, 0, 0, 0x80})}};
  const auto query = ParseQuery(Msgpack(body), BodyFormat::kMsgpack, QueryKind::kByHash, {});
  ASSERT_TRUE(query) << query.error().message;
  EXPECT_EQ(query->hashes, (std::vector<std::uint64_t>{0x8000'0000'0000'0001u}));
}

TEST(MsgpackQueryTest, BytesOfAnExtraKeyArriveRaw) {
  const json body = {{"model", "m"},
                     {"block_size", 4},
                     {"token_ids", {1}},
                     {"extra_keys", json::array({json::array({json::binary({1, 2})})})}};
  const auto query = ParseQuery(Msgpack(body), BodyFormat::kMsgpack, QueryKind::kByTokens, {});
  ASSERT_TRUE(query) << query.error().message;
  const ExtraKeys expected = {{ExtraKey::Kind::kBytes, "\x01\x02", 0}};
  EXPECT_EQ(query->extra_keys.at(0), expected);
}

}  // namespace
}  // namespace conductor::http
