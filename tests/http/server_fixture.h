// The real server on a free port over a ScriptedService, and a client for it.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/body_format.h"
#include "http/http_server.h"
#include "tests/http/scripted_service.h"

namespace conductor::http {

using Json = nlohmann::ordered_json;

struct Answer {
  int status = 0;
  std::string content_type, body;
  httplib::Headers headers;

  Json json() const { return Json::parse(body, nullptr, false); }
  Json msgpack() const { return Json::from_msgpack(body, true, false); }
  Json decoded() const { return content_type == "application/msgpack" ? msgpack() : json(); }
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

inline std::string ToMsgpack(const Json& json) {
  const std::vector<std::uint8_t> bytes = Json::to_msgpack(json);
  return {bytes.begin(), bytes.end()};
}

inline std::string Encode(const Json& json, BodyFormat format) {
  return format == BodyFormat::kJson ? json.dump() : ToMsgpack(json);
}

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override { StartServer({}); }

  void StartServer(Limits limits) {
    server_.reset();
    HttpServerOptions options;
    options.limits = limits;
    options.version = "1.2.3";
    options.commit = "abc";
    options.formats = {{"log", 1}};
    auto server = HttpServer::Start(service_, std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    client_ = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
    client_->set_keep_alive(true);
    client_->set_tcp_nodelay(true);
    client_->set_read_timeout(20);
  }

  static Answer Convert(const httplib::Result& result) {
    Answer answer;
    EXPECT_TRUE(result) << httplib::to_string(result.error());
    if (!result) return answer;
    answer.status = result->status;
    answer.content_type = result->get_header_value("Content-Type");
    answer.body = result->body;
    answer.headers = result->headers;
    return answer;
  }

  Answer Get(const std::string& target, httplib::Headers headers = {}) {
    return Convert(client_->Get(target, headers));
  }
  Answer Post(const std::string& target, const std::string& body, const std::string& content_type,
              httplib::Headers headers = {}) {
    return Convert(client_->Post(target, headers, body, content_type));
  }
  Answer PostJson(const std::string& target, const Json& body) {
    return Post(target, body.dump(), "application/json");
  }
  Answer PostAs(BodyFormat format, const std::string& target, const Json& body) {
    return Post(target, Encode(body, format), std::string(ContentTypeOf(format)));
  }

  ScriptedService service_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<httplib::Client> client_;
};

}  // namespace conductor::http
