// Start, Stop, slow clients, and who is served while others wait.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "http/listen_socket.h"
#include "tests/http/raw_client.h"
#include "tests/http/server_fixture.h"
#include "tests/slowness.h"

namespace conductor::http {
namespace {

using Clock = std::chrono::steady_clock;

TEST_F(HttpServerTest, PortInUseNamesAddressPortAndReason) {
  for (const char* address : {"127.0.0.1", "0.0.0.0"}) {
    HttpServerOptions options;
    options.listen_address = address;
    options.port = server_->port();
    const auto second = HttpServer::Start(service_, options);
    ASSERT_FALSE(second) << address;
    const std::string& message = second.error().message;
    EXPECT_NE(message.find(address), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(server_->port())), std::string::npos) << message;
    EXPECT_NE(message.find("in use"), std::string::npos) << message;
  }
}

TEST_F(HttpServerTest, PortIsFreeAgainAtOnceAfterStop) {
  EXPECT_EQ(Get("/healthz").status, 200);
  const std::uint16_t port = server_->port();
  server_->Stop();
  HttpServerOptions options;
  options.port = port;
  const auto again = HttpServer::Start(service_, options);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->port(), port);
}

TEST_F(HttpServerTest, AddressesThatCannotBeAreNamed) {
  for (const char* address : {"no.such.host.invalid", "999.1.1.1", "[::1"}) {
    HttpServerOptions options;
    options.listen_address = address;
    const auto server = HttpServer::Start(service_, options);
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().field, "listen_address");
    EXPECT_NE(server.error().message.find(address), std::string::npos);
  }
  for (const int port : {-1, 65'536, 70'000}) {
    HttpServerOptions options;
    options.port = port;
    const auto server = HttpServer::Start(service_, options);
    ASSERT_FALSE(server) << port;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST_F(HttpServerTest, StopIsQuickWithIdleSlowAndStuckClients) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 40; ++i) clients.emplace_back(server_->port());
  for (std::size_t i = 0; i < clients.size(); ++i) {
    ASSERT_TRUE(clients[i].connected());
    if (i % 4 == 1) {  // idle between requests
      clients[i].Send("GET /healthz HTTP/1.1\r\n\r\n");
      EXPECT_NE(clients[i].ReceiveUntil("\r\n\r\n"), "");
    }
    if (i % 4 == 2) clients[i].Send("GET /heal");
    if (i % 4 == 3) clients[i].Send("POST /query HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{");
  }
  EXPECT_EQ(Get("/healthz").status, 200);
  const auto start = Clock::now();
  server_->Stop();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2 * kSlowness));
  for (RawClient& client : clients) EXPECT_TRUE(client.AwaitEnd());
  server_->Stop();  // again: nothing to do
}

TEST_F(HttpServerTest, HundredSlowClientsDoNotKeepOthersWaiting) {
  Limits limits;
  limits.http_threads = 2;
  StartServer(limits);
  std::vector<RawClient> slow;
  for (int i = 0; i < 100; ++i) {
    slow.emplace_back(server_->port());
    ASSERT_TRUE(slow.back().Send(i % 2 == 0 ? "POST /query HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"
                                            : "GET / HT"));
  }
  const auto start = Clock::now();
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(PostJson("/query", {{"model", "m"}, {"block_size", 4}, {"token_ids", {1}}}).status,
            200);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5 * kSlowness));
}

TEST_F(HttpServerTest, ProbesAnswerWhileEveryRequestWaitsForTheLog) {
  Limits limits;
  limits.http_threads = 2;
  StartServer(limits);
  service_.CloseGate();
  std::vector<RawClient> waiting;
  for (int i = 0; i < 10; ++i) {
    waiting.emplace_back(server_->port());
    ASSERT_TRUE(waiting.back().Send(
        "POST /register HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"));
  }
  ASSERT_TRUE(service_.AwaitAtGate(2));
  for (const char* path : {"/healthz", "/readyz", "/version", "/"}) {
    EXPECT_EQ(Get(path).status, 200) << path;
  }
  service_.OpenGate();
  for (RawClient& client : waiting) {
    EXPECT_TRUE(client.ReceiveAll().starts_with("HTTP/1.1 200 OK\r\n"));
  }
  EXPECT_EQ(service_.calls(), 10);
}

TEST_F(HttpServerTest, ClientThatDoesNotFinishItsRequestIsCutOff) {
  Limits limits;
  limits.request_send_ms_max = 1'000;
  StartServer(limits);
  RawClient silent(server_->port());
  RawClient half(server_->port());
  ASSERT_TRUE(half.Send("POST /query HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"));
  const auto start = Clock::now();
  EXPECT_TRUE(half.AwaitEnd());
  EXPECT_TRUE(silent.AwaitEnd());
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10 * kSlowness));
  EXPECT_NE(
      Get("/metrics").body.find("conductor_http_connection_events_total{event=\"timed_out\"} 2"),
      std::string::npos);
}

TEST_F(HttpServerTest, ClientThatDoesNotReadItsAnswerIsCutOff) {
  Limits limits;
  limits.request_send_ms_max = 1'000;
  std::vector<ContextView> many(8'000);
  for (ContextView& context : many) context.key.model_name = std::string(1'000, 'm');
  service_.contexts = many;
  StartServer(limits);
  RawClient lazy(server_->port(), /*receive_buffer_bytes=*/4'096);
  ASSERT_TRUE(lazy.Send("GET /global_view HTTP/1.1\r\n\r\n"));
  const auto deadline = Clock::now() + RawClient::kPatience;
  bool cut_off = false;
  while (!cut_off && Clock::now() < deadline) {
    cut_off = Get("/metrics").body.find("event=\"timed_out\"} 1") != std::string::npos;
    std::this_thread::yield();
  }
  EXPECT_TRUE(cut_off);
}

TEST_F(HttpServerTest, LargeAnswersArriveWhole) {
  std::vector<ContextView> many(8'000);
  for (ContextView& context : many) context.key.model_name = std::string(1'000, 'm');
  service_.contexts = many;
  const Answer answer = Get("/global_view?format=json");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json()["contexts"].size(), 8'000u);
}

TEST_F(HttpServerTest, ManyClientsAtOnceAreAllServed) {
  std::vector<std::thread> threads;
  std::atomic<int> served{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      httplib::Client client("127.0.0.1", server_->port());
      client.set_keep_alive(true);
      for (int request = 0; request < 50; ++request) {
        const auto result = client.Post(
            "/query", R"({"model":"m","block_size":4,"token_ids":[1,2,3,4]})", "application/json");
        if (result && result->status == 200) ++served;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served.load(), 16 * 50);
}

// Lowers the number of descriptors this process may open, for as long as it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit lowered = before_;
    lowered.rlim_cur = count;
    ::setrlimit(RLIMIT_NOFILE, &lowered);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(HttpServerTest, MoreConnectionsThanAllowedEvictTheSlowest) {
  const DescriptorLimit limit(512);  // a quarter of it for HTTP
  StartServer({});
  std::vector<RawClient> hoard;
  for (int i = 0; i < 200; ++i) {
    hoard.emplace_back(server_->port());
    ASSERT_TRUE(hoard.back().connected());
    ASSERT_TRUE(hoard.back().Send("GET /"));
  }
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_TRUE(hoard.front().AwaitEnd());
  EXPECT_EQ(Get("/metrics").body.find("event=\"evicted\"} 0"), std::string::npos);
}

TEST_F(HttpServerTest, ClientIsTurnedAwayWhenDescriptorsHaveRunOut) {
  {
    const DescriptorLimit limit(256);
    std::vector<FileDescriptor> all;
    for (;;) {
      FileDescriptor fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!fd.IsOpen()) break;
      all.push_back(std::move(fd));
    }
    all.pop_back();  // for the client's end; none is left for the server's
    RawClient client(server_->port());
    ASSERT_TRUE(client.connected());
    EXPECT_TRUE(client.AwaitEnd());
  }
  EXPECT_EQ(Get("/healthz").status, 200);
}

}  // namespace
}  // namespace conductor::http
