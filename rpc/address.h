// Addresses as users write them: "host:port", "1.2.3.4:50052", "[::1]:50052". No URL scheme.
// Resolving a name may take longer than its caller wants to wait; a numeric address never does.
#pragma once

#include <string>
#include <vector>

#include "rpc/http2/connection.h"
#include "rpc/http2/deadline.h"
#include "src/result.h"

namespace conductor::rpc {

struct HostPort {
  std::string host;  // without brackets
  std::string port;  // decimal, 1..65535
};

// Errors: kInvalidArgument / `invalid_value` on `address`.
Result<HostPort> ParseHostPort(const std::string& address);

// At least one address. A name that takes too long to resolve is kUnavailable; the lookup is then
// left to a thread of its own, which ends when the resolver gives up.
Result<std::vector<SocketAddress>> Resolve(const HostPort& target, Deadline deadline);

}  // namespace conductor::rpc
