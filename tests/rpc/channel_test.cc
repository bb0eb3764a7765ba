// The transport when the peer is not what it should be, when it goes away, and across fork().
#include "rpc/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "rpc/client.h"
#include "rpc/rpc_server.h"
#include "src/check.h"
#include "tests/rpc/raw_server.h"
#include "tests/rpc/scripted_service.h"
#include "tests/slowness.h"

namespace conductor::rpc {
namespace {

using Clock = std::chrono::steady_clock;

Error ConnectError(const std::string& address, std::uint32_t timeout_ms = 1'000) {
  const auto client = RpcClient::Connect(address, {.connect_timeout_ms = timeout_ms});
  EXPECT_FALSE(client);
  return client ? Error{} : client.error();
}

PromptQuery EchoQuery(std::span<const std::int32_t> tokens) {
  PromptQuery query;
  query.context = {"default", "echo", "", 16};
  query.token_ids = tokens;
  return query;
}

std::unique_ptr<RpcServer> StartServer(ScriptedService& service, std::uint16_t port = 0) {
  auto server = RpcServer::Start(service, {.port = port});
  EXPECT_TRUE(server) << server.error().message;
  return server ? *std::move(server) : nullptr;
}

TEST(AddressTest, HostAndPortAreSplit) {
  EXPECT_EQ(ParseHostPort("localhost:1")->host, "localhost");
  EXPECT_EQ(ParseHostPort("10.0.0.1:65535")->port, "65535");
  EXPECT_EQ(ParseHostPort("[::1]:50052")->host, "::1");
}

TEST(AddressTest, EverythingElseIsRefused) {
  for (const char* address :
       {"", "localhost", ":1", "host:", "host:0", "host:65536", "host:-1", "host:1x", "host:x",
        "http://host:1", "::1:50052", "[]:1", "[::1]", "a b:1", "user@host:1", "host/path:1"}) {
    const auto target = ParseHostPort(address);
    ASSERT_FALSE(target) << address;
    EXPECT_EQ(target.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(target.error().field, "address");
  }
}

TEST(AddressTest, ANameThatDoesNotExistIsUnavailable) {
  EXPECT_EQ(ConnectError("no-such-host.invalid:1").code, ErrorCode::kUnavailable);
}

TEST(AddressTest, LocalhostIsTriedOnEveryAddress) {
  ScriptedService service;
  const auto server = StartServer(service);
  EXPECT_TRUE(RpcClient::Connect("localhost:" + std::to_string(server->port()), {}));
}

TEST(ChannelTest, NobodyListeningIsUnavailable) {
  std::string address;
  {
    RawServer server;
    address = server.address();
  }
  const Error error = ConnectError(address);
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_NE(error.message.find(address), std::string::npos);
}

TEST(ChannelTest, ASilentPeerIsUnavailableWithinTheTimeout) {
  RawServer server;
  const auto start = Clock::now();
  EXPECT_EQ(ConnectError(server.address(), 200).code, ErrorCode::kUnavailable);
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(200));
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(1'500 * kSlowness));
}

TEST(ChannelTest, APeerThatClosesIsUnavailable) {
  RawServer server([](int) {});
  EXPECT_EQ(ConnectError(server.address()).code, ErrorCode::kUnavailable);
}

TEST(ChannelTest, AnHttp1PeerIsUnavailable) {
  RawServer server([](int fd) { WriteAll(fd, "HTTP/1.1 400 Bad Request\r\n\r\n"); });
  EXPECT_EQ(ConnectError(server.address()).code, ErrorCode::kUnavailable);
}

TEST(ChannelTest, APeerThatGoesSilentLaterIsADeadline) {
  RawServer server([](int fd) {
    std::string settings;
    AppendFrameHeader(FrameType::kSettings, 0, 0, 0, &settings);
    WriteAll(fd, settings);
    ReadToEnd(fd);
  });
  const auto client = RpcClient::Connect(server.address(), {.request_timeout_ms = 150});
  ASSERT_TRUE(client);
  EXPECT_EQ((*client)->ListServices().error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ((*client)->ListServices().error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(server.accepted(), 2) << "a connection that failed is not used again";
}

TEST(ChannelTest, AClientOutlivesARestartOfTheServer) {
  ScriptedService service;
  auto server = StartServer(service);
  const std::uint16_t port = server->port();
  const auto client = RpcClient::Connect("127.0.0.1:" + std::to_string(port), {});
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->ListServices());
  server.reset();
  const auto down = (*client)->ListServices();
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(down.error().reason, "");
  server = StartServer(service, port);
  EXPECT_TRUE((*client)->ListServices());
}

TEST(ChannelTest, ARequestThatWasRefusedIsSentAgain) {
  // The first connection says goodbye when the request arrives, without touching it.
  std::atomic<int> connections{0};
  RawServer server([&connections](int fd) {
    std::string out;
    AppendFrameHeader(FrameType::kSettings, 0, 0, 0, &out);
    ++connections;
    WriteAll(fd, out);
    if (connections == 1) {
      char byte;
      for (int i = 0; i < 80; ++i) {  // past the preface (24 + 21 + 13 bytes): a request began
        if (read(fd, &byte, 1) != 1) return;
      }
      std::string goodbye;
      AppendFrameHeader(FrameType::kGoAway, 0, 0, 8, &goodbye);
      WriteAll(fd, goodbye + std::string(8, '\0'));
    }
    ReadToEnd(fd);
  });
  const auto client = RpcClient::Connect(server.address(), {.request_timeout_ms = 300});
  ASSERT_TRUE(client);
  // Not repeatable, and sent again all the same, because the server did not touch it.
  EXPECT_EQ((*client)->Unregister("i", "", 0).error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(server.accepted(), 2);
}

// The scripted server as a process of its own. (A gRPC server does not survive that its process
// forks: the child's copies of its descriptors keep waking it. The daemon never forks.)
class ServerProcess {
 public:
  ServerProcess() {
    std::array<int, 2> in;
    std::array<int, 2> out;
    CHECK(pipe2(in.data(), O_CLOEXEC) == 0 && pipe2(out.data(), O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execl(CONDUCTOR_SCRIPTED_SERVER, CONDUCTOR_SCRIPTED_SERVER, nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    stdin_ = in[1];
    char digit;
    while (read(out[0], &digit, 1) == 1 && digit != '\n') port_ += digit;
    close(out[0]);
  }
  ~ServerProcess() {
    close(stdin_);  // the server ends with its input
    waitpid(pid_, nullptr, 0);
  }
  std::string address() const { return "127.0.0.1:" + port_; }

 private:
  pid_t pid_;
  int stdin_;
  std::string port_;
};

constexpr int kHangsAfterS = 20;

// The exit status of what `child` returns in a forked process; minus the signal when it hung.
int RunInChild(const std::function<int()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kHangsAfterS * kSlowness);  // a hang becomes a signal
    _exit(child());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(ForkTest, AChildGetsRightAnswersWhileThreadsOfTheParentGoOn) {
  const ServerProcess server;
  const auto connected = RpcClient::Connect(server.address(), {});
  ASSERT_TRUE(connected) << connected.error().message;
  const RpcClient& client = **connected;
  const std::vector<std::int32_t> tokens = {1, 2, 3};
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread busy([&] {
    while (!stop) wrong += client.Query(EchoQuery(tokens)) ? 0 : 1;
  });
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_EQ(RunInChild([&] {
                for (int i = 0; i < 2; ++i) {
                  const auto answer = client.Query(EchoQuery(tokens));
                  if (!answer || answer->instances[0].best.disk != tokens.size()) return 1;
                }
                return 0;
              }),
              0)
        << round;
  }
  stop = true;
  busy.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ForkTest, AChildMayDestroyTheClient) {
  const ServerProcess server;
  auto client = RpcClient::Connect(server.address(), {});
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ(RunInChild([&] {
              client->reset();
              return 0;
            }),
            0);
  EXPECT_TRUE((*client)->ListServices()) << "the parent is undisturbed";
}

}  // namespace
}  // namespace conductor::rpc
