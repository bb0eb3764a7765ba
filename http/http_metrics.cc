#include "http/http_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace conductor::http {

namespace {

constexpr std::string_view kTransportEventNames[kTransportEventCount] = {
    "accepted", "refused_request", "timed_out", "evicted", "over_budget"};

std::string_view NameOf(const RouteRow& row) {
  return row.route == Route::kUnknown ? std::string_view("other") : row.path;
}

prometheus::MetricFamily GaugeFamily(std::string name, std::string help, double value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  return {std::move(name), std::move(help), prometheus::MetricType::Gauge, {metric}};
}

// Samples of one name become one family, in the order of first sight.
std::vector<prometheus::MetricFamily> FamiliesOf(const std::vector<MetricSample>& samples) {
  std::vector<prometheus::MetricFamily> families;
  std::unordered_map<std::string, std::size_t> positions;
  for (const MetricSample& sample : samples) {
    const auto [known, added] = positions.emplace(sample.name, families.size());
    if (added) {
      families.push_back(
          {"conductor_" + sample.name,
           sample.help,
           sample.counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge,
           {}});
    }
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
    (sample.counter ? metric.counter.value : metric.gauge.value) = sample.value;
    families[known->second].metric.push_back(std::move(metric));
  }
  return families;
}

}  // namespace

void HttpMetrics::CountRequest(Route route, int status, std::chrono::nanoseconds duration) {
  RouteCounters& counters = routes_[static_cast<std::size_t>(route)];
  const auto slot = std::find(kStatuses.begin(), kStatuses.end(), status) - kStatuses.begin();
  counters.by_status[slot].fetch_add(1, std::memory_order_relaxed);
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0));
  const auto bucket =
      std::lower_bound(kBuckets.begin(), kBuckets.end(), (ns + 999) / 1'000) - kBuckets.begin();
  counters.by_duration[bucket].fetch_add(1, std::memory_order_relaxed);
  counters.duration_ns.fetch_add(ns, std::memory_order_relaxed);
}

void HttpMetrics::Count(TransportEvent event) {
  transport_[static_cast<std::size_t>(event)].fetch_add(1, std::memory_order_relaxed);
}

prometheus::MetricFamily HttpMetrics::Requests() const {
  prometheus::MetricFamily family{"conductor_http_requests_total",
                                  "HTTP requests answered, by route and status.",
                                  prometheus::MetricType::Counter,
                                  {}};
  for (const RouteRow& row : kRoutes) {
    const RouteCounters& counters = routes_[static_cast<std::size_t>(row.route)];
    for (std::size_t slot = 0; slot < kStatusSlots; ++slot) {
      const auto count = counters.by_status[slot].load(std::memory_order_relaxed);
      if (count == 0) continue;
      prometheus::ClientMetric metric;
      const bool known = slot < kStatuses.size();
      metric.label = {{"route", std::string(NameOf(row))},
                      {"code", known ? std::to_string(kStatuses[slot]) : "other"}};
      metric.counter.value = static_cast<double>(count);
      family.metric.push_back(std::move(metric));
    }
  }
  return family;
}

prometheus::MetricFamily HttpMetrics::Durations() const {
  prometheus::MetricFamily family{"conductor_http_request_seconds",
                                  "Time from a complete request to its answer, by route.",
                                  prometheus::MetricType::Histogram,
                                  {}};
  for (const RouteRow& row : kRoutes) {
    const RouteCounters& counters = routes_[static_cast<std::size_t>(row.route)];
    prometheus::ClientMetric metric;
    metric.label = {{"route", std::string(NameOf(row))}};
    std::uint64_t total = 0;
    for (std::size_t i = 0; i <= kBuckets.size(); ++i) {
      total += counters.by_duration[i].load(std::memory_order_relaxed);
      if (i == kBuckets.size()) break;
      metric.histogram.bucket.push_back({total, static_cast<double>(kBuckets[i]) / 1e6});
    }
    if (total == 0) continue;
    metric.histogram.sample_count = total;
    metric.histogram.sample_sum =
        static_cast<double>(counters.duration_ns.load(std::memory_order_relaxed)) / 1e9;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

prometheus::MetricFamily HttpMetrics::Transport() const {
  prometheus::MetricFamily family{"conductor_http_connection_events_total",
                                  "What happened to HTTP connections.",
                                  prometheus::MetricType::Counter,
                                  {}};
  for (std::size_t i = 0; i < kTransportEventCount; ++i) {
    prometheus::ClientMetric metric;
    metric.label = {{"event", std::string(kTransportEventNames[i])}};
    metric.counter.value = static_cast<double>(transport_[i].load(std::memory_order_relaxed));
    family.metric.push_back(std::move(metric));
  }
  return family;
}

std::vector<prometheus::MetricFamily> HttpMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families = FamiliesOf(service_.CollectMetrics());
  families.push_back(Requests());
  families.push_back(Durations());
  families.push_back(Transport());
  families.push_back(
      GaugeFamily("conductor_http_connections", "Open HTTP connections.",
                  static_cast<double>(connections_.load(std::memory_order_relaxed))));
  families.push_back(
      GaugeFamily("conductor_http_buffered_bytes", "Request and answer bytes held in memory.",
                  static_cast<double>(buffered_bytes_.load(std::memory_order_relaxed))));
  return families;
}

std::string HttpMetrics::Render() const {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, Collect());
  return text.str();
}

}  // namespace conductor::http
