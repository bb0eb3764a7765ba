// The way of a long prompt from a body to the query: faults deep inside it keep reason and index,
// nothing is believed that the body does not hold, and memory is asked for once.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "http/answers.h"
#include "http/request_bodies.h"
#include "tests/allocation_counter.h"

namespace conductor::http {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kManyTokens = 5'000;

std::string Encode(const Json& body, BodyFormat format) {
  if (format == BodyFormat::kJson) return body.dump();
  const auto bytes = Json::to_msgpack(body);
  return {bytes.begin(), bytes.end()};
}

Json QueryOf(std::size_t tokens) {
  Json body = {{"model", "m"}, {"block_size", 16}};
  Json& ids = body["token_ids"] = Json::array();
  for (std::size_t i = 0; i < tokens; ++i) ids.push_back(i * 7'919 % 128'000);
  return body;
}

Result<QueryBody> Parse(const std::string& body, BodyFormat format, const Limits& limits = {}) {
  return ParseQuery(body, format, QueryKind::kByTokens, limits);
}

class LongPromptTest : public ::testing::TestWithParam<BodyFormat> {};

INSTANTIATE_TEST_SUITE_P(Formats, LongPromptTest,
                         ::testing::Values(BodyFormat::kJson, BodyFormat::kMsgpack),
                         [](const auto& info) {
                           return info.param == BodyFormat::kJson ? "Json" : "Msgpack";
                         });

TEST_P(LongPromptTest, ArrivesTokenByToken) {
  for (const std::size_t tokens : {0, 1, 2, 3, 1'023, 1'024, 1'025, 5'000}) {
    const Json body = QueryOf(tokens);
    const auto query = Parse(Encode(body, GetParam()), GetParam());
    ASSERT_TRUE(query) << query.error().message;
    EXPECT_EQ(query->token_ids, body["token_ids"].get<std::vector<std::int32_t>>());
  }
}

TEST_P(LongPromptTest, AFaultInsideKeepsItsReasonAndIndex) {
  struct Row {
    const char* value;
    const char* reason;
    const char* text;
  };
  const std::vector<Row> rows = {
      {"1.0", "invalid_type", "expected a 32-bit integer, got a float"},
      {"null", "invalid_type", "expected a 32-bit integer, got null"},
      {"true", "invalid_type", "expected a 32-bit integer, got a bool"},
      {"\"5\"", "invalid_type", "expected a 32-bit integer, got text"},
      {"[5]", "invalid_type", "expected a 32-bit integer, got an array"},
      {"{}", "invalid_type", "expected a 32-bit integer, got an object"},
      {"2147483648", "out_of_range", "expected a 32-bit integer, got one outside that range"},
      {"-2147483649", "out_of_range", "expected a 32-bit integer, got one outside that range"},
      {"4294967297", "out_of_range", "expected a 32-bit integer, got one outside that range"},
      {"18446744073709551615", "out_of_range", "expected a 32-bit integer, got one outside"},
  };
  for (const Row& row : rows) {
    for (const std::size_t index : {0, 1, 2, 1'023, 1'024, 3'001, 4'998, 4'999}) {
      Json body = QueryOf(kManyTokens);
      body["token_ids"][index] = Json::parse(row.value);
      const auto query = Parse(Encode(body, GetParam()), GetParam());
      ASSERT_FALSE(query) << row.value;
      EXPECT_EQ(query.error().reason, row.reason) << row.value;
      EXPECT_EQ(query.error().field, "token_ids");
      EXPECT_EQ(query.error().index, static_cast<long long>(index)) << row.value;
      EXPECT_NE(query.error().message.find("token_ids[" + std::to_string(index) + "]: " + row.text),
                std::string::npos)
          << query.error().message;
    }
  }
}

TEST_P(LongPromptTest, TheLimitOfTokensHoldsInsideRuns) {
  Limits limits;
  limits.tokens_max = 2'000;
  for (const std::size_t tokens : {1'999, 2'000}) {
    EXPECT_TRUE(Parse(Encode(QueryOf(tokens), GetParam()), GetParam(), limits));
  }
  for (const std::size_t tokens : {2'001, 2'002, 3'072, 5'000}) {
    const auto query = Parse(Encode(QueryOf(tokens), GetParam()), GetParam(), limits);
    ASSERT_FALSE(query) << tokens;
    EXPECT_EQ(query.error().reason, "too_large");
    EXPECT_EQ(query.error().field, "token_ids");
  }
}

TEST_P(LongPromptTest, ABodyCutAnywhereIsRefused) {
  const std::string body = Encode(QueryOf(60), GetParam());
  ASSERT_TRUE(Parse(body, GetParam()));
  for (std::size_t length = 0; length < body.size(); ++length) {
    // In memory of exactly its size: the sanitizer sees a read beyond it.
    const std::vector<char> cut(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(length));
    const auto query = ParseQuery({cut.data(), cut.size()}, GetParam(), QueryKind::kByTokens, {});
    ASSERT_FALSE(query) << length;
    const char* reason = GetParam() == BodyFormat::kJson ? "invalid_json" : "invalid_msgpack";
    EXPECT_EQ(query.error().reason, reason) << length;
  }
}

TEST_P(LongPromptTest, AllocationsDoNotGrowWithThePrompt) {
  const auto count = [](std::size_t tokens) {
    const std::string body = Encode(QueryOf(tokens), GetParam());
    const auto parse = [&] { EXPECT_TRUE(Parse(body, GetParam())); };
    parse();  // the thread's own buffers grow once
    return CountAllocations(parse);
  };
  const std::size_t few = count(256), many = count(16'384);
  EXPECT_EQ(few > 0, kAllocationsAreCounted);
  // The token vector itself: known in advance in msgpack, doubled in JSON.
  const std::size_t doublings = GetParam() == BodyFormat::kJson ? 6 : 0;
  EXPECT_LE(many, few + doublings);
}

TEST(MsgpackLengthTest, ADeclaredLengthAllocatesNothing) {
  const std::string head = std::string("\x83\xa5model\xa1m\xaa") + "block_size\x10\xa9token_ids";
  for (const std::string& claim :
       {std::string("\xdd\xff\xff\xff\xff", 5), std::string("\xdd\x00\x0f\x42\x40", 5),
        std::string("\xc6\xff\xff\xff\xfc", 5), std::string("\xdc\xff\xff", 3)}) {
    const std::string body = head + claim + std::string(20, '\x01');
    // What a refused body of this kind costs: the error's own texts.
    const std::string plain = head + "\xc1";
    const auto parse = [](const std::string& text) {
      return CountAllocations([&] {
        const auto query = Parse(text, BodyFormat::kMsgpack);
        ASSERT_FALSE(query);
        EXPECT_EQ(query.error().reason, "invalid_msgpack");
      });
    };
    EXPECT_LE(parse(body), parse(plain) + 2);
  }
}

TEST(QueryAnswerTest, AnAnswerIsOneAllocationWhateverItsSize) {
  for (const BodyFormat format : {BodyFormat::kJson, BodyFormat::kMsgpack}) {
    for (const std::size_t instances : {1, 8, 256}) {
      QueryAnswer answer;
      for (std::size_t i = 0; i < instances; ++i) {
        InstanceHits& hits = answer.instances.emplace_back();
        hits.instance_id = "engine-" + std::to_string(i);
        hits.best = {8'192, 8'192, 8'192, 8'192};
        hits.ranks = {{0, hits.best}};
      }
      EXPECT_EQ(CountAllocations([&] { WriteQueryAnswer(answer, false, format); }),
                kAllocationsAreCounted ? 1u : 0u)
          << instances;
    }
  }
}

}  // namespace
}  // namespace conductor::http
