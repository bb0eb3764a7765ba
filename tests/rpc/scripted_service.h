// A Service whose answers are decided by the request, for the tests of the gRPC server, the client
// and the Python module. Registrations are real (checked by MakeRegistration, kept in a map);
// queries are scripted by the model's name:
//
//   "echo"       one instance whose id spells what arrived (see EchoOf)
//   "empty"      no instance, context unknown
//   "ranks"      instances "a" (ranks 0 and 1) and "b" (rank 0), "b" degraded
//   "degraded"   many degraded instances
//   "not-ready"  kUnavailable / not_ready           "internal"  kInternal
//   "block"      waits until Release()              "bytes"     an instance id that is not UTF-8
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/service.h"

namespace conductor::rpc {

class ScriptedService : public Service {
 public:
  explicit ScriptedService(Limits limits = {}) : limits_(limits) {}

  Result<QueryAnswer> Query(const PromptQuery& query) const override;
  Result<QueryAnswer> QueryByHash(const HashQuery& query) const override;
  Result<RegisterOutcome> Register(const RegistrationRequest& request) override;
  Result<std::string> Unregister(const ServiceKey& key) override;
  Result<std::vector<ServiceView>> ListServices() const override;
  Result<std::vector<ContextView>> GetGlobalView() const override;
  Readiness GetReadiness() const override;
  Result<StatusView> GetStatus() const override;
  std::vector<MetricSample> CollectMetrics() const override { return {}; }
  Result<SnapshotInfo> CreateSnapshot() override;
  Result<std::vector<SnapshotInfo>> ListSnapshots() const override;
  Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t keep) override;
  Result<SnapshotInfo> CreateCheckpoint() override;
  // Only what CreateCheckpoint named is there.
  Status RemoveCheckpoint(const std::string& path) override;
  // Positions below 5 were dropped.
  Result<LogLines> InspectLog(Seq from, std::uint32_t count_max, StreamId stream) const override;
  Result<std::vector<std::string>> InspectBlock(std::uint64_t hash) const override;
  const Limits& limits() const override { return limits_; }

  // "n=3 sum=6 tenant=default lora= salt= filter= keys=0"
  static std::string EchoOf(const PromptQuery& query);

  // Lets every "block" query go on, now and from now on.
  void Release();
  // Waits until `count` "block" queries are inside, at most 10 s.
  bool AwaitBlocked(int count) const;
  int queries() const;

 private:
  Result<QueryAnswer> AnswerOf(const std::string& model) const;

  const Limits limits_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int blocked_ = 0;
  mutable int queries_ = 0;
  bool released_ = false;
  std::map<ServiceKey, Registration> registrations_;
};

}  // namespace conductor::rpc
