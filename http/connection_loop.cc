#include "http/connection_loop.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include "http/routes.h"

namespace conductor::http {

namespace {

tl::unexpected<Error> SystemError(const std::string& what) {
  return MakeError(ErrorCode::kUnavailable, "HTTP server: " + what + ": " + std::strerror(errno));
}

// A quarter of what the process may open: the rest is for streams and files.
std::size_t ConnectionsMax() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kConnectionsFloor;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, kConnectionsFloor, kConnectionsMax);
}

FileDescriptor OpenSpare() {
  return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool AddToPoller(int poller, int fd, std::uint32_t events, void* tag) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = tag;
  return ::epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) == 0;
}

void ArmAgain(int poller, int fd, void* tag) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.ptr = tag;
  ::epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event);
}

}  // namespace

ConnectionLoop::ConnectionLoop(LoopOptions options, const LibraryExchange& exchange,
                               HttpMetrics& metrics)
    : options_(options),
      exchange_(exchange),
      metrics_(metrics),
      gate_(options.threads),
      connections_max_(ConnectionsMax()) {}

Result<std::unique_ptr<ConnectionLoop>> ConnectionLoop::Start(ListenSocket socket,
                                                              LoopOptions options,
                                                              const LibraryExchange& exchange,
                                                              HttpMetrics& metrics) {
  options.threads = std::max<std::size_t>(options.threads, 1);
  std::unique_ptr<ConnectionLoop> loop(new ConnectionLoop(options, exchange, metrics));
  CONDUCTOR_RETURN_IF_ERROR(loop->Open(std::move(socket)));
  return loop;
}

Status ConnectionLoop::Open(ListenSocket socket) {
  listener_ = std::move(socket.fd);
  {
    const MutexLock lock(spare_mutex_);
    spare_ = OpenSpare();
  }
  poller_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  wake_up_ = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  timer_ = FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!poller_.IsOpen() || !wake_up_.IsOpen() || !timer_.IsOpen()) return SystemError("poller");
  itimerspec interval{};
  interval.it_interval.tv_nsec = kSweepIntervalMs * 1'000'000L;
  interval.it_value = interval.it_interval;
  if (::timerfd_settime(timer_.get(), 0, &interval, nullptr) != 0) return SystemError("timer");
  // The wake-up stays readable, so that every thread sees it. The others are armed for one event:
  // one thread takes it and arms them again.
  const bool added =
      AddToPoller(poller_.get(), wake_up_.get(), EPOLLIN, &wake_up_) &&
      AddToPoller(poller_.get(), listener_.get(), EPOLLIN | EPOLLONESHOT, &listener_) &&
      AddToPoller(poller_.get(), timer_.get(), EPOLLIN | EPOLLONESHOT, &timer_);
  if (!added) return SystemError("poller");
  try {
    for (std::size_t i = 0; i < options_.threads + kReservedThreads; ++i) {
      threads_.emplace_back([this, i] {
        ::pthread_setname_np(::pthread_self(), ("http-" + std::to_string(i)).c_str());
        RunThread();
      });
    }
  } catch (const std::system_error& error) {
    Stop();
    return MakeError(ErrorCode::kResourceExhausted,
                     std::string("HTTP server: cannot start a thread: ") + error.what());
  }
  return {};
}

void ConnectionLoop::Stop() {
  stopping_.store(true, std::memory_order_release);
  if (wake_up_.IsOpen()) ::eventfd_write(wake_up_.get(), 1);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  listener_.Close();
  const MutexLock lock(table_mutex_);
  table_.clear();
}

void ConnectionLoop::RunThread() {
  while (!stopping_.load(std::memory_order_acquire)) {
    epoll_event event{};
    const int count = ::epoll_wait(poller_.get(), &event, 1, -1);
    if (count <= 0 || event.data.ptr == &wake_up_) continue;
    if (event.data.ptr == &listener_) {
      Accept();
      ArmAgain(poller_.get(), listener_.get(), &listener_);
    } else if (event.data.ptr == &timer_) {
      std::uint64_t expirations = 0;
      if (::read(timer_.get(), &expirations, sizeof expirations) > 0) Sweep();
      ArmAgain(poller_.get(), timer_.get(), &timer_);
    } else {
      Serve(static_cast<Connection*>(event.data.ptr));
    }
  }
}

void ConnectionLoop::Accept() {
  for (int i = 0; i < kAcceptsPerWakeUpMax; ++i) {
    FileDescriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.IsOpen()) {
      Admit(std::move(fd));
      continue;
    }
    if (errno != EMFILE && errno != ENFILE) return;
    const MutexLock lock(spare_mutex_);
    spare_.Close();
    FileDescriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).Close();
    spare_ = OpenSpare();
    const MutexLock table_lock(table_mutex_);
    EvictLocked();
    return;
  }
}

void ConnectionLoop::Admit(FileDescriptor fd) {
  metrics_.Count(TransportEvent::kAccepted);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto connection = std::make_unique<Connection>(std::move(fd), options_.framing);
  Connection* added = connection.get();
  SetDeadline(*added, options_.request_ms_max);
  {
    const MutexLock lock(table_mutex_);
    if (table_.size() >= connections_max_ && !EvictLocked()) return;
    table_.emplace(added, std::move(connection));
    metrics_.SetConnections(table_.size());
  }
  bool armed = false;
  {
    const MutexLock lock(HandOverMutex(added));
    armed = AddToPoller(poller_.get(), added->fd(), EPOLLIN | EPOLLONESHOT, added);
  }
  if (!armed) Close(added);
}

bool ConnectionLoop::EvictLocked() {
  Connection* nearest = nullptr;
  std::int64_t nearest_ms = Connection::kNoDeadline;
  for (const auto& [connection, owner] : table_) {
    const auto deadline = connection->deadline_ms.load(std::memory_order_relaxed);
    if (deadline >= nearest_ms || connection->timed_out) continue;
    nearest = connection;
    nearest_ms = deadline;
  }
  if (nearest == nullptr) return false;
  metrics_.Count(TransportEvent::kEvicted);
  nearest->timed_out = true;
  nearest->Shutdown();
  return true;
}

void ConnectionLoop::Sweep() {
  const std::int64_t now = NowMs();
  const MutexLock lock(table_mutex_);
  for (const auto& [connection, owner] : table_) {
    if (connection->deadline_ms.load(std::memory_order_relaxed) > now) continue;
    if (connection->timed_out) continue;
    metrics_.Count(TransportEvent::kTimedOut);
    connection->timed_out = true;
    connection->Shutdown();
  }
}

void ConnectionLoop::Serve(Connection* connection) {
  { const MutexLock lock(HandOverMutex(connection)); }
  Next next = Next::kAgain;
  while (next == Next::kAgain && !stopping_.load(std::memory_order_acquire)) {
    try {
      next = Step(*connection);
    } catch (const std::exception&) {
      next = Next::kClose;  // out of memory: this client's loss, not the process's
    }
  }
  if (next == Next::kClose) Close(connection);
}

ConnectionLoop::Next ConnectionLoop::Step(Connection& connection) {
  switch (connection.step) {
    case Connection::Step::kReading:
      return StepReading(connection);
    case Connection::Step::kReady:
      return StepReady(connection);
    case Connection::Step::kAdmitted:
      return StepExecuting(connection);
    case Connection::Step::kWriting:
      return StepWriting(connection);
    case Connection::Step::kLingering:
      return StepLingering(connection);
  }
  return Next::kClose;
}

ConnectionLoop::Next ConnectionLoop::StepReading(Connection& connection) {
  const auto io = connection.ReadRequest(kReadBytesPerTurnMax);
  CountBytes(connection);
  RequestFraming& framing = connection.framing;
  if (framing.state() == RequestFraming::State::kRefused) {
    metrics_.Count(TransportEvent::kRefusedRequest);
    return Refuse(connection, framing.error(), framing.status());
  }
  if (framing.Finished()) {
    connection.deadline_ms.store(Connection::kNoDeadline, std::memory_order_relaxed);
    connection.step = Connection::Step::kReady;
    return Next::kAgain;
  }
  if (io == Connection::Io::kEnded) return Next::kClose;
  if (connection.counted_bytes > kAlwaysServedBytesMax &&
      buffered_bytes_.load(std::memory_order_relaxed) > options_.buffered_bytes_max) {
    metrics_.Count(TransportEvent::kOverBudget);
    const Error error{ErrorCode::kUnavailable, "too many request bytes in flight: try again",
                      "not_ready", "", -1};
    return Refuse(connection, error, 503);
  }
  if (framing.Started() && !connection.request_started) {
    connection.request_started = true;
    SetDeadline(connection, options_.request_ms_max);
  }
  return io == Connection::Io::kWouldBlock ? Arm(connection, EPOLLIN) : Next::kAgain;
}

ConnectionLoop::Next ConnectionLoop::StepReady(Connection& connection) {
  connection.step = Connection::Step::kAdmitted;
  connection.holds_slot = !FindRoute(connection.framing.path()).probe;
  if (!connection.holds_slot || gate_.TryEnter(&connection)) return Next::kAgain;
  return Next::kNotOurs;
}

ConnectionLoop::Next ConnectionLoop::StepExecuting(Connection& connection) {
  ExchangeResult result;
  try {
    result = exchange_.Run(connection.framing.header(), connection.framing.TakeBody());
  } catch (const std::exception&) {
    result.close = true;
  }
  if (connection.holds_slot) {
    connection.holds_slot = false;
    // A writable socket is reported at once: any free thread goes on with it.
    if (Connection* waiting = gate_.Leave()) Arm(*waiting, EPOLLIN | EPOLLOUT);
  }
  connection.SetOutput(std::move(result.bytes));
  connection.close_after_output = result.close;
  connection.step = Connection::Step::kWriting;
  SetDeadline(connection, options_.request_ms_max);
  return Next::kAgain;
}

ConnectionLoop::Next ConnectionLoop::StepWriting(Connection& connection) {
  const auto io = connection.Flush();
  if (io == Connection::Io::kEnded) return Next::kClose;
  CountBytes(connection);
  if (io == Connection::Io::kWouldBlock) {
    const bool over = buffered_bytes_.load(std::memory_order_relaxed) > options_.buffered_bytes_max;
    if (!over || connection.counted_bytes <= kAlwaysServedBytesMax) {
      return Arm(connection, EPOLLOUT);
    }
    metrics_.Count(TransportEvent::kOverBudget);
    return Next::kClose;
  }
  if (connection.close_after_output) {
    connection.ShutdownWrite();
    connection.step = Connection::Step::kLingering;
    SetDeadline(connection, kLingerMsMax);
    return Next::kAgain;
  }
  connection.StartNextRequest();
  SetDeadline(connection, kIdleMsMax);
  return Next::kAgain;
}

ConnectionLoop::Next ConnectionLoop::StepLingering(Connection& connection) {
  const auto io = connection.Discard();
  return io == Connection::Io::kWouldBlock ? Arm(connection, EPOLLIN) : Next::kClose;
}

ConnectionLoop::Next ConnectionLoop::Refuse(Connection& connection, const Error& error,
                                            int status) {
  metrics_.CountRequest(Route::kUnknown, status, std::chrono::nanoseconds(0));
  const HttpReply reply = Router::Refusal(error, status, connection.framing.content_type(),
                                          connection.framing.accept());
  connection.SetOutput(LibraryExchange::WriteRefusal(reply));
  connection.framing.Reset();  // its bytes are of no use any more
  connection.close_after_output = true;
  connection.step = Connection::Step::kWriting;
  SetDeadline(connection, options_.request_ms_max);
  return Next::kAgain;
}

ConnectionLoop::Next ConnectionLoop::Arm(Connection& connection, std::uint32_t events) {
  epoll_event event{};
  event.events = events | EPOLLONESHOT;
  event.data.ptr = &connection;
  const MutexLock lock(HandOverMutex(&connection));
  // From here on another thread may have it.
  const bool armed = ::epoll_ctl(poller_.get(), EPOLL_CTL_MOD, connection.fd(), &event) == 0;
  return armed ? Next::kNotOurs : Next::kClose;
}

Mutex& ConnectionLoop::HandOverMutex(const Connection* connection) {
  return hand_over_mutexes_[reinterpret_cast<std::uintptr_t>(connection) / sizeof(Connection) %
                            kHandOverMutexes];
}

void ConnectionLoop::Close(Connection* connection) {
  std::unique_ptr<Connection> owner;  // its descriptor closes after the lock
  {
    const MutexLock lock(table_mutex_);
    const auto found = table_.find(connection);
    if (found == table_.end()) return;
    owner = std::move(found->second);
    table_.erase(found);
    metrics_.SetConnections(table_.size());
  }
  buffered_bytes_.fetch_sub(owner->counted_bytes, std::memory_order_relaxed);
}

void ConnectionLoop::CountBytes(Connection& connection) {
  const std::size_t bytes = connection.BufferedBytes();
  // Unsigned wrap-around makes a shrinking difference right too.
  const std::size_t total =
      buffered_bytes_.fetch_add(bytes - connection.counted_bytes, std::memory_order_relaxed) +
      bytes - connection.counted_bytes;
  connection.counted_bytes = bytes;
  metrics_.SetBufferedBytes(total);
}

void ConnectionLoop::SetDeadline(Connection& connection, std::int64_t in_ms) {
  connection.deadline_ms.store(NowMs() + in_ms, std::memory_order_relaxed);
}

std::int64_t ConnectionLoop::NowMs() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace conductor::http
