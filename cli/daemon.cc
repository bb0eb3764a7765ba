#include "cli/daemon.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "cli/disk_error.h"
#include "cli/logging.h"
#include "cli/ports_file.h"
#include "cli/spare_memory.h"
#include "cli/system_clock.h"
#include "cli/text.h"
#include "conductor_version.h"
#include "http/http_server.h"
#include "replay/subscriptions.h"
#include "rpc/rpc_server.h"
#include "src/index/mix.h"
#include "storage/log_format.h"
#include "storage/rocksdb_event_log.h"

namespace conductor::cli {

namespace {

using storage::RocksDbEventLog;

// Of the fingerprint that the log holds (docs/log_format.md).
constexpr std::uint32_t kFingerprintVersion = 1;
constexpr std::chrono::milliseconds kObserveInterval{100};
constexpr std::int64_t kProgressIntervalMs = 5'000;

Status MakeParentDirectories(const std::string& data_dir) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(data_dir).parent_path();
  if (parent.empty()) return {};
  std::filesystem::create_directories(parent, error);
  if (!error) return {};
  return MakeError(DiskErrorCode(error.value()), "data directory " + data_dir + ": " +
                                                     parent.string() +
                                                     " cannot be created: " + error.message());
}

// A port that cannot be had is a wrong configuration, not a state that passes.
tl::unexpected<Error> CannotListen(Error error) {
  error.code = ErrorCode::kFailedPrecondition;
  return tl::unexpected(std::move(error));
}

ServiceOptions MakeServiceOptions(const Config& config) {
  ServiceOptions options;
  options.limits = config.limits;
  options.log_sync = config.log_sync;
  options.log_sync_interval_ms = config.log_sync_interval_ms;
  options.snapshot_interval_events = config.snapshot_interval_events;
  options.snapshot_interval_s = config.snapshot_interval_s;
  options.unverified_blocks = config.unverified_blocks;
  options.version = CONDUCTOR_VERSION;
  options.commit = CONDUCTOR_COMMIT;
  options.data_dir = config.data_dir;
  options.logger = LogLine;
  return options;
}

SubscriptionOptions MakeStreamOptions(const Config& config) {
  SubscriptionOptions options;
  options.limits = config.limits;
  options.unverified_blocks = config.unverified_blocks;
  options.drop_on_lost_events = config.on_lost_events == OnLostEvents::kDrop;
  options.disconnected_drop_ms = std::int64_t{config.disconnected_drop_s} * 1'000;
  return options;
}

HttpServerOptions MakeHttpOptions(const Config& config) {
  HttpServerOptions options;
  options.listen_address = config.listen_address;
  options.port = config.http_server_port;
  options.limits = config.limits;
  options.version = CONDUCTOR_VERSION;
  options.commit = CONDUCTOR_COMMIT;
  options.formats = {{"log", storage::kRecordFormatVersion}, {"fingerprint", kFingerprintVersion}};
  return options;
}

void LogStart(const Settings& settings) {
  LogLine(LogLevel::kInfo,
          "event=starting version=" CONDUCTOR_VERSION " commit=" CONDUCTOR_COMMIT " pid=" +
              std::to_string(getpid()) + " config=" +
              LogValue(settings.config_path.empty() ? "defaults" : settings.config_path) +
              " data_dir=" + LogValue(settings.config.data_dir));
}

}  // namespace

struct Daemon::Parts {
  explicit Parts(const Settings& from) : settings(from) {}

  const Settings settings;
  SystemClock clock;
  // In this order: each part is used by those below it, and ends after them.
  std::unique_ptr<RocksDbEventLog> log;
  std::unique_ptr<ConductorService> service;
  std::unique_ptr<Subscriptions> streams;
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<rpc::RpcServer> rpc;

  bool stopped = false;
  std::string phase;
  std::int64_t progress_logged_ms = 0;
  SpareMemory spare_memory;
};

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Daemon::~Daemon() {
  Stop();
}

Result<std::unique_ptr<Daemon>> Daemon::Start(const Settings& settings,
                                              std::function<void()> on_fatal) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::make_unique<Parts>(settings)));
  Parts& parts = *daemon->parts_;
  const Config& config = settings.config;
  LogStart(settings);

  CONDUCTOR_RETURN_IF_ERROR(MakeParentDirectories(config.data_dir));
  storage::RocksDbEventLogOptions log_options;
  log_options.data_dir = config.data_dir;
  log_options.on_warning = [](std::string_view line) {
    LogLine(LogLevel::kWarn, "event=rocksdb_warning text=" + LogValue(line));
  };
  CONDUCTOR_ASSIGN_OR_RETURN(parts.log, RocksDbEventLog::Open(std::move(log_options)));
  // Of a life that did not end in good order.
  RemovePortsFile(config.data_dir);
  const storage::RecoveryReport report = parts.log->GetRecoveryReport();
  LogLine(HasLoss(report) ? LogLevel::kWarn : LogLevel::kInfo,
          "event=log_opened " + ToLine(report));

  std::random_device device;
  SetHashMixKey((std::uint64_t{device()} << 32) | device());
  ServiceOptions service_options = MakeServiceOptions(config);
  service_options.log_opening = {report.synced_records_missing, report.dropped_bytes};
  parts.service = std::make_unique<ConductorService>(std::move(service_options), *parts.log,
                                                     *parts.log, parts.clock);
  parts.service->OnFatal(std::move(on_fatal));
  auto http = HttpServer::Start(*parts.service, MakeHttpOptions(config));
  if (!http) return CannotListen(std::move(http.error()));
  parts.http = std::move(*http);
  rpc::RpcServer::Options rpc_options;
  rpc_options.listen_address = config.listen_address;
  rpc_options.port = config.rpc_server_port;
  auto rpc_server = rpc::RpcServer::Start(*parts.service, rpc_options);
  if (!rpc_server) return CannotListen(std::move(rpc_server.error()));
  parts.rpc = std::move(*rpc_server);
  parts.service->SetPorts(parts.http->port(), parts.rpc->port());
  CONDUCTOR_RETURN_IF_ERROR(WritePortsFile(
      config.data_dir, {getpid(), config.listen_address, parts.http->port(), parts.rpc->port()}));
  LogLine(LogLevel::kInfo, "event=listening address=" + config.listen_address +
                               " http_port=" + std::to_string(parts.http->port()) +
                               " rpc_port=" + std::to_string(parts.rpc->port()));

  CONDUCTOR_ASSIGN_OR_RETURN(
      parts.streams,
      Subscriptions::Open(MakeStreamOptions(config), *parts.service, *parts.service, parts.clock));
  parts.service->Start(*parts.streams, config.publishers);
  return daemon;
}

std::uint16_t Daemon::http_port() const {
  return parts_->http->port();
}
std::uint16_t Daemon::rpc_port() const {
  return parts_->rpc->port();
}
std::optional<Error> Daemon::FatalError() const {
  return parts_->service->FatalError();
}

Readiness Daemon::Observe() {
  Readiness readiness = parts_->service->GetReadiness();
  parts_->rpc->SetServing(readiness.ready);
  const std::int64_t now_ms = parts_->clock.MonotonicMs();
  const bool changed = readiness.phase != parts_->phase;
  // How far a rebuild has come is logged by the service.
  const bool slow = readiness.phase == "catching_up" &&
                    now_ms - parts_->progress_logged_ms >= kProgressIntervalMs;
  if (changed || slow) {
    LogLine(LogLevel::kInfo, "event=phase phase=" + readiness.phase +
                                 " replayed=" + std::to_string(readiness.replayed) +
                                 " total=" + std::to_string(readiness.total) +
                                 " streams_waiting=" + std::to_string(readiness.streams_waiting));
    parts_->phase = readiness.phase;
    parts_->progress_logged_ms = now_ms;
  }
  if (parts_->spare_memory.IsDue(now_ms)) GiveBackMemory(now_ms);
  return readiness;
}

void Daemon::GiveBackMemory(std::int64_t now_ms) {
  const auto given_back = parts_->spare_memory.Look(parts_->service->AccountedBytes(), now_ms);
  if (!given_back) return;
  const std::int64_t took_ms = parts_->clock.MonotonicMs() - now_ms;
  LogLine(LogLevel::kInfo, "event=memory_given_back bytes=" + std::to_string(*given_back) +
                               " took_ms=" + std::to_string(took_ms));
}

void Daemon::Stop() {
  if (std::exchange(parts_->stopped, true)) return;
  if (parts_->rpc) parts_->rpc->SetServing(false);
  // The service first: it answers what waits in it, so that no front end has to wait for long.
  if (parts_->service) parts_->service->Stop();
  if (parts_->http) parts_->http->Stop();
  if (parts_->rpc) {
    parts_->rpc->Stop(kRpcDrainMs);
    RemovePortsFile(parts_->settings.config.data_dir);
  }
}

ExitCode RunDaemon(const Settings& settings, StopSignals& signals) {
  Result<std::unique_ptr<Daemon>> daemon = Daemon::Start(settings, [&signals] { signals.Wake(); });
  if (!daemon) {
    LogLine(LogLevel::kError, "event=start_failed reason=" + LogValue(daemon.error().message));
    return FailureExitCode(daemon.error());
  }
  int signal_number = 0;
  while (signals.Wait(kObserveInterval, &signal_number) != StopSignals::Event::kSignal) {
    if ((*daemon)->FatalError()) break;
    (*daemon)->Observe();
  }
  const std::optional<Error> fatal = (*daemon)->FatalError();
  const std::string reason = fatal ? fatal->message : "signal " + std::to_string(signal_number);
  LogLine(fatal ? LogLevel::kError : LogLevel::kInfo, "event=stopping reason=" + LogValue(reason));
  const StopWatchdog watchdog(std::chrono::milliseconds(kStopMsMax),
                              static_cast<int>(fatal ? FailureExitCode(*fatal) : ExitCode::kNo));
  (*daemon).reset();
  LogLine(LogLevel::kInfo, "event=stopped");
  StopLogging();
  return fatal ? FailureExitCode(*fatal) : ExitCode::kOk;
}

}  // namespace conductor::cli
