// A gRPC client of the daemon for conductorctl and the Python module: the Service's calls, with the
// domain's types, and Error as the server meant it (code, message, reason, field).
//
// It speaks gRPC over a small HTTP/2 connection of our own (http2/connection.h) and starts no
// thread, so it lives in any process, forked ones included (README.md says why not grpc++).
// Thread-safe; each call runs on its caller's thread and ends within its timeout. After fork() the
// child's calls use connections of their own.
//
//   auto client = RpcClient::Connect("127.0.0.1:50052", {.connect_timeout_ms = 1000});
//   if (!client) ...
//   auto services = (*client)->ListServices();
//
// Errors that do not come from the server: kInvalidArgument / `invalid_value` on `address` (not
// host:port), kUnavailable without reason (no connection, broken transport), kDeadlineExceeded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/query.h"
#include "src/registration.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor::rpc {

class Channel;

class RpcClient {
 public:
  struct Options {
    std::uint32_t connect_timeout_ms = 1'000;
    std::uint32_t request_timeout_ms = 3'000;
  };

  // Returns when a connection is usable: the peer has sent its HTTP/2 settings. A peer that accepts
  // and stays silent is kUnavailable.
  static Result<std::unique_ptr<RpcClient>> Connect(const std::string& address,
                                                    const Options& options);
  ~RpcClient();
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  // The spans of a query are copied once, straight into the request's buffer.
  Result<QueryAnswer> Query(const PromptQuery& query) const;
  Result<QueryAnswer> QueryByHash(const HashQuery& query) const;
  // One result for each query, in order; the outer error is the call's own.
  Result<std::vector<Result<QueryAnswer>>> QueryBatch(std::span<const PromptQuery> queries) const;

  Result<RegisterOutcome> Register(const RegistrationRequest& request) const;
  Result<std::string> Unregister(const std::string& instance_id, const std::string& tenant_id,
                                 std::int64_t dp_rank) const;

  Result<std::vector<ServiceView>> ListServices() const;
  Result<std::vector<ContextView>> GetGlobalView() const;

  Result<StatusView> GetStatus() const;
  Result<SnapshotInfo> CreateSnapshot() const;
  Result<std::vector<SnapshotInfo>> ListSnapshots() const;
  Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t keep) const;
  Result<SnapshotInfo> CreateCheckpoint() const;
  Status RemoveCheckpoint(const std::string& path) const;
  Result<Service::LogLines> InspectLog(Seq from, std::uint32_t count_max, StreamId stream) const;
  Result<std::vector<std::string>> InspectBlock(std::uint64_t hash) const;

 private:
  RpcClient(std::unique_ptr<Channel> channel, std::uint32_t request_timeout_ms);
  std::unique_ptr<Channel> channel_;
  std::uint32_t request_timeout_ms_;
};

}  // namespace conductor::rpc
