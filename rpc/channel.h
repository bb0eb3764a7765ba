// Unary gRPC calls to one server: connections that are kept for the next call, a deadline for each
// call, one careful retry, and what fork() needs.
//
// Thread-safe: every call takes a connection of its own for as long as it runs. After fork() the
// child finds that the process id has changed and starts with an empty pool; the parent's
// connections (and the pool's lock, which a thread that no longer exists may hold) are left alone
// and leaked on purpose. The addresses are resolved once, at Open, so a child needs no resolver.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rpc/address.h"
#include "rpc/http2/connection.h"
#include "src/result.h"

namespace conductor::rpc {

// Idle connections kept for the next call; more threads than that open one for each call.
inline constexpr std::size_t kIdleConnectionsMax = 32;

// Whether sending the same request twice does the same as once.
enum class Repeatable { kNo, kYes };

class Channel {
 public:
  // Returns when the server has sent its HTTP/2 settings on a first connection, which is kept.
  // Errors: kInvalidArgument (address), kUnavailable.
  static Result<std::unique_ptr<Channel>> Open(const std::string& address,
                                               std::uint32_t timeout_ms);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  struct Method {
    const char* path;  // "/conductor.v1.Conductor/Query"
    Repeatable repeatable;
  };
  // `request` starts with kPrefixBytes that belong to the call, the message follows; the answer is
  // the bare message. The error is the server's status with its detail, or the transport's.
  Result<std::string> Call(const Method& method, std::string* request,
                           std::uint32_t timeout_ms) const;
  static constexpr std::size_t kPrefixBytes = 5;

 private:
  struct Pool;
  Channel(HostPort target, std::vector<SocketAddress> addresses);

  Pool& CurrentPool() const;
  std::unique_ptr<Connection> TakeIdle() const;
  void Keep(std::unique_ptr<Connection> connection) const;
  Result<std::unique_ptr<Connection>> Dial(Deadline deadline) const;
  std::string MakeHeaders(const char* path, Deadline deadline) const;

  const std::string authority_;
  const std::vector<SocketAddress> addresses_;
  // Replaced, never freed, by the first call after a fork. Release pairs with the acquire of every
  // reader: the new pool is complete when it is seen.
  mutable std::atomic<Pool*> pool_;
};

}  // namespace conductor::rpc
