#include "bench/service_rig.h"

#include <stdlib.h>

#include <filesystem>
#include <system_error>
#include <thread>

#include "bench/harness.h"
#include "replay/subscriptions.h"

namespace conductor::bench {
namespace {

constexpr std::chrono::microseconds kPause{200};
constexpr std::size_t kFrameBytes = 8u << 10;  // what the queue accounts for a prefill's frame

// Streams that are always live and never say anything.
class SilentStreams final : public StreamSource {
 public:
  Status Start(const StreamSeed&) override { return {}; }
  void Stop(StreamId) override {}
  std::optional<StreamStatus> GetStatus(StreamId) const override {
    StreamStatus status;
    status.state = StreamState::kLive;
    status.first_catch_up_done = true;
    return status;
  }
  void StopAll() override {}
};

std::int64_t Milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

std::int64_t SteadyClock::MonotonicMs() const {
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch());
}
std::int64_t SteadyClock::UnixMs() const {
  return Milliseconds(std::chrono::system_clock::now().time_since_epoch());
}

Result<std::unique_ptr<ScratchDirectory>> ScratchDirectory::Make(const std::string& parent) {
  std::string pattern = parent + "/conductor-bench-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    return MakeError(ErrorCode::kPermissionDenied, "no directory can be made in " + parent);
  }
  return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(pattern));
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Status WaitUntil(const std::string& what, Poll poll, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return MakeError(ErrorCode::kDeadlineExceeded,
                       what + ": not within " + std::to_string(kPatience.count()) + " s");
    }
    if (poll == Poll::kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
  return {};
}

Result<std::unique_ptr<ServiceRig>> ServiceRig::Start(const std::string& data_dir, Streams streams,
                                                      const Options& rig_options) {
  std::unique_ptr<ServiceRig> rig(new ServiceRig);
  storage::RocksDbEventLogOptions log_options;
  log_options.data_dir = data_dir;
  CONDUCTOR_ASSIGN_OR_RETURN(rig->log_, storage::RocksDbEventLog::Open(std::move(log_options)));
  ServiceOptions options;
  options.log_sync = LogSync::kInterval;
  options.data_dir = data_dir;
  options.snapshot_interval_events = rig_options.snapshot_interval_events;
  options.snapshot_interval_s = 0;
  rig->service_ = std::make_unique<ConductorService>(options, *rig->log_, *rig->log_, rig->clock_);
  StreamSource* source = nullptr;
  if (streams == Streams::kZmq) {
    CONDUCTOR_ASSIGN_OR_RETURN(
        rig->zmq_, Subscriptions::Open({}, *rig->service_, *rig->service_, rig->clock_));
    source = rig->zmq_.get();
  } else {
    rig->none_ = std::make_unique<SilentStreams>();
    source = rig->none_.get();
  }
  const ProcessorWatch processor;
  const Stopwatch watch;
  rig->service_->Start(*source, {});
  CONDUCTOR_RETURN_IF_ERROR(WaitUntil("the service is ready", Poll::kPause, [&] {
    return rig->service_->GetReadiness().ready || rig->service_->FatalError().has_value();
  }));
  rig->start_ns_ = watch.ElapsedNs();
  rig->start_processor_ns_ = processor.ElapsedNs();
  if (const auto fatal = rig->service_->FatalError()) return tl::unexpected(*fatal);
  return rig;
}

ServiceRig::~ServiceRig() {
  if (service_) service_->Stop();
}

Status ServiceRig::Register(std::size_t instance, const std::string& endpoint) {
  RegistrationRequest request;
  request.instance_id = InstanceName(instance);
  request.endpoint = endpoint;
  request.type = "vLLM";
  request.modelname = std::string(kModel);
  request.block_size = kBlockSize;
  request.dp_rank = 0;
  request.hash_profile = RegistrationRequest::Profile{"vllm_v1", "sha256_cbor", "0", "low64_be"};
  CONDUCTOR_RETURN_IF_ERROR(service_->Register(request));
  return {};
}

Status ServiceRig::Offer(StreamId stream, Frame frame) {
  std::vector<Fact> facts;
  facts.emplace_back(std::move(frame));
  if (service_->Offer(stream, facts, kFrameBytes)) return {};
  return WaitUntil("the queue takes a frame", Poll::kPause,
                   [&] { return service_->Offer(stream, facts, kFrameBytes); });
}

Status ServiceRig::Store(const PromptSource& source, StreamId stream, std::uint64_t first,
                         std::size_t count, std::uint64_t& number) {
  for (std::uint64_t p = first; p < first + count; ++p) {
    for (std::size_t at = 0; at < kPromptBlocks; at += kEventBlocks) {
      CONDUCTOR_RETURN_IF_ERROR(
          Offer(stream, MakeFrame(stream, number++, source.StoredEvent(p, at, kEventBlocks))));
    }
  }
  return WaitForBlock(source.Name(first + count - 1, kPromptBlocks - 1).projected, Poll::kPause);
}

bool ServiceRig::Has(std::uint64_t name) const {
  HashQuery query;
  query.context = BenchContext();
  query.hashes = {&name, 1};
  const Result<QueryAnswer> answer = service_->QueryByHash(query);
  return answer && !answer->instances.empty() && answer->instances[0].best.disk > 0;
}

Status ServiceRig::WaitForBlock(std::uint64_t name, Poll poll) {
  return WaitUntil("a block is visible", poll, [&] { return Has(name); });
}

Result<std::uint64_t> ServiceRig::MatchedBlocks(const std::vector<std::int32_t>& tokens) const {
  CONDUCTOR_ASSIGN_OR_RETURN(const QueryAnswer answer, service_->Query(MakeQuery(tokens)));
  return answer.instances.empty() ? 0 : answer.instances[0].best.disk / kBlockSize;
}

}  // namespace conductor::bench
