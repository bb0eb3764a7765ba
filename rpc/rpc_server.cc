#include "rpc/rpc_server.h"

#include <arpa/inet.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include "rpc/admin_handlers.h"
#include "rpc/conductor_handlers.h"

namespace conductor::rpc {
namespace {

std::string HostPort(const RpcServer::Options& options) {
  const std::string& host = options.listen_address;
  const bool bare_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(options.port);
}

// Why nobody can listen there, or empty. gRPC itself only says that it could not, and says it on
// stderr; binding by hand first tells the reason. A port lost in between is still refused by gRPC.
std::string BindFailure(const RpcServer::Options& options) {
  std::string host = options.listen_address;
  if (host.size() >= 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.c_str(), std::to_string(options.port).c_str(), &hints, &found);
  if (rc != 0) return gai_strerror(rc);
  std::string why;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(fd, found->ai_addr, found->ai_addrlen) != 0) {
    why = std::generic_category().message(errno);
  }
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return why;
}

}  // namespace

struct RpcServer::Impl {
  explicit Impl(Service& service) : conductor(service), admin(service) {}

  ConductorHandlers conductor;
  AdminHandlers admin;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
  bool stopped = false;
};

void InitializeRpcProcess() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

Result<std::unique_ptr<RpcServer>> RpcServer::Start(Service& service, const Options& options) {
  InitializeRpcProcess();
  const Limits& limits = service.limits();
  auto impl = std::make_unique<Impl>(service);
  const std::string address = HostPort(options);

  const auto cannot_listen = [&](const std::string& why) {
    return MakeError(ErrorCode::kUnavailable, "rpc server: listen on " + address + ": " + why);
  };
  if (const std::string why = BindFailure(options); !why.empty()) return cannot_listen(why);

  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &impl->port);
  builder.RegisterService(&impl->conductor);
  builder.RegisterService(&impl->admin);
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.rpc_message_bytes_max));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(limits.header_bytes_max));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kRpcStreamsPerConnectionMax);
  grpc::ResourceQuota quota("conductor_rpc");
  quota.Resize(kRpcMemoryBytesMax);
  quota.SetMaxThreads(kRpcThreadsMax);
  builder.SetResourceQuota(quota);
  using Sync = grpc::ServerBuilder::SyncServerOption;
  builder.SetSyncServerOption(Sync::NUM_CQS, 1);
  builder.SetSyncServerOption(Sync::MIN_POLLERS, 1);
  builder.SetSyncServerOption(Sync::MAX_POLLERS, 4);

  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || impl->port == 0) {
    return cannot_listen("gRPC could not");
  }
  std::unique_ptr<RpcServer> server(new RpcServer(std::move(impl)));
  server->impl_->server->GetHealthCheckService()->SetServingStatus(v1::Admin::service_full_name(),
                                                                   true);
  server->SetServing(false);
  return server;
}

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RpcServer::~RpcServer() {
  Stop(kRpcStopMs);
}

std::uint16_t RpcServer::port() const {
  return static_cast<std::uint16_t>(impl_->port);
}

void RpcServer::SetServing(bool serving) {
  impl_->server->GetHealthCheckService()->SetServingStatus(v1::Conductor::service_full_name(),
                                                           serving);
}

void RpcServer::Stop(std::uint32_t deadline_ms) {
  if (impl_->stopped) return;
  impl_->stopped = true;
  impl_->server->Shutdown(std::chrono::system_clock::now() +
                          std::chrono::milliseconds(deadline_ms));
  impl_->server->Wait();
}

}  // namespace conductor::rpc
