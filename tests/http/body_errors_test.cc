// Every way a body can be wrong: status, reason, field and index, the same in both formats.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/http/server_fixture.h"

namespace conductor::http {
namespace {

struct WrongBody {
  std::string path, body;  // the body as JSON text
  std::string reason;
  std::string field;     // empty: the answer has none
  long long index = -1;  // -1: the answer has none
  int status = 400;
};

// A query with one field replaced or added.
std::string Query(const std::string& field, const std::string& value) {
  Json body = {{"model", "m"}, {"block_size", 16}, {"token_ids", {1, 2}}};
  body[field] = Json::parse(value);
  return body.dump();
}

std::string HashQueryBody(const std::string& field, const std::string& value) {
  Json body = {{"model", "m"}, {"block_size", 16}};
  body[field] = Json::parse(value);
  return body.dump();
}

const std::vector<WrongBody>& WrongBodies() {
  static const std::vector<WrongBody> bodies = {
      // missing
      {"/query", R"({"block_size":16,"token_ids":[1]})", "missing", "model"},
      {"/query", R"({"model":"m","token_ids":[1]})", "missing", "block_size"},
      {"/query", R"({"model":"m","block_size":16})", "missing", "token_ids"},
      {"/query", "{}", "missing", "model"},
      {"/query_by_hash", R"({"model":"m","block_size":16})", "missing", "seq_hashes"},
      {"/unregister", R"({"dp_rank":0})", "missing", "instance_id"},
      {"/unregister", R"({"instance_id":"i"})", "missing", "dp_rank"},
      // invalid_type
      {"/query", "[]", "invalid_type", ""},
      {"/query", "7", "invalid_type", ""},
      {"/query", Query("model", "1"), "invalid_type", "model"},
      {"/query", Query("model", "null"), "invalid_type", "model"},
      {"/query", Query("model", "[]"), "invalid_type", "model"},
      {"/query", Query("block_size", "\"64\""), "invalid_type", "block_size"},
      {"/query", Query("block_size", "true"), "invalid_type", "block_size"},
      {"/query", Query("block_size", "16.0"), "invalid_type", "block_size"},
      {"/query", Query("detail", "1"), "invalid_type", "detail"},
      {"/query", Query("top_k", "false"), "invalid_type", "top_k"},
      {"/query", Query("cache_salt", "{}"), "invalid_type", "cache_salt"},
      {"/query", Query("token_ids", "[1,true]"), "invalid_type", "token_ids", 1},
      {"/query", Query("token_ids", "[1.0]"), "invalid_type", "token_ids", 0},
      {"/query", Query("token_ids", "[1,2,\"3\"]"), "invalid_type", "token_ids", 2},
      {"/query", Query("token_ids", "[1,null]"), "invalid_type", "token_ids", 1},
      {"/query", Query("token_ids", "[[1]]"), "invalid_type", "token_ids", 0},
      {"/query", Query("extra_keys", "[[1.5]]"), "invalid_type", "extra_keys", 0},
      {"/query", Query("extra_keys", "[null,[[\"a\"]]]"), "invalid_type", "extra_keys", 1},
      {"/query", Query("extra_keys", "[[[\"a\",1,2]]]"), "invalid_type", "extra_keys", 0},
      {"/query", Query("extra_keys", "[[[1,\"a\"]]]"), "invalid_type", "extra_keys", 0},
      {"/query_by_hash", HashQueryBody("seq_hashes", "[1.5]"), "invalid_type", "seq_hashes", 0},
      {"/query_by_hash", HashQueryBody("block_hash", "[1,false]"), "invalid_type", "block_hash", 1},
      {"/register", R"({"block_size":true})", "invalid_type", "block_size"},
      {"/register", R"({"dp_rank":"0"})", "invalid_type", "dp_rank"},
      {"/register", R"({"hash_profile":"vllm"})", "invalid_type", "hash_profile"},
      {"/register", R"({"hash_profile":{"algorithm":1}})", "invalid_type", "algorithm"},
      {"/register", R"({"hash_profile":{"python_hash_seed":0}})", "invalid_type",
       "python_hash_seed"},
      {"/register", R"({"endpoint":null})", "invalid_type", "endpoint"},
      {"/register", R"({"pool_parts":[1]})", "invalid_type", "pool_parts"},
      {"/register", R"({"pool_parts":{"tp":"8"}})", "invalid_type", "pool_parts.tp"},
      {"/unregister", R"({"instance_id":5,"dp_rank":0})", "invalid_type", "instance_id"},
      {"/unregister", R"({"instance_id":"i","dp_rank":true})", "invalid_type", "dp_rank"},
      // not_array
      {"/query", Query("token_ids", "\"1,2\""), "not_array", "token_ids"},
      {"/query", Query("token_ids", "{}"), "not_array", "token_ids"},
      {"/query", Query("token_ids", "null"), "not_array", "token_ids"},
      {"/query", Query("extra_keys", "\"a\""), "not_array", "extra_keys"},
      {"/query", Query("extra_keys", "[\"a\"]"), "not_array", "extra_keys", 0},
      {"/query_by_hash", HashQueryBody("seq_hashes", "7"), "not_array", "seq_hashes"},
      // out_of_range
      {"/query", Query("block_size", "0"), "out_of_range", "block_size"},
      {"/query", Query("block_size", "-1"), "out_of_range", "block_size"},
      {"/query", Query("block_size", "1099511627776"), "out_of_range", "block_size"},
      {"/query", Query("block_size", "18446744073709551615"), "out_of_range", "block_size"},
      {"/query", Query("token_ids", "[2147483648]"), "out_of_range", "token_ids", 0},
      {"/query", Query("token_ids", "[0,-2147483649]"), "out_of_range", "token_ids", 1},
      {"/query", Query("token_ids", "[18446744073709551615]"), "out_of_range", "token_ids", 0},
      {"/query", Query("top_k", "-1"), "out_of_range", "top_k"},
      {"/query", Query("min_tokens", "-1"), "out_of_range", "min_tokens"},
      {"/query_by_hash", HashQueryBody("seq_hashes", "[1,\"18446744073709551616\"]"),
       "out_of_range", "seq_hashes", 1},
      {"/unregister", R"({"instance_id":"i","dp_rank":-1})", "out_of_range", "dp_rank"},
      {"/unregister", R"({"instance_id":"i","dp_rank":4294967296})", "out_of_range", "dp_rank"},
      // invalid_value
      {"/query", Query("model", "\"\""), "invalid_value", "model"},
      {"/query_by_hash", HashQueryBody("seq_hashes", "[\"0x10\"]"), "invalid_value", "seq_hashes",
       0},
      {"/query_by_hash", HashQueryBody("seq_hashes", "[\"\"]"), "invalid_value", "seq_hashes", 0},
      {"/query_by_hash", HashQueryBody("seq_hashes", "[\"1 \"]"), "invalid_value", "seq_hashes", 0},
      {"/query_by_hash", R"({"model":"m","block_size":16,"seq_hashes":[1],"block_hash":[1]})",
       "invalid_value", "block_hash"},
      // unknown_field
      {"/query", Query("lora_id", "117"), "unknown_field", "lora_id"},
      {"/query", Query("tokens", "[]"), "unknown_field", "tokens"},
      {"/query", Query("seq_hashes", "[1]"), "unknown_field", "seq_hashes"},
      {"/query_by_hash", HashQueryBody("token_ids", "[1]"), "unknown_field", "token_ids"},
      {"/register", R"({"model_name":"m"})", "unknown_field", "model_name"},
      {"/register", R"({"hash_profile":{"root_digest":"00"}})", "unknown_field", "root_digest"},
      {"/unregister", R"({"instance_id":"i","dp_rank":0,"endpoint":"e"})", "unknown_field",
       "endpoint"},
  };
  return bodies;
}

class BodyErrorsTest : public HttpServerTest, public ::testing::WithParamInterface<BodyFormat> {};

INSTANTIATE_TEST_SUITE_P(Formats, BodyErrorsTest,
                         ::testing::Values(BodyFormat::kJson, BodyFormat::kMsgpack),
                         [](const auto& info) {
                           return info.param == BodyFormat::kJson ? "Json" : "Msgpack";
                         });

TEST_P(BodyErrorsTest, EveryWrongBodyIsNamedByReasonFieldAndIndex) {
  for (const WrongBody& wrong : WrongBodies()) {
    SCOPED_TRACE(wrong.path + " " + wrong.body);
    const Answer answer = PostAs(GetParam(), wrong.path, Json::parse(wrong.body));
    EXPECT_EQ(answer.status, wrong.status);
    EXPECT_EQ(answer.content_type, ContentTypeOf(GetParam()));
    const Json error = answer.decoded();
    ASSERT_TRUE(error.is_object()) << answer.body;
    EXPECT_FALSE(error.value("error", "").empty());
    EXPECT_EQ(error.value("reason", ""), wrong.reason);
    EXPECT_EQ(error.contains("field"), !wrong.field.empty());
    EXPECT_EQ(error.value("field", ""), wrong.field);
    EXPECT_EQ(error.value("index", -1ll), wrong.index);
  }
  EXPECT_EQ(service_.calls(), 0);
}

TEST_F(HttpServerTest, RepeatedKeysAreRefused) {
  Answer answer = Post("/query", R"({"model":"a","model":"b","block_size":4,"token_ids":[1]})",
                       "application/json");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json().value("reason", ""), "invalid_value");
  EXPECT_EQ(answer.json().value("field", ""), "model");
  answer = Post("/register", R"({"pool_parts":{"tp":1,"tp":2}})", "application/json");
  EXPECT_EQ(answer.json().value("field", ""), "pool_parts.tp");
  answer = Post("/query",
                "\x82\xa5model\xa1"
                "a\xa5model\xa1"
                "b",
                "application/msgpack");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.msgpack().value("field", ""), "model");
}

TEST_F(HttpServerTest, HugeJsonIntegersAreOutOfRangeWithTheirIndex) {
  Answer answer =
      Post("/query", R"({"model":"m","block_size":4,"token_ids":[1,99999999999999999999]})",
           "application/json");
  EXPECT_EQ(answer.json().value("reason", ""), "out_of_range");
  EXPECT_EQ(answer.json().value("index", -1), 1);
  answer =
      Post("/query_by_hash", R"({"model":"m","block_size":4,"seq_hashes":[18446744073709551616]})",
           "application/json");
  EXPECT_EQ(answer.json().value("reason", ""), "out_of_range");
  EXPECT_EQ(answer.json().value("index", -1), 0);
  answer = Post("/register", R"({"block_size":99999999999999999999})", "application/json");
  EXPECT_EQ(answer.json().value("reason", ""), "out_of_range");
}

TEST_F(HttpServerTest, BytesOfAWrongLengthAreAnInvalidValue) {
  Json body = {{"model", "m"}, {"block_size", 4}, {"token_ids", Json::binary({1, 2, 3})}};
  Answer answer = Post("/query", ToMsgpack(body), "application/msgpack");
  EXPECT_EQ(answer.msgpack().value("reason", ""), "invalid_value");
  EXPECT_EQ(answer.msgpack().value("field", ""), "token_ids");
}

TEST_F(HttpServerTest, MalformedBodiesAreNamedByFormat) {
  for (const char* path : {"/query", "/query_by_hash", "/register", "/unregister"}) {
    for (const char* body : {"", "{", "{} x", "\xff\xfe"}) {
      const Answer answer = Post(path, body, "application/json");
      EXPECT_EQ(answer.status, 400);
      EXPECT_EQ(answer.json().value("reason", ""), "invalid_json") << path << " " << body;
    }
    for (const char* body : {"", "\x81", "\xc1", "\x80\x80"}) {
      const Answer answer = Post(path, body, "application/msgpack");
      EXPECT_EQ(answer.status, 400);
      EXPECT_EQ(answer.msgpack().value("reason", ""), "invalid_msgpack") << path;
    }
  }
}

TEST_F(HttpServerTest, UnknownFieldNamesAreRepeatedInPartOnly) {
  const Answer answer =
      Post("/query", "{\"" + std::string(100'000, 'k') + "\":1}", "application/json");
  EXPECT_EQ(answer.json().value("reason", ""), "unknown_field");
  EXPECT_LT(answer.body.size(), 1'000u);
}

TEST_F(HttpServerTest, ErrorsOfTheServiceKeepTheirWords) {
  struct Row {
    Error error;
    int status;
    std::string reason;
  };
  const std::vector<Row> rows = {
      {{ErrorCode::kInvalidArgument, "e", "invalid_registration", "endpoint", -1},
       400,
       "invalid_registration"},
      {{ErrorCode::kInvalidArgument, "e", "unsupported", "type", -1}, 400, "unsupported"},
      {{ErrorCode::kInvalidArgument, "e", "", "", -1}, 400, "invalid_value"},
      {{ErrorCode::kAlreadyExists, "e", "", "", -1}, 400, "invalid_registration"},
      {{ErrorCode::kUnauthenticated, "e", "", "", -1}, 401, "unauthenticated"},
      {{ErrorCode::kPermissionDenied, "e", "", "", -1}, 403, "forbidden"},
      {{ErrorCode::kNotFound, "e", "not_found", "", -1}, 404, "not_found"},
      {{ErrorCode::kResourceExhausted, "e", "too_large", "", -1}, 413, "too_large"},
      {{ErrorCode::kUnavailable, "e", "not_ready", "", -1}, 503, "not_ready"},
      {{ErrorCode::kUnavailable, "e", "", "", -1}, 503, "not_ready"},
      {{ErrorCode::kUnimplemented, "e", "", "", -1}, 400, "unsupported"},
      {{ErrorCode::kInternal, "e", "", "", -1}, 500, "internal"},
      {{ErrorCode::kDataLoss, "e", "", "", -1}, 500, "internal"},
  };
  for (const Row& row : rows) {
    service_.register_outcome = tl::unexpected(row.error);
    const Answer answer = PostJson("/register", Json::object());
    EXPECT_EQ(answer.status, row.status);
    EXPECT_EQ(answer.json().value("reason", ""), row.reason);
    EXPECT_EQ(answer.json().value("field", ""), row.error.field);
  }
}

}  // namespace
}  // namespace conductor::http
