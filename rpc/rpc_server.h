// The gRPC front end: conductor.v1.Conductor and Admin, the standard health service and reflection
// on one port. Owned by the composition root; borrows the Service, which must outlive it.
//
//   int main() {
//     conductor::rpc::InitializeRpcProcess();   // first thing, before any thread
//     ...
//     auto server = RpcServer::Start(service, {.listen_address = "127.0.0.1", .port = 50052});
//     (*server)->SetServing(true);              // once the log is rebuilt
//     ...
//     (*server)->Stop(2'000);
//
// Start, Stop and the destructor belong to one thread; SetServing and port may be called by any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/limits.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor::rpc {

// Threads of the server, pollers and handlers together. A call that would need one more is refused
// with RESOURCE_EXHAUSTED; registrations wait for the disk on theirs.
inline constexpr int kRpcThreadsMax = 64;
// Buffers of all calls together: sixteen prompts of the largest size and their answers.
inline constexpr std::size_t kRpcMemoryBytesMax = std::size_t{2} << 30;
inline constexpr int kRpcStreamsPerConnectionMax = 1'024;
// How long Stop lets running calls go on when the destructor calls it.
inline constexpr std::uint32_t kRpcStopMs = 1'000;

// Turns on the health service and reflection for every server of the process. Neither switch is
// thread-safe: call it at the top of main. Calling it again does nothing.
void InitializeRpcProcess();

class RpcServer {
 public:
  struct Options {
    std::string listen_address =
        "127.0.0.1";         // a host or IP, without port; IPv6 with or without []
    std::uint16_t port = 0;  // 0: any free port
  };

  // Serves when it returns. The limits are the service's. The error of a port in use says so
  // (kUnavailable); a second server never shares the port of a first one.
  static Result<std::unique_ptr<RpcServer>> Start(Service& service, const Options& options);

  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  std::uint16_t port() const;

  // What the health service says of conductor.v1.Conductor: NOT_SERVING until this is called with
  // true (the service is ready), and again while it drains. The empty name (the process serves)
  // and conductor.v1.Admin are SERVING from the start.
  void SetServing(bool serving);

  // Refuses new calls, lets running ones end until the deadline, then cancels them. A handler that
  // is inside the service is waited for. Idempotent.
  void Stop(std::uint32_t deadline_ms);

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace conductor::rpc
