// Routes, methods and content negotiation through the real server.
#include <gtest/gtest.h>

#include <string>

#include "tests/http/raw_client.h"
#include "tests/http/server_fixture.h"

namespace conductor::http {
namespace {

const Json kQuery = {{"model", "m"}, {"block_size", 4}, {"token_ids", {1, 2, 3, 4}}};

TEST_F(HttpServerTest, HealthzIsOkAlsoDuringRebuild) {
  service_.readiness = {.phase = "rebuilding", .replayed = 5, .total = 10};
  const Answer answer = Get("/healthz?format=json");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, R"({"status":"ok"})");
}

TEST_F(HttpServerTest, ReadyzShowsProgressUntilReady) {
  service_.readiness = {.phase = "rebuilding",
                        .replayed = 5,
                        .total = 10,
                        .blocks_done = 7'000'000,
                        .blocks_per_s = 5.25e6,
                        .percent = 58.25,
                        .seconds_left = 0.75,
                        .streams_waiting = 3};
  Answer answer = Get("/readyz?format=json");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json()["replayed"], 5);
  EXPECT_EQ(answer.json()["total"], 10);
  EXPECT_EQ(answer.json()["streams_waiting"], 3);
  EXPECT_EQ(answer.json()["blocks_done"], 7'000'000);
  EXPECT_EQ(answer.json()["blocks_per_s"], 5.25e6);
  EXPECT_EQ(answer.json()["percent"], 58.3);
  EXPECT_EQ(answer.json()["seconds_left"], 0.8);
  EXPECT_EQ(answer.json()["reason"], "not_ready");
  EXPECT_EQ(Get("/readyz?format=msgpack").msgpack()["percent"], 58.3);
  service_.readiness = {.ready = true, .phase = "ready", .replayed = 10, .total = 10};
  answer = Get("/readyz?format=json");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json()["ready"], true);
  EXPECT_FALSE(answer.json().contains("percent"));
}

TEST_F(HttpServerTest, ReadyzDoesNotGuessTheTimeThatIsLeft) {
  service_.readiness = {.phase = "loading_snapshot"};
  EXPECT_TRUE(Get("/readyz?format=json").json()["seconds_left"].is_null());
  EXPECT_TRUE(Get("/readyz?format=msgpack").msgpack()["seconds_left"].is_null());
}

TEST_F(HttpServerTest, StatusShowsLogDigestAndSnapshots) {
  StatusView status;
  status.readiness = {.ready = true, .phase = "ready", .replayed = 10, .total = 10};
  status.log_first = 3, status.log_last = 10, status.log_synced = 9, status.log_applied = 10;
  status.digest = "d";
  status.blocks = 8;
  service_.status = status;
  EXPECT_EQ(Get("/status?format=json").body,
            R"({"ready":true,"phase":"ready","log_first":3,"log_last":10,"log_synced":9,)"
            R"("log_applied":10,"log_error":"","digest":"d","blocks":8,"snapshot_seq":0,)"
            R"("snapshot_age_ms":null,"snapshot_bytes":0,"snapshot_percent":null,)"
            R"("snapshots_made":0,"snapshots_failed":0,"snapshot_error":"",)"
            R"("log_opening_missing_records":0,"log_opening_dropped_bytes":0})");
  status.snapshot_seq = 7, status.snapshot_age_ms = 1'500, status.snapshot_bytes = 99;
  status.snapshot_percent = 12.5, status.snapshots_made = 2, status.snapshots_failed = 1;
  status.snapshot_error = "no space";
  status.log_opening = {3, 4};
  service_.status = status;
  const Json json = Get("/status?format=json").json();
  EXPECT_EQ(json["snapshot_seq"], 7);
  EXPECT_EQ(json["snapshot_age_ms"], 1'500);
  EXPECT_EQ(json["snapshot_percent"], 12.5);
  EXPECT_EQ(json["snapshot_error"], "no space");
  EXPECT_EQ(json["log_opening_missing_records"], 3);
  EXPECT_EQ(json["log_opening_dropped_bytes"], 4);
}

TEST_F(HttpServerTest, VersionNamesVersionCommitAndFormats) {
  EXPECT_EQ(Get("/version?format=json").body,
            R"({"version":"1.2.3","commit":"abc","formats":{"log":1}})");
}

TEST_F(HttpServerTest, PageIsOneFileWithoutExternalResources) {
  const Answer answer = Get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(answer.body.find("http://"), std::string::npos);
  EXPECT_EQ(answer.body.find("https://"), std::string::npos);
  EXPECT_NE(answer.body.find("/services?detail=1"), std::string::npos);
  EXPECT_NE(answer.body.find("/status"), std::string::npos);
}

TEST_F(HttpServerTest, UnknownPathIs404) {
  for (const char* path : {"/nothing", "/query/", "//", "/services/x"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.content_type, "application/msgpack") << path;
    EXPECT_EQ(answer.msgpack().value("reason", ""), "not_found") << path;
  }
  EXPECT_EQ(Get("/nothing?format=json").json().value("reason", ""), "not_found");
  EXPECT_EQ(Get("/nothing", {{"Accept", "application/json"}}).json().value("reason", ""),
            "not_found");
  const Answer posted = PostJson("/nothing", kQuery);
  EXPECT_EQ(posted.status, 404);
  EXPECT_EQ(posted.json().value("reason", ""), "not_found");
}

TEST_F(HttpServerTest, WrongMethodIs405WithTheAllowedOnes) {
  for (const char* path : {"/query", "/query_by_hash", "/register", "/unregister"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.status, 405) << path;
    EXPECT_EQ(answer.header("Allow"), "POST");
    EXPECT_EQ(answer.msgpack().value("reason", ""), "method_not_allowed");
    const Answer as_json = Get(std::string(path) + "?format=json");
    EXPECT_EQ(as_json.status, 405) << path;
    EXPECT_EQ(as_json.json().value("reason", ""), "method_not_allowed");
  }
  for (const char* path : {"/global_view", "/services", "/healthz", "/readyz", "/metrics",
                           "/version", "/status", "/"}) {
    const Answer answer = PostJson(path, Json::object());
    EXPECT_EQ(answer.status, 405) << path;
    EXPECT_EQ(answer.header("Allow"), "GET, HEAD");
  }
  EXPECT_EQ(Convert(client_->Delete("/services")).status, 405);
  EXPECT_EQ(Convert(client_->Put("/query", "{}", "application/json")).status, 405);
}

TEST_F(HttpServerTest, HeadAnswersWithoutABody) {
  const Answer answer = Convert(client_->Head("/healthz"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body.empty());
  EXPECT_EQ(Convert(client_->Head("/query")).status, 405);
}

TEST_F(HttpServerTest, GetWithoutPreferenceAnswersMsgpack) {
  for (const char* path : {"/services", "/global_view", "/version", "/healthz", "/readyz"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.content_type, "application/msgpack") << path;
    EXPECT_TRUE(answer.msgpack().is_object()) << path;
    EXPECT_EQ(Get(path, {{"Accept", "*/*"}}).content_type, "application/msgpack") << path;
  }
}

TEST_F(HttpServerTest, AnswerFollowsTheRequestUnlessToldOtherwise) {
  EXPECT_EQ(PostJson("/query", kQuery).content_type, "application/json");
  const std::string packed = ToMsgpack(kQuery);
  EXPECT_EQ(Post("/query", packed, "application/msgpack").content_type, "application/msgpack");
  EXPECT_EQ(
      Post("/query", packed, "application/msgpack", {{"Accept", "application/json"}}).content_type,
      "application/json");
  EXPECT_EQ(
      Post("/query?format=json", packed, "application/msgpack", {{"Accept", "application/msgpack"}})
          .content_type,
      "application/json");
  EXPECT_EQ(Get("/services", {{"Accept", "application/json"}}).content_type, "application/json");
  EXPECT_EQ(Get("/services?format=json").content_type, "application/json");
}

TEST_F(HttpServerTest, UnknownFormatParameterIsRefused) {
  const Answer answer = Get("/services?format=xml");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.decoded().value("field", ""), "format");
}

TEST_F(HttpServerTest, OtherContentTypesAre415) {
  for (const char* type : {"text/plain", "application/xml", "multipart/form-data; boundary=x"}) {
    const Answer answer = Post("/query", kQuery.dump(), type);
    EXPECT_EQ(answer.status, 415) << type;
    EXPECT_EQ(answer.json().value("reason", ""), "unsupported_content_type") << type;
  }
}

TEST_F(HttpServerTest, WhatPlainCurlSendsIsJson) {
  std::string tokens = "1";
  for (int i = 1; i < 32'768; ++i) tokens += ",12345";
  const std::string body = R"({"model":"m","block_size":4,"token_ids":[)" + tokens + "]}";
  Answer answer = Post("/query", body, "application/x-www-form-urlencoded");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_EQ(service_.seen_query().token_ids.size(), 32'768u);

  RawClient raw(server_->port());
  ASSERT_TRUE(raw.Send("POST /query HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) +
                       "\r\nConnection: close\r\n\r\n" + body));
  EXPECT_TRUE(raw.ReceiveAll().starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, RegisterAndUnregisterReachTheService) {
  service_.register_outcome = RegisterOutcome{"tcp://pool:1", true};
  Answer answer = PostJson("/register", {{"endpoint", "tcp://pool:1"}, {"type", "Mooncake"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, R"({"status":"registered successfully","instance_id":"tcp://pool:1"})");
  EXPECT_EQ(service_.seen_registration().type, "Mooncake");

  service_.unregister_answer = "i|t|2";
  answer = PostJson("/unregister", {{"instance_id", "i"}, {"tenant_id", "t"}, {"dp_rank", 2}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, R"({"status":"unregistered successfully","removed_instances":["i|t|2"]})");
  EXPECT_EQ(service_.seen_key(), (ServiceKey{"i", "t", 2}));

  service_.unregister_answer =
      tl::unexpected(Error{ErrorCode::kNotFound, "e", "not_found", "", -1});
  EXPECT_EQ(PostJson("/unregister", {{"instance_id", "i"}, {"dp_rank", 0}}).status, 404);
}

TEST_F(HttpServerTest, QueryCarriesItsTrustInHeaders) {
  QueryAnswer trusted;
  trusted.log_seq = 42;
  service_.query_answer = trusted;
  Answer answer = PostJson("/query", kQuery);
  EXPECT_EQ(answer.header("Conductor-Log-Seq"), "42");
  EXPECT_FALSE(answer.headers.contains("Conductor-Degraded"));

  trusted.degraded = {"a", "b,c\r\nd"};
  service_.query_answer = trusted;
  RawClient raw(server_->port());  // the library's client would decode the value
  const std::string body = kQuery.dump();
  ASSERT_TRUE(raw.Send("POST /query HTTP/1.1\r\nConnection: close\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body));
  EXPECT_NE(raw.ReceiveAll().find("\r\nConductor-Degraded: a, b%2Cc%0D%0Ad\r\n"),
            std::string::npos);
}

TEST_F(HttpServerTest, QueriesAre503UntilTheLogIsRebuilt) {
  service_.query_answer =
      tl::unexpected(Error{ErrorCode::kUnavailable, "rebuilding", "not_ready", "", -1});
  for (const char* path : {"/query", "/query_by_hash"}) {
    Json body = kQuery;
    if (std::string(path) == "/query_by_hash")
      body = {{"model", "m"}, {"block_size", 4}, {"seq_hashes", {1}}};
    const Answer answer = PostJson(path, body);
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.json().value("reason", ""), "not_ready");
  }
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  RawClient raw(server_->port());
  const std::string body = kQuery.dump();
  ASSERT_TRUE(
      raw.Send("GET /healthz?format=json HTTP/1.1\r\n\r\n"
               "POST /query HTTP/1.1\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body +
               "GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n"));
  const std::string all = raw.ReceiveAll();
  const auto first = all.find("{\"status\":\"ok\"}");
  const auto second = all.find("{\"instances\":{}}");
  const auto third = all.find("not_found");
  ASSERT_NE(first, std::string::npos) << all;
  ASSERT_NE(second, std::string::npos) << all;
  ASSERT_NE(third, std::string::npos) << all;
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST_F(HttpServerTest, Http10ConnectionsEndAfterTheAnswer) {
  RawClient raw(server_->port());
  ASSERT_TRUE(raw.Send("GET /healthz HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(raw.ReceiveAll().starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, ExpectContinueIsAnsweredBeforeTheBody) {
  RawClient raw(server_->port());
  const std::string body = kQuery.dump();
  ASSERT_TRUE(
      raw.Send("POST /query HTTP/1.1\r\nExpect: 100-continue\r\nConnection: close\r\n"
               "Content-Length: " +
               std::to_string(body.size()) + "\r\n\r\n"));
  EXPECT_EQ(raw.ReceiveUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(raw.Send(body));
  EXPECT_TRUE(raw.ReceiveAll().starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, ExpectContinueOfAPipelinedRequestIsAnswered) {
  RawClient raw(server_->port());
  ASSERT_TRUE(
      raw.Send("GET /healthz HTTP/1.1\r\n\r\n"
               "POST /query HTTP/1.1\r\nExpect: 100-continue\r\n"
               "Content-Length: 2\r\nConnection: close\r\n\r\n"));
  EXPECT_NE(raw.ReceiveUntil("100 Continue\r\n\r\n").find("100 Continue"), std::string::npos);
  ASSERT_TRUE(raw.Send("{}"));
  EXPECT_TRUE(raw.ReceiveAll().starts_with("HTTP/1.1 400 "));
}

TEST_F(HttpServerTest, EncodedPathsAreTheSamePaths) {
  EXPECT_EQ(PostJson("/%71uery", kQuery).status, 200);
}

TEST_F(HttpServerTest, RangesAndCompressionAreNotOffered) {
  const Answer answer = Get("/services?format=json",
                            {{"Range", "bytes=0-3"}, {"Accept-Encoding", "gzip, br, deflate"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.headers.contains("Content-Encoding"));
  EXPECT_TRUE(answer.json().is_object());
}

TEST_F(HttpServerTest, GarbageInsteadOfARequestLineIs400) {
  for (const char* line : {"hello", "GET /", "FOO / HTTP/1.1", "GET / HTTP/9.9", "PRI * HTTP/2.0",
                           "\x16\x03\x01\x02"}) {
    RawClient raw(server_->port());
    ASSERT_TRUE(raw.Send(std::string(line) + "\r\n\r\n"));
    EXPECT_TRUE(raw.ReceiveAll().starts_with("HTTP/1.1 400 ")) << line;
  }
}

}  // namespace
}  // namespace conductor::http
