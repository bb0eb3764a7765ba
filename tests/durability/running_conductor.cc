#include "tests/durability/running_conductor.h"

#include <algorithm>
#include <utility>

#include "src/check.h"

namespace conductor::durability {
namespace {

ServiceOptions WithNotice(ServiceOptions options, Awaiter& awaiter) {
  options.logger = [&awaiter](LogLevel, const std::string&) { awaiter.Notify(); };
  return options;
}

}  // namespace

ServiceOptions RunningConductor::QuickOptions() {
  ServiceOptions options;
  options.log_sync_interval_ms = 1;
  options.snapshot_interval_events = 0;
  options.snapshot_interval_s = 0;
  options.limits.reconnect_ms_min = 20;
  options.limits.reconnect_ms_max = 100;
  options.limits.replay_jitter_ms_max = 10;
  return options;
}

RunningConductor::RunningConductor(ServiceOptions options, EventLog& log, SnapshotStore& snapshots,
                                   const Clock& clock, Awaiter& awaiter,
                                   std::int64_t disconnected_drop_ms)
    : service_(WithNotice(std::move(options), awaiter), log, snapshots, clock) {
  SubscriptionOptions stream_options;
  stream_options.limits = service_.limits();
  stream_options.disconnected_drop_ms = disconnected_drop_ms;
  auto opened = Subscriptions::Open(stream_options, service_, service_, stream_clock_);
  CHECK(opened);
  streams_ = std::move(*opened);
  service_.Start(*streams_, {});
}

RunningConductor::~RunningConductor() {
  Stop();
}

Result<RegisterOutcome> RunningConductor::Register(const std::string& instance,
                                                   const std::string& endpoint,
                                                   const std::string& replay_endpoint) {
  RegistrationRequest request;
  request.instance_id = instance;
  request.endpoint = endpoint;
  request.replay_endpoint = replay_endpoint;
  request.type = "vLLM";
  request.modelname = "m";
  request.block_size = kBlockSize;
  request.dp_rank = 0;
  request.hash_profile = RegistrationRequest::Profile{"vllm_v1", "sha256_cbor", "0", "low64_be"};
  return service_.Register(request);
}

StatusView RunningConductor::Status() const {
  return service_.GetStatus().value_or(StatusView{});
}

double RunningConductor::Metric(const std::string& name) const {
  for (const MetricSample& sample : service_.CollectMetrics()) {
    if (sample.name == name) return sample.value;
  }
  return -1;
}

std::optional<ServiceView> RunningConductor::View(const std::string& instance) const {
  const auto views = service_.ListServices();
  if (!views) return std::nullopt;
  for (const ServiceView& view : *views) {
    if (view.registration.instance_id == instance) return view;
  }
  return std::nullopt;
}

std::vector<std::string> RunningConductor::Instances() const {
  auto views = service_.ListServices().value_or(std::vector<ServiceView>{});
  std::sort(views.begin(), views.end(),
            [](const auto& a, const auto& b) { return a.stream < b.stream; });
  std::vector<std::string> instances;
  for (const ServiceView& view : views) instances.push_back(view.registration.instance_id);
  return instances;
}

std::string RunningConductor::Ask(const std::vector<std::int32_t>& tokens) const {
  PromptQuery query;
  query.context = {"default", "m", "", kBlockSize};
  query.token_ids = tokens;
  const auto answer = service_.Query(query);
  if (!answer) return answer.error().message;
  std::string text;
  for (const InstanceHits& hits : answer->instances) {
    text += hits.instance_id + "=" + std::to_string(hits.best.disk) + " ";
  }
  if (!answer->degraded.empty()) text += "degraded:";
  for (const std::string& instance : answer->degraded) text += " " + instance;
  return text;
}

std::string RunningConductor::Describe() const {
  const StatusView status = Status();
  std::string text = status.readiness.phase + " applied=" + std::to_string(status.log_applied) +
                     " blocks=" + std::to_string(status.blocks) + " digest=" + status.digest +
                     " log_error=" + status.log_error + "\n";
  for (const ServiceView& view : service_.ListServices().value_or(std::vector<ServiceView>{})) {
    text += "  " + view.registration.instance_id + " " + std::string(ToString(view.status.state)) +
            " epoch=" + std::to_string(view.epoch) +
            " last=" + (view.last_seq ? std::to_string(*view.last_seq) : "none") +
            " lost=" + std::to_string(view.lost_ranges.size()) + " hash=" + view.hash_check +
            " error=" + view.status.last_error + "\n";
  }
  return text;
}

}  // namespace conductor::durability
