// One TCP connection to the server and the HTTP/2 session on it. Every wait has a deadline; no
// thread, no lock. Used by one thread at a time; closing it cancels a request that is running.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rpc/http2/deadline.h"
#include "rpc/http2/session.h"
#include "src/result.h"

namespace conductor::rpc {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

class Connection {
 public:
  // Connected when it returns; whether the peer speaks HTTP/2 is not known yet.
  static Result<std::unique_ptr<Connection>> Open(const SocketAddress& address, Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Waits until the peer has proved to speak HTTP/2.
  Status AwaitSettings(Deadline deadline);

  // Takes what has arrived since the last request, without waiting. False: the connection cannot
  // carry another one (closed by the peer, usually).
  bool IsReusable();

  // Sends the request and waits for the whole reply. After an error the connection is useless;
  // kDeadlineExceeded when the deadline passed, kUnavailable for everything else.
  Result<Reply> Exchange(std::string_view header_block, std::span<const std::uint8_t> body,
                         Deadline deadline);

  // After a failed Exchange: the server did not touch the request, so it may be sent again.
  bool untouched() const { return session_.refused(); }
  bool reply_started() const { return session_.reply_started(); }

 private:
  explicit Connection(int fd) : fd_(fd) {}

  // Moves bytes both ways, waiting at most once. Errors: closed, broken, deadline.
  Status Step(Deadline deadline);
  Status Send();
  // `closed` is set at the end of the peer's bytes.
  Status Receive(bool* closed);

  int fd_;
  Session session_;
};

}  // namespace conductor::rpc
