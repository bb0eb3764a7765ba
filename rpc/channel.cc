#include "rpc/channel.h"

#include <unistd.h>

#include <limits>
#include <mutex>
#include <string_view>
#include <utility>

#include "conductor_version.h"
#include "rpc/grpc_reply.h"
#include "src/check.h"

namespace conductor::rpc {
namespace {

// The server is told a little more time than there is: our own deadline is the one that counts,
// and closing the connection then cancels the call.
constexpr std::uint32_t kServerGraceMs = 100;
constexpr std::uint32_t kTimeoutHeaderMsMax = 99'999'999;  // gRPC: eight digits

Error About(const std::string& authority, const Error& error) {
  Error out = error;
  out.message = authority + ": " + error.message;
  return out;
}

}  // namespace

struct Channel::Pool {
  const pid_t pid = getpid();
  std::mutex mutex;
  std::vector<std::unique_ptr<Connection>> idle;  // guarded by mutex
};

Channel::Channel(HostPort target, std::vector<SocketAddress> addresses)
    : authority_(
          (target.host.find(':') == std::string::npos ? target.host : "[" + target.host + "]") +
          ":" + target.port),
      addresses_(std::move(addresses)),
      pool_(new Pool) {}

Channel::~Channel() {
  Pool* pool = pool_.load(std::memory_order_acquire);
  if (pool->pid == getpid()) delete pool;
}

Result<std::unique_ptr<Channel>> Channel::Open(const std::string& address,
                                               std::uint32_t timeout_ms) {
  const Deadline deadline = Deadline::AfterMs(timeout_ms);
  auto target = ParseHostPort(address);
  if (!target) return tl::unexpected(target.error());
  auto addresses = Resolve(*target, deadline);
  if (!addresses) return tl::unexpected(addresses.error());
  std::unique_ptr<Channel> channel(new Channel(*std::move(target), *std::move(addresses)));
  auto connection = channel->Dial(deadline);
  Status usable = connection ? (*connection)->AwaitSettings(deadline)
                             : Status(tl::unexpected(connection.error()));
  if (!usable) {
    Error error = About(channel->authority_, usable.error());
    error.code = ErrorCode::kUnavailable;  // a silent peer is no slow answer
    return tl::unexpected(std::move(error));
  }
  channel->Keep(*std::move(connection));
  return channel;
}

Channel::Pool& Channel::CurrentPool() const {
  Pool* pool = pool_.load(std::memory_order_acquire);
  if (pool->pid == getpid()) return *pool;
  auto fresh = std::make_unique<Pool>();
  if (pool_.compare_exchange_strong(pool, fresh.get(), std::memory_order_acq_rel)) {
    return *fresh.release();
  }
  return *pool;  // another thread of this child was faster
}

std::unique_ptr<Connection> Channel::TakeIdle() const {
  Pool& pool = CurrentPool();
  while (true) {
    std::unique_ptr<Connection> connection;
    {
      std::lock_guard lock(pool.mutex);
      if (pool.idle.empty()) return nullptr;
      connection = std::move(pool.idle.back());
      pool.idle.pop_back();
    }
    if (connection->IsReusable()) return connection;
  }
}

void Channel::Keep(std::unique_ptr<Connection> connection) const {
  Pool& pool = CurrentPool();
  std::lock_guard lock(pool.mutex);
  if (pool.idle.size() < kIdleConnectionsMax) pool.idle.push_back(std::move(connection));
}

Result<std::unique_ptr<Connection>> Channel::Dial(Deadline deadline) const {
  CHECK(!addresses_.empty());
  Error last;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    // An address that does not answer must not use up the time of the ones after it.
    const auto share = deadline.RemainingMs() / static_cast<std::uint32_t>(addresses_.size() - i);
    auto connection = Connection::Open(addresses_[i], deadline.Sooner(share));
    if (connection) return connection;
    last = connection.error();
  }
  return tl::unexpected(last);
}

std::string Channel::MakeHeaders(const char* path, Deadline deadline) const {
  const std::uint32_t timeout_ms =
      std::min(deadline.RemainingMs(), kTimeoutHeaderMsMax - kServerGraceMs) + kServerGraceMs;
  std::string block;
  AppendHeader(":method", "POST", &block);
  AppendHeader(":scheme", "http", &block);
  AppendHeader(":path", path, &block);
  AppendHeader(":authority", authority_, &block);
  AppendHeader("te", "trailers", &block);
  AppendHeader("content-type", "application/grpc", &block);
  AppendHeader("grpc-timeout", std::to_string(timeout_ms) + "m", &block);
  AppendHeader("user-agent", "conductor-cpp/" CONDUCTOR_VERSION, &block);
  return block;
}

Result<std::string> Channel::Call(const Method& method, std::string* request,
                                  std::uint32_t timeout_ms) const {
  const Deadline deadline = Deadline::AfterMs(timeout_ms);
  CHECK(request->size() >= kPrefixBytes);
  WritePrefix(request);
  const std::span<const std::uint8_t> body(reinterpret_cast<const std::uint8_t*>(request->data()),
                                           request->size());
  while (true) {
    std::unique_ptr<Connection> connection = TakeIdle();
    const bool reused = connection != nullptr;
    if (!reused) {
      auto dialed = Dial(deadline);
      if (!dialed) return tl::unexpected(About(authority_, dialed.error()));
      connection = *std::move(dialed);
    }
    auto reply = connection->Exchange(MakeHeaders(method.path, deadline), body, deadline);
    if (reply) {
      Keep(std::move(connection));
      return ParseGrpcReply(*std::move(reply));
    }
    // A kept connection may have been closed by the server just before we used it. Trying again
    // is right when nothing can have happened twice, and ends: the next one may be fresh.
    const bool again = reused && reply.error().code == ErrorCode::kUnavailable &&
                       !deadline.Passed() &&
                       (connection->untouched() ||
                        (method.repeatable == Repeatable::kYes && !connection->reply_started()));
    if (!again) return tl::unexpected(About(authority_, reply.error()));
  }
}

}  // namespace conductor::rpc
