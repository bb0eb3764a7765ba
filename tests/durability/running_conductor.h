// RunningConductor: the service with real subscriptions, on whatever log it is given, as the daemon
// runs it but without front ends. Everything it borrows outlives it. Used by one test thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/subscriptions.h"
#include "src/service/conductor_service.h"
#include "tests/durability/await.h"

namespace conductor::durability {

inline constexpr std::uint32_t kBlockSize = 4;

// The time of the machine, and what a test adds to it.
class MovableClock : public Clock {
 public:
  std::int64_t MonotonicMs() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
               .count() +
           ahead_ms_.load();
  }
  std::int64_t UnixMs() const override { return MonotonicMs(); }
  void Advance(std::int64_t ms) { ahead_ms_.fetch_add(ms); }

 private:
  std::atomic<std::int64_t> ahead_ms_{0};
};

class RunningConductor {
 public:
  // A service that reconnects and gives up quickly, and takes no snapshots by itself.
  static ServiceOptions QuickOptions();

  // `disconnected_drop_ms`: see SubscriptionOptions.
  RunningConductor(ServiceOptions options, EventLog& log, SnapshotStore& snapshots,
                   const Clock& clock, Awaiter& awaiter, std::int64_t disconnected_drop_ms = 0);
  ~RunningConductor();
  void Stop() { service_.Stop(); }
  // The streams' time goes on at once.
  void AdvanceStreams(std::int64_t ms) { stream_clock_.Advance(ms); }

  ConductorService& service() { return service_; }

  // A vLLM engine under that name.
  Result<RegisterOutcome> Register(const std::string& instance, const std::string& endpoint,
                                   const std::string& replay_endpoint);
  StatusView Status() const;
  double Metric(const std::string& name) const;
  std::optional<ServiceView> View(const std::string& instance) const;
  // In the order of registration.
  std::vector<std::string> Instances() const;
  // Every instance's hits, and whether the answer is marked: "a=8 b=4 degraded: b".
  std::string Ask(const std::vector<std::int32_t>& tokens) const;
  // What it knows of each stream, for messages of failed tests.
  std::string Describe() const;

 private:
  MovableClock stream_clock_;
  ConductorService service_;
  std::unique_ptr<Subscriptions> streams_;
};

}  // namespace conductor::durability
