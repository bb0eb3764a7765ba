// Limits on what a client may send, through the real server.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "tests/http/raw_client.h"
#include "tests/http/server_fixture.h"
#include "tests/slowness.h"

namespace conductor::http {
namespace {

// Resident memory in MiB.
double ResidentMiB() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  statm >> size >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

std::string BodyOf(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

std::string ReasonOf(const std::string& answer) {
  const Json json = Json::parse(BodyOf(answer), nullptr, false);
  return json.is_object() ? json.value("reason", "") : "";
}

TEST_F(HttpServerTest, ContentLengthOf10GigabytesIs413BeforeTheBody) {
  RawClient raw(server_->port());
  ASSERT_TRUE(raw.Send("POST /query HTTP/1.1\r\nContent-Length: 10000000000\r\n\r\n"));
  const std::string answer = raw.ReceiveUntil("}");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 Payload Too Large\r\n")) << answer;
  EXPECT_EQ(ReasonOf(answer), "too_large");
}

TEST_F(HttpServerTest, RefusalOfAMsgpackRequestIsMsgpack) {
  RawClient raw(server_->port());
  ASSERT_TRUE(
      raw.Send("POST /query HTTP/1.1\r\nContent-Type: application/msgpack\r\n"
               "Content-Length: 10000000000\r\n\r\n"));
  raw.Send("body");
  const std::string answer = raw.ReceiveUntil("too_large");
  EXPECT_NE(answer.find("Content-Type: application/msgpack\r\n"), std::string::npos) << answer;
  EXPECT_EQ(Json::from_msgpack(BodyOf(answer), true, false).value("reason", ""), "too_large");
}

TEST_F(HttpServerTest, EndlessChunkedBodyIsCutAtTheLimit) {
  Limits limits;
  limits.body_bytes_max = 8u << 20;
  StartServer(limits);
  const double before = ResidentMiB();
  RawClient raw(server_->port());
  ASSERT_TRUE(raw.Send("POST /query HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string chunk = "10000\r\n" + std::string(1u << 16, 'x') + "\r\n";
  int sent = 0;
  while (sent < 16'384 && !raw.HasAnswer() && raw.Send(chunk)) ++sent;
  EXPECT_LT(sent, 4'096);
  const std::string answer = raw.ReceiveUntil("}");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
  EXPECT_EQ(ReasonOf(answer), "too_large");
  EXPECT_LT(ResidentMiB() - before, 64);
}

TEST_F(HttpServerTest, RequestWithoutALineEndIsClosedAtTheHeaderLimit) {
  const double before = ResidentMiB();
  RawClient raw(server_->port());
  const std::string piece(1u << 16, 'x');
  int sent = 0;
  while (sent < 16'384 && !raw.HasAnswer() && raw.Send(piece)) ++sent;
  EXPECT_LT(sent, 4'096);
  const std::string answer = raw.ReceiveUntil("}");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 431 ")) << answer;
  EXPECT_EQ(ReasonOf(answer), "too_large");
  EXPECT_TRUE(raw.AwaitEnd());
  EXPECT_LT(ResidentMiB() - before, 64);
}

TEST_F(HttpServerTest, ManyHeadersAreLimitedTogether) {
  RawClient raw(server_->port());
  std::string header = "GET /healthz HTTP/1.1\r\n";
  for (int i = 0; i < 1'000; ++i) header += "X-" + std::to_string(i) + ": 0123456789\r\n";
  raw.Send(header + "\r\n");
  EXPECT_TRUE(raw.ReceiveUntil("}").starts_with("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, OneLongHeaderLineWithinTheLimitPasses) {
  const Answer answer = Get("/healthz", {{"Cookie", std::string(15'000, 'c')}});
  EXPECT_EQ(answer.status, 200);
}

TEST_F(HttpServerTest, LongUriIs414) {
  RawClient raw(server_->port());
  ASSERT_TRUE(raw.Send("GET /" + std::string(10'000, 'a') + " HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(raw.ReceiveUntil("}").starts_with("HTTP/1.1 414 "));
}

TEST_F(HttpServerTest, MillionTokenPromptPassesAsJson) {
  std::string body = R"({"model":"m","block_size":16,"token_ids":[)";
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 1'000'000; ++i) {
    if (i > 0) body.push_back(',');
    tokens.push_back(i * 2'147 % 200'000);
    body += std::to_string(tokens.back());
  }
  body += "]}";
  const Answer answer = Post("/query", body, "application/json");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(service_.seen_query().token_ids, tokens);
}

TEST_F(HttpServerTest, MillionTokenPromptPassesAsMsgpackArrayAndBytes) {
  std::vector<std::int32_t> tokens(1'000'000);
  Json::binary_t bytes;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i) - 500'000;
    const auto bits = static_cast<std::uint32_t>(tokens[i]);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(bits >> shift & 0xff);
  }
  Json body = {{"model", "m"}, {"block_size", 16}, {"token_ids", Json::binary(bytes)}};
  Answer answer = Post("/query", ToMsgpack(body), "application/msgpack");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(service_.seen_query().token_ids, tokens);
  body["token_ids"] = tokens;
  answer = Post("/query", ToMsgpack(body), "application/msgpack");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(service_.seen_query().token_ids, tokens);
}

TEST_F(HttpServerTest, OneTokenTooManyIsTooLarge) {
  Limits limits;
  limits.tokens_max = 100;
  StartServer(limits);
  for (const BodyFormat format : {BodyFormat::kJson, BodyFormat::kMsgpack}) {
    Json body = {{"model", "m"}, {"block_size", 16}, {"token_ids", std::vector<int>(100, 1)}};
    EXPECT_EQ(PostAs(format, "/query", body).status, 200);
    body["token_ids"].push_back(1);
    const Answer answer = PostAs(format, "/query", body);
    EXPECT_EQ(answer.status, 413);
    EXPECT_EQ(answer.decoded().value("reason", ""), "too_large");
    EXPECT_EQ(answer.decoded().value("field", ""), "token_ids");
  }
}

std::string Repeat(const std::string& piece, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += piece;
  return all;
}

// Each alone, and as the value of a field that takes arrays and of one that takes anything.
TEST_F(HttpServerTest, MsgpackBombsAre400WithoutMemoryOrTime) {
  const std::vector<std::string> bombs = {
      Repeat("\x91", 100'000) + "\x90",
      "\xdd\xff\xff\xff\xff",
      "\xdf\xff\xff\xff\xff",
      Repeat("\xdc\xff\xff", 24'000),
      "\xc6\xff\xff\xff\xff",
      "\xdb\x7f\xff\xff\xff"
      "x",
  };
  Post("/query", "{}", "application/json");
  const double before = ResidentMiB();
  for (const std::string& bomb : bombs) {
    for (const std::string& prefix : {std::string(), std::string("\x81\xa9token_ids"),
                                      std::string("\x81\xaa"
                                                  "extra_keys")}) {
      const auto start = std::chrono::steady_clock::now();
      const Answer answer = Post("/query", prefix + bomb, "application/msgpack");
      EXPECT_EQ(answer.status, 400);
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2 * kSlowness));
    }
    const Answer answer = Post("/unregister", "\x81\xa4type" + bomb, "application/msgpack");
    EXPECT_EQ(answer.status, 400);
  }
  EXPECT_LT(ResidentMiB() - before, 64);
  EXPECT_EQ(service_.calls(), 0);
}

TEST_F(HttpServerTest, JsonBombsAre400) {
  for (const std::string& bomb : {std::string(1'000'000, '['), Repeat("{\"a\":", 200'000),
                                  "{\"token_ids\":" + std::string(1'000'000, '[')}) {
    EXPECT_EQ(Post("/query", bomb, "application/json").status, 400);
  }
  EXPECT_EQ(
      Post("/unregister", "{\"type\":" + std::string(1'000'000, '['), "application/json").status,
      400);
}

TEST_F(HttpServerTest, MillionOneElementValuesAreRefusedByTheirField) {
  std::string body =
      "\x81\xaa"
      "extra_keys\xdd";
  body += std::string("\x00\x0f\x42\x41", 4);  // 1,000,001
  body += std::string(1'000'001, '\x90');
  const Answer answer = Post("/query", body, "application/msgpack");
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.msgpack().value("reason", ""), "too_large");
}

}  // namespace
}  // namespace conductor::http
