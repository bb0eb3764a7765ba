// What crosses the wire comes back the same; what does not fit is refused with its field.
#include "rpc/convert.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/allocation_counter.h"

#include <limits>

namespace conductor::rpc {
namespace {

v1::QueryRequest MakeRequest() {
  v1::QueryRequest request;
  request.set_model("m");
  request.set_block_size(16);
  return request;
}

void ExpectRefused(const v1::QueryRequest& request, const char* reason, const char* field,
                   long long index = -1) {
  const auto query = ToPromptQuery(request, Limits{});
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().reason, reason);
  EXPECT_EQ(query.error().field, field);
  EXPECT_EQ(query.error().index, index);
}

TEST(ConvertTest, APromptQueryComesBackTheSame) {
  const std::vector<std::int32_t> tokens = {0, -1, std::numeric_limits<std::int32_t>::max(),
                                            std::numeric_limits<std::int32_t>::min()};
  PromptQuery query;
  query.context = {"t", "m", "l", 16};
  query.token_ids = tokens;
  query.cache_salt = "s";
  query.extra_keys = {
      {{ExtraKey::Kind::kText, "x", 0}, {ExtraKey::Kind::kInteger, "", -5}},
      {},
      {{ExtraKey::Kind::kItem, "img", -3}, {ExtraKey::Kind::kBytes, std::string(32, '\xFF'), 0}}};
  query.options = {"i", 3, 4, true};
  v1::QueryRequest request;
  FillQueryRequest(query, &request);
  const auto back = ToPromptQuery(request, Limits{});
  ASSERT_TRUE(back);
  EXPECT_EQ(back->context, query.context);
  EXPECT_TRUE(
      std::equal(back->token_ids.begin(), back->token_ids.end(), tokens.begin(), tokens.end()));
  EXPECT_EQ(back->cache_salt, "s");
  EXPECT_EQ(back->extra_keys, query.extra_keys);
  EXPECT_EQ(back->options.instance_id, "i");
  EXPECT_EQ(back->options.top_k, 3u);
  EXPECT_EQ(back->options.min_tokens, 4u);
  EXPECT_TRUE(back->options.detail);
}

TEST(ConvertTest, TokensTravelAsPackedFixedWidth) {
  const std::vector<std::int32_t> tokens(1'000, -1);  // ten bytes each as a varint
  PromptQuery query;
  query.context = {"", "m", "", 16};
  query.token_ids = tokens;
  v1::QueryRequest request;
  FillQueryRequest(query, &request);
  EXPECT_LT(request.ByteSizeLong(), 4'000u + 32);
}

TEST(ConvertTest, AHashQueryComesBackTheSame) {
  const std::vector<std::uint64_t> hashes = {0, 1, ~std::uint64_t{0}};
  HashQuery query{.context = {"t", "m", "", 1}, .hashes = hashes, .options = {}};
  v1::QueryByHashRequest request;
  FillQueryByHashRequest(query, &request);
  const auto back = ToHashQuery(request, Limits{});
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::equal(back->hashes.begin(), back->hashes.end(), hashes.begin(), hashes.end()));
}

TEST(ConvertTest, AnEmptyTenantIsTheDefaultOne) {
  EXPECT_EQ(ToPromptQuery(MakeRequest(), Limits{})->context.tenant_id, "default");
}

TEST(ConvertTest, QueriesThatDoNotFitAreRefused) {
  auto request = MakeRequest();
  request.clear_model();
  ExpectRefused(request, "missing", "model");
  for (std::int64_t size : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{kBlockSizeMax} + 1,
                            std::numeric_limits<std::int64_t>::max()}) {
    request = MakeRequest();
    request.set_block_size(size);
    ExpectRefused(request, "out_of_range", "block_size");
  }
  request = MakeRequest();
  request.add_extra_keys();
  request.add_extra_keys()->add_keys();
  ExpectRefused(request, "invalid_value", "extra_keys", 1);
  request = MakeRequest();
  request.add_extra_keys()->add_keys()->set_embeds_digest("short");
  ExpectRefused(request, "invalid_value", "extra_keys", 0);
}

TEST(ConvertTest, TooManyTokensAreTooLarge) {
  auto request = MakeRequest();
  request.mutable_token_ids()->Resize(11, 0);
  Limits limits;
  limits.tokens_max = 10;
  const auto query = ToPromptQuery(request, limits);
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(query.error().reason, "too_large");
  EXPECT_EQ(query.error().field, "token_ids");
}

TEST(ConvertTest, ARegistrationComesBackTheSame) {
  RegistrationRequest in;
  in.instance_id = "i";
  in.endpoint = "tcp://a:1";
  in.type = "vLLM";
  in.modelname = "m";
  in.replay_endpoint = "tcp://a:2";
  in.lora_name = "l";
  in.tenant_id = "t";
  in.topic = "";
  in.snapshot_endpoint = "tcp://a:3";
  in.block_size = std::numeric_limits<std::int64_t>::min();
  in.dp_rank = 2;
  in.cache_group = 0;
  in.hash_profile.emplace();
  in.hash_profile->strategy = "vllm_v1";
  in.hash_profile->python_hash_seed = "00";
  in.pool_parts = {{"tp", 8}, {"kv", -1}};
  v1::RegisterRequest request;
  FillRegisterRequest(in, &request);
  const RegistrationRequest out = ToRegistrationRequest(request);
  EXPECT_EQ(out.instance_id, in.instance_id);
  EXPECT_EQ(out.endpoint, in.endpoint);
  EXPECT_EQ(out.type, in.type);
  EXPECT_EQ(out.modelname, in.modelname);
  EXPECT_EQ(out.replay_endpoint, in.replay_endpoint);
  EXPECT_EQ(out.lora_name, in.lora_name);
  EXPECT_EQ(out.tenant_id, in.tenant_id);
  EXPECT_EQ(out.topic, in.topic);
  EXPECT_EQ(out.snapshot_endpoint, in.snapshot_endpoint);
  EXPECT_EQ(out.block_size, in.block_size);
  EXPECT_EQ(out.dp_rank, in.dp_rank);
  EXPECT_EQ(out.cache_group, in.cache_group);
  EXPECT_EQ(out.hash_profile->strategy, "vllm_v1");
  EXPECT_EQ(out.hash_profile->algorithm, std::nullopt);
  EXPECT_EQ(out.hash_profile->python_hash_seed, "00");
  EXPECT_EQ(out.pool_parts, in.pool_parts);
}

TEST(ConvertTest, AbsentFieldsStayAbsent) {
  v1::RegisterRequest request;
  FillRegisterRequest({}, &request);
  EXPECT_EQ(request.ByteSizeLong(), 0u);
  const RegistrationRequest out = ToRegistrationRequest(request);
  EXPECT_FALSE(out.instance_id || out.topic || out.block_size || out.cache_group ||
               out.hash_profile || out.pool_parts);
}

TEST(ConvertTest, AServiceKeyHasARankThatFits) {
  v1::UnregisterRequest request;
  EXPECT_EQ(ToServiceKey(request).error().field, "instance_id");
  request.set_instance_id("i");
  EXPECT_EQ(*ToServiceKey(request), (ServiceKey{"i", "default", 0}));
  for (std::int64_t rank : {std::int64_t{-1}, std::int64_t{kDpRankMax} + 1}) {
    request.set_dp_rank(rank);
    EXPECT_EQ(ToServiceKey(request).error().field, "dp_rank");
    EXPECT_EQ(ToServiceKey(request).error().reason, "out_of_range");
  }
}

TEST(ConvertTest, AnswersMirrorTheHttpShape) {
  QueryAnswer answer;
  answer.instances.push_back(
      {"a", {3, 4, 5, 6}, {{0, {3, 4, 5, 6}}, {7, {0, 0, 1, 1}}}, StreamState::kCatchingUp});
  answer.log_seq = 9;
  answer.degraded = {"a"};
  answer.hint = "why";
  v1::QueryResponse plain;
  FillQueryResponse(answer, false, &plain);
  ASSERT_EQ(plain.instances_size(), 1);
  EXPECT_EQ(plain.instances(0).longest_matched(), 6u);
  EXPECT_EQ(plain.instances(0).dp().at(0), 3u);
  EXPECT_EQ(plain.instances(0).rank_matches().at(7).disk(), 1u);
  EXPECT_EQ(plain.instances(0).stream_state(), "");
  EXPECT_EQ(plain.hint(), "");
  v1::QueryResponse detailed;
  FillQueryResponse(answer, true, &detailed);
  EXPECT_EQ(detailed.instances(0).stream_state(), "catching_up");
  EXPECT_EQ(detailed.hint(), "why");
  const QueryAnswer back = ToQueryAnswer(detailed);
  EXPECT_EQ(back.instances[0].ranks, answer.instances[0].ranks);
  EXPECT_EQ(back.instances[0].best, answer.instances[0].best);
  EXPECT_EQ(back.instances[0].stream_state, StreamState::kCatchingUp);
  EXPECT_EQ(back.degraded, answer.degraded);
}

TEST(ConvertTest, RequestBytesOfTheClientAreThoseOfTheMessage) {
  PromptQuery query;
  query.context = {"t", "m", "l", 16};
  query.cache_salt = "s";
  query.extra_keys = {{}, {{ExtraKey::Kind::kText, "k", 0}, {ExtraKey::Kind::kItem, "i", -3}}};
  query.options = {.instance_id = "i", .top_k = 2, .min_tokens = 3, .detail = true};
  for (const std::size_t count : {0, 1, 31, 32, 5'000}) {
    std::vector<std::int32_t> tokens(count);
    for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::int32_t>(i * 7 - 9);
    query.token_ids = tokens;
    v1::QueryRequest message, parsed;
    FillQueryRequest(query, &message);
    std::string bytes = "prefix";
    AppendQueryRequest(query, &bytes);
    ASSERT_TRUE(parsed.ParseFromString(bytes.substr(6)));
    EXPECT_EQ(parsed.SerializeAsString(), message.SerializeAsString()) << count;
  }
}

TEST(ConvertTest, RanksOfAnAnswerAreInOrder) {
  v1::QueryResponse response;
  auto& ranks = *response.add_instances()->mutable_rank_matches();
  for (const std::uint32_t rank : {40u, 3u, 17u, 0u, 1'000u, 8u}) ranks[rank].set_device(rank);
  std::vector<std::uint32_t> seen;
  const QueryAnswer answer = ToQueryAnswer(response);
  for (const auto& [rank, counts] : answer.instances[0].ranks) {
    seen.push_back(rank);
    EXPECT_EQ(counts.device, rank);
  }
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{0, 3, 8, 17, 40, 1'000}));
}

TEST(ConvertTest, TokensOfARequestAreBorrowedAndNothingGrowsWithThem) {
  const auto count = [](int tokens) {
    v1::QueryRequest request;
    request.set_model("m");
    request.set_block_size(16);
    for (int i = 0; i < tokens; ++i) request.add_token_ids(i);
    const std::int32_t* data = nullptr;
    const std::size_t allocations = CountAllocations([&] {
      const auto query = ToPromptQuery(request, {});
      ASSERT_TRUE(query);
      data = query->token_ids.data();
    });
    EXPECT_EQ(data, request.token_ids().data());
    return allocations;
  };
  EXPECT_EQ(count(100'000), count(16));
}

TEST(ConvertTest, UnknownWordsOfANewerServerAreErrors) {
  v1::ServiceInfo info;
  info.set_type("Later");
  EXPECT_EQ(ToServiceView(info).error().code, ErrorCode::kInternal);
  info.set_type("vLLM");
  info.mutable_hash_profile()->set_strategy("vllm_v9");
  EXPECT_NE(ToServiceView(info).error().message.find("vllm_v9"), std::string::npos);
  info.mutable_hash_profile()->set_strategy("vllm_v1");
  info.mutable_hash_profile()->set_algorithm("sha256");
  info.mutable_hash_profile()->set_root_digest("zz");
  EXPECT_NE(ToServiceView(info).error().message.find("root_digest"), std::string::npos);
  v1::ContextInfo context;
  EXPECT_EQ(ToContextView(context).error().code, ErrorCode::kInternal);
  EXPECT_EQ(ParseStreamState("reborn"), StreamState::kDegraded);
}

TEST(ConvertTest, TextThatIsNotUtf8IsReplacedNotRefused) {
  EXPECT_EQ(WireText("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(WireText("a\xFF"
                     "b"),
            "a\xEF\xBF\xBD"
            "b");
}

TEST(ConvertStatusTest, WhatIsNotKnownStaysUnknown) {
  v1::StatusResponse response;
  FillStatus(StatusView{}, &response);
  const StatusView view = ToStatusView(response);
  EXPECT_EQ(view.readiness.seconds_left, -1);
  EXPECT_EQ(view.snapshot_age_ms, -1);
  EXPECT_EQ(view.snapshot_percent, -1);
}

}  // namespace
}  // namespace conductor::rpc
