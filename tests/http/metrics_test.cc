// /metrics: what Service collects, and the front end's own counters.
#include <gtest/gtest.h>

#include <string>

#include "tests/http/server_fixture.h"

namespace conductor::http {
namespace {

TEST_F(HttpServerTest, MetricsOfTheServiceAreGroupedIntoFamilies) {
  service_.metrics = {
      {"frames_total", "Frames applied.", true, {{"stream", "a\"b"}}, 3},
      {"blocks", "Blocks held.", false, {}, 12.5},
      {"frames_total", "Frames applied.", true, {{"stream", "c"}}, 4},
  };
  const Answer answer = Get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(answer.body.find("# HELP conductor_frames_total Frames applied.\n"
                             "# TYPE conductor_frames_total counter\n"
                             "conductor_frames_total{stream=\"a\\\"b\"} 3\n"
                             "conductor_frames_total{stream=\"c\"} 4\n"),
            std::string::npos)
      << answer.body;
  EXPECT_NE(answer.body.find("# TYPE conductor_blocks gauge\nconductor_blocks 12.5\n"),
            std::string::npos)
      << answer.body;
}

TEST_F(HttpServerTest, RequestsAreCountedByRouteAndStatus) {
  Get("/healthz");
  Get("/healthz");
  PostJson("/query", Json::object());
  Get("/secret-path-of-a-scanner");
  const std::string text = Get("/metrics").body;
  const auto has = [&](const std::string& line) {
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << "\n" << text;
  };
  has(R"(conductor_http_requests_total{route="/healthz",code="200"} 2)");
  has(R"(conductor_http_requests_total{route="/query",code="400"} 1)");
  has(R"(conductor_http_requests_total{route="other",code="404"} 1)");
  has(R"(conductor_http_request_seconds_count{route="/healthz"} 2)");
  has(R"(conductor_http_request_seconds_bucket{route="/healthz",le="+Inf"} 2)");
  has("conductor_http_connections 1");
  EXPECT_EQ(text.find("secret-path"), std::string::npos);
}

}  // namespace
}  // namespace conductor::http
