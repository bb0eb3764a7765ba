#include "src/service/conductor_service.h"

#include <pthread.h>

#include "src/queries_first.h"
#include "src/service/service_impl.h"

namespace conductor {

tl::unexpected<Error> NotReady(const std::string& message) {
  return tl::unexpected(Error{ErrorCode::kUnavailable, message, kNotReadyReason, "", -1});
}

ConductorService::Impl::Impl(ServiceOptions options, EventLog& log, SnapshotStore& snapshots,
                             const Clock& clock)
    : options_(std::move(options)),
      log_(log),
      snapshots_(snapshots),
      clock_(clock),
      queue_(options_.limits),
      state_(new StateMachine),
      writer_(log, options_.log_sync, options_.limits.unsynced_bytes_max),
      cap_(options_.limits),
      snapshotter_(snapshots, log, clock, SnapshotOptions()) {}

Snapshotter::Options ConductorService::Impl::SnapshotOptions() {
  Snapshotter::Options options;
  options.interval_events = options_.snapshot_interval_events;
  options.interval_s = options_.snapshot_interval_s;
  options.buffer_bytes_max = options_.limits.snapshot_buffer_bytes_max;
  options.set_aside_bytes_max = options_.limits.snapshot_set_aside_bytes_max;
  options.sync_log = [this](Seq seq) -> Status {
    return writer_.synced() >= seq ? Status() : writer_.SyncNow();
  };
  options.wake = [this] { queue_.Wake(); };
  options.log_line = [this](bool error, const std::string& line) {
    Log(error ? LogLevel::kError : LogLevel::kInfo, line);
  };
  return options;
}

ConductorService::Impl::~Impl() {
  Stop();
  retired_states_.FreeAll();
  delete state_.load();
}

void ConductorService::Impl::Start(StreamSource& streams,
                                   std::vector<Registration> static_registrations) {
  streams_ = &streams;
  static_registrations_ = std::move(static_registrations);
  started_ms_ = clock_.MonotonicMs();
  phase_.store(Phase::kRebuilding);
  rebuild_total_.store(log_.LastSeq());
  snapshotter_.Start();
  const QueriesFirst of_these;
  apply_thread_ = std::thread([this] { ApplyLoop(); });
  sync_thread_ = std::thread([this] { SyncLoop(); });
  pthread_setname_np(apply_thread_.native_handle(), "apply");
  pthread_setname_np(sync_thread_.native_handle(), "sync");
}

void ConductorService::Impl::Stop() {
  if (stopped_.exchange(true)) return;
  if (phase_.load() != Phase::kFatal) phase_.store(Phase::kDraining);
  if (streams_ != nullptr) streams_->StopAll();
  queue_.Stop();
  if (apply_thread_.joinable()) apply_thread_.join();
  snapshotter_.Stop();
  {
    MutexLock lock(sync_mutex_);
    sync_stop_ = true;
    sync_wake_.NotifyAll();
  }
  if (sync_thread_.joinable()) sync_thread_.join();
  RefuseCommands("the service is stopping");
}

std::optional<Error> ConductorService::Impl::FatalError() const {
  MutexLock lock(fatal_mutex_);
  return fatal_error_;
}

void ConductorService::Impl::OnFatal(std::function<void()> callback) {
  MutexLock lock(fatal_mutex_);
  on_fatal_ = std::move(callback);
}

Status ConductorService::Impl::CheckServing() const {
  switch (phase_.load(std::memory_order_acquire)) {
    case Phase::kServing:
      return {};
    case Phase::kDraining:
      return NotReady("the service is stopping");
    case Phase::kFatal:
      return NotReady("the state could not be read back: " + FatalError()->message);
    case Phase::kIdle:
    case Phase::kRebuilding:
      break;
  }
  return NotReady(
      "the index is being rebuilt from snapshot and log: " + std::to_string(applied_.load()) +
      " of " + std::to_string(rebuild_total_.load()) + " records");
}

Result<RegisterOutcome> ConductorService::Impl::Register(const RegistrationRequest& request) {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  if (writer_.failed()) return NotReady("the log cannot be written: " + writer_.error());
  RegisterCommand command;
  CONDUCTOR_ASSIGN_OR_RETURN(command.registration, MakeRegistration(request));
  auto done = command.done.get_future();
  if (!queue_.Push(std::move(command))) {
    return NotReady("too many registrations wait (limits.queue_commands_max); try again");
  }
  return done.get();
}

Result<std::string> ConductorService::Impl::Unregister(const ServiceKey& key) {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  if (writer_.failed()) return NotReady("the log cannot be written: " + writer_.error());
  UnregisterCommand command;
  command.key = key;
  if (command.key.tenant_id.empty()) command.key.tenant_id = "default";
  auto done = command.done.get_future();
  if (!queue_.Push(std::move(command))) {
    return NotReady("too many registrations wait (limits.queue_commands_max); try again");
  }
  return done.get();
}

Result<SnapshotInfo> ConductorService::Impl::CreateSnapshot() {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  if (writer_.failed()) return NotReady("the log cannot be written: " + writer_.error());
  return snapshotter_.Request().get();
}

Result<std::vector<SnapshotInfo>> ConductorService::Impl::PruneSnapshots(std::uint32_t keep) {
  CONDUCTOR_RETURN_IF_ERROR(CheckServing());
  CONDUCTOR_ASSIGN_OR_RETURN(std::vector<SnapshotInfo> removed, snapshotter_.Prune(keep));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto checkpoints, snapshots_.RemoveOldCheckpoints());
  removed.insert(removed.end(), checkpoints.begin(), checkpoints.end());
  return removed;
}

std::string LogName(const ServiceKey& key) {
  return "instance=" + key.instance_id + " tenant=" + key.tenant_id +
         " dp_rank=" + std::to_string(key.dp_rank);
}

// --- the public face ----------------------------------------------------------------------------

ConductorService::ConductorService(ServiceOptions options, EventLog& log, SnapshotStore& snapshots,
                                   const Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), log, snapshots, clock)) {}
ConductorService::~ConductorService() = default;

void ConductorService::Start(StreamSource& streams, std::vector<Registration> statics) {
  impl_->Start(streams, std::move(statics));
}
void ConductorService::Stop() {
  impl_->Stop();
}
void ConductorService::SetPorts(std::uint16_t http_port, std::uint16_t rpc_port) {
  impl_->http_port_.store(http_port);
  impl_->rpc_port_.store(rpc_port);
}
std::optional<Error> ConductorService::FatalError() const {
  return impl_->FatalError();
}
void ConductorService::OnFatal(std::function<void()> callback) {
  impl_->OnFatal(std::move(callback));
}
Result<QueryAnswer> ConductorService::Query(const PromptQuery& query) const {
  return impl_->Query(query);
}
Result<QueryAnswer> ConductorService::QueryByHash(const HashQuery& query) const {
  return impl_->QueryByHash(query);
}
Result<RegisterOutcome> ConductorService::Register(const RegistrationRequest& request) {
  return impl_->Register(request);
}
Result<std::string> ConductorService::Unregister(const ServiceKey& key) {
  return impl_->Unregister(key);
}
Result<std::vector<ServiceView>> ConductorService::ListServices() const {
  return impl_->ListServices();
}
Result<std::vector<ContextView>> ConductorService::GetGlobalView() const {
  return impl_->GetGlobalView();
}
Readiness ConductorService::GetReadiness() const {
  return impl_->GetReadiness();
}
Result<StatusView> ConductorService::GetStatus() const {
  return impl_->GetStatus();
}
std::vector<MetricSample> ConductorService::CollectMetrics() const {
  return impl_->CollectMetrics();
}
std::uint64_t ConductorService::AccountedBytes() const {
  return impl_->AccountedBytes();
}
Result<SnapshotInfo> ConductorService::CreateSnapshot() {
  return impl_->CreateSnapshot();
}
Result<std::vector<SnapshotInfo>> ConductorService::ListSnapshots() const {
  return impl_->snapshots_.ListSnapshots();
}
Result<std::vector<SnapshotInfo>> ConductorService::PruneSnapshots(std::uint32_t keep) {
  return impl_->PruneSnapshots(keep);
}
Result<SnapshotInfo> ConductorService::CreateCheckpoint() {
  return impl_->snapshots_.CreateCheckpoint();
}
Status ConductorService::RemoveCheckpoint(const std::string& path) {
  return impl_->snapshots_.RemoveCheckpoint(path);
}
Result<Service::LogLines> ConductorService::InspectLog(Seq from, std::uint32_t count_max,
                                                       StreamId stream) const {
  return InspectRecords(impl_->log_, from, count_max, stream);
}
Result<std::vector<std::string>> ConductorService::InspectBlock(std::uint64_t hash) const {
  return impl_->InspectBlock(hash);
}
const Limits& ConductorService::limits() const {
  return impl_->options_.limits;
}
bool ConductorService::Offer(StreamId stream, std::vector<Fact>& facts, std::size_t bytes) {
  return impl_->queue_.Offer(stream, facts, bytes);
}
void ConductorService::OnStreamState(StreamId stream, StreamState state) {
  impl_->OnStreamState(stream, state);
}
std::optional<Digest> ConductorService::FindDigest(StreamId stream, const std::string& lora_name,
                                                   const BlockName& name) const {
  return impl_->FindDigest(stream, lora_name, name);
}

}  // namespace conductor
