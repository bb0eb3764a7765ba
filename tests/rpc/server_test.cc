// The server as any gRPC client sees it: trailers, statuses, health, reflection, limits, ports.
// The client here is the official one, so that both ends of ours are tested against another.
#include "rpc/rpc_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>

#include <thread>

#include "rpc/conductor.grpc.pb.h"
#include "rpc/error_detail.h"
#include "rpc/trailers.h"
#include "tests/rpc/raw_server.h"
#include "tests/rpc/scripted_service.h"

namespace conductor::rpc {
namespace {

// grpc.health.v1.HealthCheckRequest{service} and the status in its response, by hand: the proto is
// not installed.
std::string HealthRequest(const std::string& service) {
  return service.empty() ? ""
                         : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void TearDown() override { service_->Release(); }

  void Start(const Limits& limits) {
    server_.reset();
    service_ = std::make_unique<ScriptedService>(limits);
    auto server = RpcServer::Start(*service_, {});
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->port()),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::Conductor::NewStub(channel_);
  }

  static v1::QueryRequest MakeRequest(const std::string& model) {
    v1::QueryRequest request;
    request.set_model(model);
    request.set_block_size(16);
    return request;
  }
  grpc::Status Query(const v1::QueryRequest& request) {
    context_ = std::make_unique<grpc::ClientContext>();
    response_.Clear();
    return stub_->Query(context_.get(), request, &response_);
  }
  std::string Trailer(const std::string& name) const {
    const auto& trailers = context_->GetServerTrailingMetadata();
    const auto found = trailers.find(name);
    return found == trailers.end() ? "(absent)"
                                   : std::string(found->second.data(), found->second.size());
  }

  // The raw call of a service whose messages we do not have.
  grpc::Status RawCall(const std::string& method, const std::string& request,
                       std::string* response) {
    grpc::internal::RpcMethod rpc(method.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
    grpc::ClientContext context;
    grpc::Slice slice(request);
    const grpc::ByteBuffer in(&slice, 1);
    grpc::ByteBuffer out;
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall(channel_.get(), rpc, &context, in, &out);
    std::vector<grpc::Slice> slices;
    if (status.ok() && out.Dump(&slices).ok()) {
      for (const auto& part : slices) {
        response->append(reinterpret_cast<const char*>(part.begin()), part.size());
      }
    }
    return status;
  }
  int Health(const std::string& service) {
    std::string response;
    const auto status = RawCall("/grpc.health.v1.Health/Check", HealthRequest(service), &response);
    if (!status.ok()) return -static_cast<int>(status.error_code());
    return response.size() == 2 ? response[1] : 0;  // 1 SERVING, 2 NOT_SERVING
  }

  std::unique_ptr<ScriptedService> service_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Conductor::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::QueryResponse response_;
};

TEST_F(ServerTest, BytesThatAreNoMessageAreRefusedAndTheNextCallIsServed) {
  for (int i = 0; i < 100; ++i) {
    std::string response;
    // Field 5, 100 bytes long, of which none is there.
    const auto status = RawCall("/conductor.v1.Conductor/Query", "\x2a\x64", &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL) << status.error_message();
  }
  EXPECT_EQ(service_->queries(), 0);
  EXPECT_TRUE(Query(MakeRequest("empty")).ok());
}

TEST_F(ServerTest, AMethodThatIsNotOursIsUnimplemented) {
  std::string response;
  EXPECT_EQ(RawCall("/conductor.v1.Conductor/Later", "", &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServerTest, CallsOfEverySizeDoNotMeetInTheirArenas) {
  constexpr int kThreads = 8;
  std::vector<std::thread> callers;
  for (int thread = 0; thread < kThreads; ++thread) {
    callers.emplace_back([this, thread] {
      for (int i = 0; i < 40; ++i) {
        auto request = MakeRequest("echo");
        const int tokens = (i % 4 == 3 ? 60'000 : 50 * i) + thread;  // also beyond the kept block
        for (int t = 0; t < tokens; ++t) request.add_token_ids(1);
        grpc::ClientContext context;
        v1::QueryResponse response;
        ASSERT_TRUE(stub_->Query(&context, request, &response).ok());
        const std::string expected =
            "n=" + std::to_string(tokens) + " sum=" + std::to_string(tokens) + " ";
        EXPECT_EQ(response.instances(0).instance_id().substr(0, expected.size()), expected);
      }
    });
  }
  for (auto& caller : callers) caller.join();
}

TEST_F(ServerTest, TheOfficialClientIsAnswered) {
  auto request = MakeRequest("echo");
  request.add_token_ids(-7);
  ASSERT_TRUE(Query(request).ok());
  ASSERT_EQ(response_.instances_size(), 1);
  EXPECT_EQ(response_.instances(0).instance_id().substr(0, 10), "n=1 sum=-7");
}

TEST_F(ServerTest, EveryAnswerCarriesItsLogPosition) {
  ASSERT_TRUE(Query(MakeRequest("echo")).ok());
  EXPECT_EQ(Trailer("conductor-log-seq"), "42");
  EXPECT_EQ(Trailer("conductor-degraded"), "(absent)");
}

TEST_F(ServerTest, DegradedInstancesAreNamed) {
  ASSERT_TRUE(Query(MakeRequest("ranks")).ok());
  EXPECT_EQ(Trailer("conductor-degraded"), "b");
  EXPECT_EQ(Trailer("conductor-degraded-total"), "(absent)");
}

TEST_F(ServerTest, ALongListOfDegradedInstancesIsCutAndCounted) {
  ASSERT_TRUE(Query(MakeRequest("degraded")).ok());
  EXPECT_EQ(Trailer("conductor-degraded").substr(0, 36), "instance%2C%200, instance%2C%201, in");
  EXPECT_LE(Trailer("conductor-degraded").size(), kDegradedTrailerBytesMax);
  EXPECT_EQ(Trailer("conductor-degraded-total"), "2000");
  EXPECT_EQ(response_.degraded_size(), 2'000) << "the body has all of them";
}

TEST_F(ServerTest, ABatchCarriesTheTrustOfItsAnswers) {
  v1::QueryBatchRequest request;
  *request.add_queries() = MakeRequest("echo");
  *request.add_queries() = MakeRequest("ranks");
  context_ = std::make_unique<grpc::ClientContext>();
  v1::QueryBatchResponse response;
  ASSERT_TRUE(stub_->QueryBatch(context_.get(), request, &response).ok());
  EXPECT_EQ(response.answers_size(), 2);
  EXPECT_EQ(Trailer("conductor-log-seq"), "42");
  EXPECT_EQ(Trailer("conductor-degraded"), "b");
}

TEST_F(ServerTest, AFailedCallSaysWhyInDetailAndTrailers) {
  auto request = MakeRequest("echo");
  request.set_block_size(0);
  const grpc::Status status = Query(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Trailer("conductor-reason"), "out_of_range");
  EXPECT_EQ(Trailer("conductor-field"), "block_size");
  const Error error = ParseErrorDetail(3, "", status.error_details());
  EXPECT_EQ(error.reason, "out_of_range");
  EXPECT_EQ(error.field, "block_size");
  EXPECT_NE(status.error_message().find("block_size: expected 1.."), std::string::npos);
}

TEST_F(ServerTest, NotReadyIsUnavailable) {
  EXPECT_EQ(Query(MakeRequest("not-ready")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Trailer("conductor-reason"), "not_ready");
}

TEST_F(ServerTest, APromptAboveTheLimitIsResourceExhausted) {
  Limits limits;
  limits.tokens_max = 10;
  Start(limits);
  auto request = MakeRequest("echo");
  request.mutable_token_ids()->Resize(11, 1);
  EXPECT_EQ(Query(request).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Trailer("conductor-reason"), "too_large");
}

TEST_F(ServerTest, AMessageAboveTheLimitIsResourceExhausted) {
  Limits limits;
  limits.rpc_message_bytes_max = 1'000;
  Start(limits);
  auto request = MakeRequest("echo");
  request.mutable_token_ids()->Resize(1'000, 1);
  EXPECT_EQ(Query(request).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ServerTest, AnExpiredCallNeverReachesTheService) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
  v1::QueryResponse response;
  EXPECT_EQ(stub_->Query(&context, MakeRequest("echo"), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(service_->queries(), 0);
}

TEST_F(ServerTest, HealthIsTheProcessFirstAndTheServiceWhenReady) {
  const std::string conductor = "conductor.v1.Conductor";
  EXPECT_EQ(Health(""), 1);
  EXPECT_EQ(Health("conductor.v1.Admin"), 1);
  EXPECT_EQ(Health(conductor), 2);
  server_->SetServing(true);
  EXPECT_EQ(Health(conductor), 1);
  server_->SetServing(false);
  EXPECT_EQ(Health(conductor), 2);
  EXPECT_EQ(Health("unknown"), -static_cast<int>(grpc::StatusCode::NOT_FOUND));
}

TEST_F(ServerTest, ReflectionListsOurServices) {
  // ServerReflectionRequest{list_services: "*"} as a stream of one.
  grpc::internal::RpcMethod rpc("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                grpc::internal::RpcMethod::BIDI_STREAMING);
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
          channel_.get(), rpc, &context));
  grpc::Slice slice(std::string("\x3a\x01*"));
  ASSERT_TRUE(stream->Write(grpc::ByteBuffer(&slice, 1)));
  grpc::ByteBuffer reply;
  ASSERT_TRUE(stream->Read(&reply));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(reply.Dump(&slices).ok());
  std::string text;
  for (const auto& part : slices) {
    text.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  for (const char* name :
       {"conductor.v1.Conductor", "conductor.v1.Admin", "grpc.health.v1.Health"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

TEST_F(ServerTest, ASecondServerOnThePortIsRefused) {
  ScriptedService other;
  const auto second = RpcServer::Start(other, {.port = server_->port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(second.error().message.find("127.0.0.1:" + std::to_string(server_->port())),
            std::string::npos)
      << second.error().message;
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
}

TEST_F(ServerTest, AnAddressThatIsNotOursIsRefused) {
  ScriptedService other;
  EXPECT_FALSE(RpcServer::Start(other, {.listen_address = "192.0.2.1"}));
  EXPECT_FALSE(RpcServer::Start(other, {.listen_address = "no-such-host.invalid"}));
}

TEST_F(ServerTest, StopCancelsWhatRunsAfterItsDeadline) {
  std::thread caller([&] {
    EXPECT_FALSE(Query(MakeRequest("block")).ok());  // cancelled, not answered
  });
  ASSERT_TRUE(service_->AwaitBlocked(1));
  std::thread stopper([&] { server_->Stop(50); });
  caller.join();
  service_->Release();  // the handler is waited for
  stopper.join();
  server_->Stop(50);  // idempotent
}

TEST_F(ServerTest, MoreCallsThanThreadsAreRefusedNotQueued) {
  std::vector<std::thread> callers;
  std::atomic<int> refused{0};
  std::atomic<int> answered{0};
  constexpr int kCalls = kRpcThreadsMax + 10;
  for (int i = 0; i < kCalls; ++i) {
    callers.emplace_back([&] {
      grpc::ClientContext context;
      v1::QueryResponse response;
      const auto status = stub_->Query(&context, MakeRequest("block"), &response);
      if (status.ok()) ++answered;
      if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && ++refused == 1) {
        service_->Release();
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_GE(refused, 1);
  EXPECT_EQ(answered + refused, kCalls);
}

TEST(TrailersTest, MetadataIsPrintableAscii) {
  EXPECT_EQ(EncodeMetadata("plain-id_0.1:2/x"), "plain-id_0.1:2/x");
  EXPECT_EQ(EncodeMetadata("a,b %\xC3\xA9\n"), "a%2Cb%20%25%C3%A9%0A");
}

}  // namespace
}  // namespace conductor::rpc
