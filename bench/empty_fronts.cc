#include "bench/empty_fronts.h"

#include <grpcpp/grpcpp.h>
#include <httplib.h>

#include <thread>

#include "bench/harness.h"
#include "rpc/conductor.grpc.pb.h"

namespace conductor::bench {

struct EmptyHttpServer::Parts {
  httplib::Server server;
  int port = 0;
  std::jthread thread;
};

EmptyHttpServer::EmptyHttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<EmptyHttpServer>> EmptyHttpServer::Start() {
  auto parts = std::make_unique<Parts>();
  httplib::Server& server = parts->server;
  server.set_tcp_nodelay(true);
  server.set_keep_alive_timeout(60);  // seconds; the client may be kept waiting by its neighbours
  server.set_keep_alive_max_count(std::size_t{1} << 40);
  server.Post("/query",
              [](const httplib::Request&, httplib::Response&, const httplib::ContentReader& read) {
                std::string body;
                read([&](const char* data, std::size_t size) {
                  body.append(data, size);
                  return true;
                });
              });
  parts->port = server.bind_to_any_port("127.0.0.1");
  if (parts->port <= 0) return Wrong("empty HTTP server: no port");
  parts->thread = std::jthread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();
  return std::unique_ptr<EmptyHttpServer>(new EmptyHttpServer(std::move(parts)));
}

EmptyHttpServer::~EmptyHttpServer() {
  parts_->server.stop();
}

std::uint16_t EmptyHttpServer::port() const {
  return static_cast<std::uint16_t>(parts_->port);
}

namespace {

class EmptyHandlers final : public v1::Conductor::Service {
 public:
  grpc::Status Query(grpc::ServerContext*, const v1::QueryRequest*, v1::QueryResponse*) override {
    return grpc::Status::OK;
  }
};

}  // namespace

struct EmptyRpcServer::Parts {
  EmptyHandlers handlers;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

EmptyRpcServer::EmptyRpcServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<EmptyRpcServer>> EmptyRpcServer::Start() {
  auto parts = std::make_unique<Parts>();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &parts->port);
  builder.RegisterService(&parts->handlers);
  builder.SetMaxReceiveMessageSize(-1);
  using Sync = grpc::ServerBuilder::SyncServerOption;
  builder.SetSyncServerOption(Sync::NUM_CQS, 1);
  builder.SetSyncServerOption(Sync::MIN_POLLERS, 1);
  builder.SetSyncServerOption(Sync::MAX_POLLERS, 4);
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr || parts->port == 0) return Wrong("empty gRPC server: no port");
  return std::unique_ptr<EmptyRpcServer>(new EmptyRpcServer(std::move(parts)));
}

EmptyRpcServer::~EmptyRpcServer() {
  parts_->server->Shutdown();
}

std::string EmptyRpcServer::address() const {
  return "127.0.0.1:" + std::to_string(parts_->port);
}

}  // namespace conductor::bench
