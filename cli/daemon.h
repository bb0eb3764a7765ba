// Daemon: the composition of a running Conductor, and the loop that keeps it until it is told to
// stop. The only place that knows all adapters. Owns everything; one thread calls it.
//
// Order of a start: log, service, front ends (they answer /healthz from here on), streams, rebuild.
// Whatever fails before the rebuild leaves nothing running and changes no record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/exit_code.h"
#include "cli/process.h"
#include "cli/settings.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor::cli {

// A stop that takes longer is cut short; the contract allows 5 s.
inline constexpr std::uint32_t kStopMsMax = 4'500;
// How long running gRPC calls may go on after the service has stopped.
inline constexpr std::uint32_t kRpcDrainMs = 1'000;

class Daemon {
 public:
  // `on_fatal` may be called from any thread, once the service cannot go on (FatalError says why).
  // Errors: FailureExitCode tells how the process ends.
  static Result<std::unique_ptr<Daemon>> Start(const Settings& settings,
                                               std::function<void()> on_fatal);
  ~Daemon();

  std::uint16_t http_port() const;
  std::uint16_t rpc_port() const;
  std::optional<Error> FatalError() const;
  // The readiness now; also hands it to gRPC's health service and logs a change of phase.
  Readiness Observe();
  // Idempotent.
  void Stop();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  void GiveBackMemory(std::int64_t now_ms);
  std::unique_ptr<Parts> parts_;
};

// Starts the daemon and returns when it has stopped: after a signal, or with kDamaged.
ExitCode RunDaemon(const Settings& settings, StopSignals& signals);

}  // namespace conductor::cli
