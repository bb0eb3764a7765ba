#include "cli/process.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace conductor::cli {

namespace {

tl::unexpected<Error> SystemError(const std::string& call) {
  return MakeError(ErrorCode::kInternal, call + ": " + std::strerror(errno));
}

}  // namespace

Result<std::uint64_t> RaiseOpenFilesLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SystemError("getrlimit(RLIMIT_NOFILE)");
  if (limit.rlim_cur == limit.rlim_max) return limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return SystemError("setrlimit(RLIMIT_NOFILE)");
  return limit.rlim_cur;
}

Result<StopSignals> StopSignals::Open() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  // Under nohup a hang-up means "go on". A blocked signal is queued even when it is ignored.
  struct sigaction action {};
  if (sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
    sigaddset(&set, SIGHUP);
  }
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return SystemError("sigprocmask");
  // A peer that closes its connection must not end the daemon.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return SystemError("signal(SIGPIPE)");
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) return SystemError("signalfd");
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    close(signals);
    return SystemError("eventfd");
  }
  return StopSignals(signals, wake);
}

StopSignals::StopSignals(StopSignals&& other) noexcept
    : signals_(std::exchange(other.signals_, -1)), wake_(std::exchange(other.wake_, -1)) {}

StopSignals::~StopSignals() {
  if (signals_ >= 0) close(signals_);
  if (wake_ >= 0) close(wake_);
}

StopSignals::Event StopSignals::Wait(std::chrono::milliseconds timeout, int* signal_number) {
  std::array<pollfd, 2> files = {pollfd{signals_, POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
  if (poll(files.data(), files.size(), static_cast<int>(timeout.count())) <= 0) {
    return Event::kTimeout;  // EINTR included: the caller waits again
  }
  if (files[0].revents != 0) {
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof info) == sizeof info) {
      *signal_number = static_cast<int>(info.ssi_signo);
      return Event::kSignal;
    }
  }
  std::uint64_t count = 0;
  const bool woken = files[1].revents != 0 && read(wake_, &count, sizeof count) == sizeof count;
  return woken ? Event::kWoken : Event::kTimeout;
}

void StopSignals::Wake() {
  const std::uint64_t one = 1;
  // A full counter is as good as one more: the waiter wakes anyway.
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

StopWatchdog::StopWatchdog(std::chrono::milliseconds deadline, int exit_code) {
  thread_ = std::thread([this, deadline, exit_code] {
    std::unique_lock lock(mutex_);
    if (disarm_.wait_for(lock, deadline, [this] { return disarmed_; })) return;
    static constexpr char kMessage[] =
        "level=error event=stop_forced reason=\"the stop did not end in time; the log holds "
        "everything that was acknowledged\"\n";
    // Only where it cannot wait: a full pipe would keep the process after all.
    pollfd file{STDERR_FILENO, POLLOUT, 0};
    if (poll(&file, 1, 0) == 1) {
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
    }
    _exit(exit_code);
  });
}

StopWatchdog::~StopWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    disarmed_ = true;
  }
  disarm_.notify_one();
  thread_.join();
}

}  // namespace conductor::cli
