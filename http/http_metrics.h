// Counters of the front end itself, and /metrics: those plus what Service collects, in the text
// format of Prometheus. Counting is lock-free from any thread; relaxed order, because a counter
// publishes nothing but itself.
#pragma once

#include <prometheus/collectable.h>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "http/routes.h"
#include "src/service.h"

namespace conductor::http {

// Why a connection ended without an answer, or an answer came from the transport.
enum class TransportEvent : std::uint8_t {
  kAccepted,
  kRefusedRequest,  // a header or body that breaks a limit or HTTP
  kTimedOut,        // too slow to send, to read, or idle
  kEvicted,         // made room for a newer connection
  kOverBudget,      // too many bytes in flight over all connections
};
inline constexpr std::size_t kTransportEventCount = 5;

class HttpMetrics final : public prometheus::Collectable {
 public:
  // `service` must outlive this.
  explicit HttpMetrics(const Service& service) : service_(service) {}

  void CountRequest(Route route, int status, std::chrono::nanoseconds duration);
  void Count(TransportEvent event);
  void SetConnections(std::size_t count) { connections_.store(count, std::memory_order_relaxed); }
  void SetBufferedBytes(std::size_t bytes) {
    buffered_bytes_.store(bytes, std::memory_order_relaxed);
  }

  std::vector<prometheus::MetricFamily> Collect() const override;
  std::string Render() const;

 private:
  static constexpr std::array<int, 11> kStatuses = {200, 400, 401, 403, 404, 405,
                                                    413, 415, 431, 500, 503};
  static constexpr std::size_t kStatusSlots = kStatuses.size() + 1;  // the last: any other
  // Upper bounds in microseconds.
  static constexpr std::array<std::uint64_t, 10> kBuckets = {
      100, 250, 500, 1'000, 2'500, 5'000, 10'000, 50'000, 250'000, 1'000'000};

  struct RouteCounters {
    std::array<std::atomic<std::uint64_t>, kStatusSlots> by_status{};
    std::array<std::atomic<std::uint64_t>, kBuckets.size() + 1> by_duration{};
    std::atomic<std::uint64_t> duration_ns{0};
  };

  prometheus::MetricFamily Requests() const;
  prometheus::MetricFamily Durations() const;
  prometheus::MetricFamily Transport() const;

  const Service& service_;
  std::array<RouteCounters, kRouteCount> routes_{};
  std::array<std::atomic<std::uint64_t>, kTransportEventCount> transport_{};
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::size_t> buffered_bytes_{0};
};

}  // namespace conductor::http
