// The exact shapes of the contract.
#include "http/answers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace conductor::http {
namespace {

using Json = nlohmann::ordered_json;

QueryAnswer TwoInstances() {
  QueryAnswer answer;
  answer.log_seq = 7;
  InstanceHits first;
  first.instance_id = "z-first";
  first.best = {8, 12, 12, 16};
  first.ranks = {{0, {8, 8, 8, 8}}, {1, {4, 12, 12, 16}}};
  first.stream_state = StreamState::kDegraded;
  InstanceHits second;
  second.instance_id = "a-second";
  second.ranks = {{10, {}}};
  answer.instances = {first, second};
  return answer;
}

constexpr std::string_view kTwoInstances =
    R"({"instances":{"z-first":{"longest_matched":16,"dp":{"0":8,"1":4},)"
    R"("rank_matches":{"0":{"device":8,"cpu_local":8,"cpu_share":8,"disk":8},)"
    R"("1":{"device":4,"cpu_local":12,"cpu_share":12,"disk":16}},)"
    R"("device":8,"cpu_local":12,"cpu_share":12,"disk":16},)"
    R"("a-second":{"longest_matched":0,"dp":{"10":0},)"
    R"("rank_matches":{"10":{"device":0,"cpu_local":0,"cpu_share":0,"disk":0}},)"
    R"("device":0,"cpu_local":0,"cpu_share":0,"disk":0}}})";

TEST(AnswersTest, QueryAnswerHasTheExactShapeInTheOrderOfTheAnswer) {
  EXPECT_EQ(WriteQueryAnswer(TwoInstances(), false, BodyFormat::kJson), kTwoInstances);
  const std::string packed = WriteQueryAnswer(TwoInstances(), false, BodyFormat::kMsgpack);
  EXPECT_EQ(Json::from_msgpack(packed).dump(), kTwoInstances);
}

TEST(AnswersTest, DetailAddsPositionAndStreamStates) {
  for (const BodyFormat format : {BodyFormat::kJson, BodyFormat::kMsgpack}) {
    const std::string body = WriteQueryAnswer(TwoInstances(), true, format);
    const Json json = format == BodyFormat::kJson ? Json::parse(body) : Json::from_msgpack(body);
    EXPECT_EQ(json["log_seq"], 7);
    EXPECT_EQ(json["instances"]["z-first"]["stream_state"], "degraded");
    EXPECT_EQ(json["instances"]["a-second"]["stream_state"], "live");
    EXPECT_FALSE(json.contains("hint"));
    EXPECT_FALSE(json.contains("nearest_contexts"));
  }
}

TEST(AnswersTest, HintAndNearestContextsComeWithDetailOnly) {
  QueryAnswer answer;
  answer.hint = "unknown context";
  answer.nearest_contexts = {{"default", "m", "l", 16}};
  EXPECT_EQ(WriteQueryAnswer(answer, false, BodyFormat::kJson), R"({"instances":{}})");
  EXPECT_EQ(WriteQueryAnswer(answer, true, BodyFormat::kJson),
            R"({"instances":{},"log_seq":0,"hint":"unknown context","nearest_contexts":)"
            R"([{"model_name":"m","lora_name":"l","block_size":16,"tenant_id":"default"}]})");
}

ServiceView OneService() {
  ServiceView view;
  view.registration.instance_id = "vllm-0";
  view.registration.endpoint = "tcp://h:1";
  view.registration.model_name = "m";
  view.registration.block_size = 16;
  view.registration.dp_rank = 1;
  view.registration.hash_profile.root_digest.fill(0xab);
  return view;
}

TEST(AnswersTest, ServicesHaveTheExactShape) {
  std::string digest;
  for (int i = 0; i < 32; ++i) digest += "ab";
  const std::string expected =
      R"({"count":1,"services":[{"Endpoint":"tcp://h:1","ReplayEndpoint":"","Type":"vLLM",)"
      R"("ModelName":"m","LoraName":"","TenantID":"default","InstanceID":"vllm-0",)"
      R"("BlockSize":16,"DPRank":1,"CacheGroup":null,"HashProfile":{"strategy":"vllm_v1",)"
      R"("algorithm":"sha256_cbor","python_hash_seed":"0","root_digest":")" +
      digest + R"(","index_projection":"low64_be"}}]})";
  EXPECT_EQ(WriteServices({OneService()}, false, BodyFormat::kJson), expected);
  EXPECT_EQ(Json::from_msgpack(WriteServices({OneService()}, false, BodyFormat::kMsgpack)).dump(),
            expected);
  EXPECT_EQ(WriteServices({}, false, BodyFormat::kJson), R"({"count":0,"services":[]})");
}

TEST(AnswersTest, ServiceDetailShowsTheStream) {
  ServiceView view = OneService();
  view.registration.has_cache_group = true;
  view.registration.has_topic = true;
  view.registration.topic = "kv";
  view.registration.pool_parts = {{"tp", 8}};
  view.stream = 3;
  view.status.state = StreamState::kDegraded;
  view.status.last_frame_age_ms = 12;
  view.status.last_error = "no reply";
  view.status.counters = {{"frames_total", 9}};
  view.epoch = 2;
  view.last_seq = 18'446'744'073'709'551'615u;
  view.lost_ranges = {{3, 5}, {9, 9}};
  view.hash_check = "verified";
  view.counters = {{"stored_total", 4}};
  view.blocks_by_tier[0] = 11;
  view.blocks_by_tier[3] = 2;
  for (const BodyFormat format : {BodyFormat::kJson, BodyFormat::kMsgpack}) {
    const std::string body = WriteServices({view}, true, format);
    const Json json =
        (format == BodyFormat::kJson ? Json::parse(body) : Json::from_msgpack(body))["services"][0];
    EXPECT_EQ(json["CacheGroup"], 0);
    EXPECT_EQ(json["StreamState"], "degraded");
    EXPECT_EQ(json["Epoch"], 2);
    EXPECT_EQ(json["LastSeq"], 18'446'744'073'709'551'615u);
    EXPECT_TRUE(json["HistoryFrom"].is_null());
    EXPECT_EQ(json["LostRanges"].dump(), "[[3,5],[9,9]]");
    EXPECT_EQ(json["HashCheck"], "verified");
    EXPECT_EQ(json["LastFrameAgeMs"], 12);
    EXPECT_TRUE(json["DisconnectedForMs"].is_null());
    EXPECT_EQ(json["LastError"], "no reply");
    EXPECT_EQ(json["Counters"].dump(), R"({"frames_total":9,"stored_total":4})");
    EXPECT_EQ(json["Blocks"].dump(), R"({"device":11,"cpu_local":0,"cpu_share":0,"disk":2})");
    EXPECT_EQ(json["Topic"], "kv");
    EXPECT_EQ(json["PoolParts"].dump(), R"({"tp":8})");
  }
}

TEST(AnswersTest, GlobalViewHasTheExactShape) {
  ContextView context;
  context.key = {"default", "m", "", 16};
  context.hash_profile.strategy = HashStrategy::kSglang;
  context.hash_profile.algorithm = HashAlgorithm::kSha256Raw;
  context.prefix_count = 99;
  context.instances = {{"a", {0, 1}}, {"b", {}}};
  EXPECT_EQ(WriteGlobalView({context}, BodyFormat::kJson),
            R"({"context_count":1,"contexts":[{"model_name":"m","lora_name":"","block_size":16,)"
            R"("tenant_id":"default","prefix_count":99,"hash_profile":{"strategy":"sglang",)"
            R"("algorithm":"sha256_raw","python_hash_seed":"0","root_digest":")" +
                std::string(64, '0') +
                R"(","index_projection":"first64_be"},"instances":{"a":[0,1],"b":[]}}]})");
}

TEST(AnswersTest, ErrorHasFieldAndIndexOnlyWhereTheyApply) {
  EXPECT_EQ(WriteError({ErrorCode::kUnavailable, "later", "", "", -1}, BodyFormat::kJson),
            R"({"error":"later","reason":"not_ready"})");
  EXPECT_EQ(WriteError({ErrorCode::kInvalidArgument, "bad", "out_of_range", "token_ids", 0},
                       BodyFormat::kJson),
            R"({"error":"bad","reason":"out_of_range","field":"token_ids","index":0})");
}

}  // namespace
}  // namespace conductor::http
