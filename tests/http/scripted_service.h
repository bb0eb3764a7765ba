// A Service that answers what a test told it to and remembers what it was asked. Thread-safe: the
// server calls it from its own threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/service.h"
#include "tests/slowness.h"

namespace conductor::http {

// What the last query said, copied out of its borrowed spans.
struct SeenQuery {
  ContextKey context;
  std::vector<std::int32_t> token_ids;
  std::vector<std::uint64_t> hashes;
  std::string cache_salt;
  std::vector<ExtraKeys> extra_keys;
  QueryOptions options;
};

class ScriptedService final : public Service {
 public:
  // --- the script: set before the server starts, or under no load ---
  Result<QueryAnswer> query_answer = QueryAnswer{};
  Result<RegisterOutcome> register_outcome = RegisterOutcome{"vllm-0", false};
  Result<std::string> unregister_answer = std::string("vllm-0|default|0");
  Result<std::vector<ServiceView>> services;
  Result<std::vector<ContextView>> contexts;
  Readiness readiness{.ready = true, .phase = "ready", .replayed = 10, .total = 10};
  Result<StatusView> status = StatusView{};
  std::vector<MetricSample> metrics;

  // While closed, Register waits inside the service.
  void CloseGate() {
    const std::lock_guard lock(mutex_);
    gate_open_ = false;
  }
  void OpenGate() {
    const std::lock_guard lock(mutex_);
    gate_open_ = true;
    changed_.notify_all();
  }
  // Waits until `count` registrations stand at the gate.
  bool AwaitAtGate(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10 * kSlowness),
                             [&] { return at_gate_ >= count; });
  }

  SeenQuery seen_query() const { return Copy(seen_query_); }
  RegistrationRequest seen_registration() const { return Copy(seen_registration_); }
  ServiceKey seen_key() const { return Copy(seen_key_); }
  int calls() const { return Copy(calls_); }

  Result<QueryAnswer> Query(const PromptQuery& query) const override {
    const std::lock_guard lock(mutex_);
    ++calls_;
    seen_query_ = {query.context,
                   {query.token_ids.begin(), query.token_ids.end()},
                   {},
                   query.cache_salt,
                   query.extra_keys,
                   query.options};
    return query_answer;
  }

  Result<QueryAnswer> QueryByHash(const HashQuery& query) const override {
    const std::lock_guard lock(mutex_);
    ++calls_;
    seen_query_ = {query.context, {}, {query.hashes.begin(), query.hashes.end()}, "", {},
                   query.options};
    return query_answer;
  }

  Result<RegisterOutcome> Register(const RegistrationRequest& request) override {
    std::unique_lock lock(mutex_);
    ++calls_;
    seen_registration_ = request;
    ++at_gate_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return gate_open_; });
    --at_gate_;
    return register_outcome;
  }

  Result<std::string> Unregister(const ServiceKey& key) override {
    const std::lock_guard lock(mutex_);
    ++calls_;
    seen_key_ = key;
    return unregister_answer;
  }

  Result<std::vector<ServiceView>> ListServices() const override { return services; }
  Result<std::vector<ContextView>> GetGlobalView() const override { return contexts; }
  Readiness GetReadiness() const override { return readiness; }
  Result<StatusView> GetStatus() const override { return status; }
  std::vector<MetricSample> CollectMetrics() const override { return metrics; }
  Result<SnapshotInfo> CreateSnapshot() override { return SnapshotInfo{}; }
  Result<std::vector<SnapshotInfo>> ListSnapshots() const override {
    return std::vector<SnapshotInfo>{};
  }
  Result<std::vector<SnapshotInfo>> PruneSnapshots(std::uint32_t) override {
    return std::vector<SnapshotInfo>{};
  }
  Result<SnapshotInfo> CreateCheckpoint() override { return SnapshotInfo{}; }
  Status RemoveCheckpoint(const std::string&) override { return {}; }
  Result<LogLines> InspectLog(Seq, std::uint32_t, StreamId) const override { return LogLines{}; }
  Result<std::vector<std::string>> InspectBlock(std::uint64_t) const override {
    return std::vector<std::string>{};
  }
  const Limits& limits() const override { return limits_; }

 private:
  template <typename T>
  T Copy(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  Limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool gate_open_ = true;
  int at_gate_ = 0;
  mutable int calls_ = 0;
  mutable SeenQuery seen_query_;
  RegistrationRequest seen_registration_;
  ServiceKey seen_key_;
};

}  // namespace conductor::http
