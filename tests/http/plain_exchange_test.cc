// Plain queries do not pass through the library: their answers are those of the library all the
// same, which gets the same request when it has a parameter more.
#include "http/plain_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "http/library_exchange.h"
#include "tests/http/server_fixture.h"

namespace conductor::http {
namespace {

struct Rig {
  ScriptedService service;
  HttpMetrics metrics{service};
  Router router{service, metrics, Limits{}, BuildInfo{}};
  LibraryExchange library{router};
};

std::string Header(const std::string& target, const std::string& fields) {
  return "POST " + target + " HTTP/1.1\r\n" + fields + "\r\n";
}

// Status line, header lines in order of their text, body.
std::vector<std::string> Sorted(const std::string& answer) {
  std::vector<std::string> parts;
  const auto blank = answer.find("\r\n\r\n");
  EXPECT_NE(blank, std::string::npos);
  for (std::size_t at = 0; at < blank;) {
    const auto end = std::min(answer.find("\r\n", at), blank);
    parts.push_back(answer.substr(at, end - at));
    at = end + 2;
  }
  std::sort(parts.begin() + 1, parts.end());
  parts.push_back(answer.substr(blank + 4));
  return parts;
}

void ExpectTheLibrarysAnswer(const Rig& rig, const std::string& target, const std::string& fields,
                             const std::string& body) {
  const auto plain = RunPlain(rig.router, Header(target, fields), body);
  ASSERT_TRUE(plain) << fields;
  const std::string other_way = Header(target + "?detail=0", fields);
  EXPECT_FALSE(RunPlain(rig.router, other_way, body));
  const ExchangeResult library = rig.library.Run(other_way, body);
  EXPECT_FALSE(library.close);
  EXPECT_EQ(Sorted(*plain), Sorted(library.bytes)) << fields << body;
}

const Json kQuery = {{"model", "m"}, {"block_size", 4}, {"token_ids", {1, 2, 3, 4}}};

TEST(PlainExchangeTest, AnswersAreThoseOfTheLibrary) {
  Rig rig;
  rig.service.query_answer->instances.push_back({"a", {4, 4, 4, 4}, {{0, {4, 4, 4, 4}}}});
  rig.service.query_answer->log_seq = 7;
  rig.service.query_answer->degraded = {"a", "b,\u00e9"};
  for (const std::string type : {"application/json", "application/msgpack", "text/plain"}) {
    for (const std::string accept :
         {"", "accept: */*\r\n", "accept: application/json\r\n", "accept: image/png\r\n"}) {
      const std::string fields = "host: a\r\ncontent-type: " + type + "\r\n" + accept;
      for (const std::string& body : {kQuery.dump(), ToMsgpack(kQuery), std::string("{"),
                                      std::string(), std::string("{\"model\":1}")}) {
        for (const char* target : {"/query", "/query_by_hash"}) {
          ExpectTheLibrarysAnswer(rig, target, fields, body);
        }
      }
    }
  }
}

TEST(PlainExchangeTest, ErrorsOfTheServiceAreThoseOfTheLibrary) {
  const std::string fields = "content-type: application/json\r\n";
  for (const auto code : {ErrorCode::kUnavailable, ErrorCode::kInternal, ErrorCode::kNotFound,
                          ErrorCode::kResourceExhausted, ErrorCode::kInvalidArgument}) {
    Rig rig;
    rig.service.query_answer = tl::unexpected(Error{code, "words", "", "", -1});
    ExpectTheLibrarysAnswer(rig, "/query", fields, kQuery.dump());
  }
}

TEST(PlainExchangeTest, WhatIsNotPlainIsLeftToTheLibrary) {
  const Rig rig;
  const std::string fields = "content-type: application/json\r\n", body = kQuery.dump();
  EXPECT_TRUE(RunPlain(rig.router, Header("/query", fields), body));
  for (const char* target : {"/query?format=json", "/query/", "/Query", "/quer%79", "/register",
                             "/nothing", "http://a/query"}) {
    EXPECT_FALSE(RunPlain(rig.router, Header(target, fields), body)) << target;
  }
  for (const std::string& line :
       {std::string("connection: close"), std::string("connection: keep-alive"),
        std::string("authorization: x"), std::string("content-type: application/json"),
        std::string("accept: a%20b"), std::string("accept: \xc3\xa9"), std::string("accept: "),
        std::string("accept: a\tb"), std::string("accept"), "accept: " + std::string(1'025, 'a')}) {
    EXPECT_FALSE(RunPlain(rig.router, Header("/query", fields + line + "\r\n"), body)) << line;
  }
  for (const char* start : {"GET /query HTTP/1.1\r\n\r\n", "POST /query HTTP/1.0\r\n\r\n",
                            "post /query HTTP/1.1\r\n\r\n", "POST /query HTTP/1.1", ""}) {
    EXPECT_FALSE(RunPlain(rig.router, start, body)) << start;
  }
}

}  // namespace
}  // namespace conductor::http
