#include "rpc/address.h"

#include <netdb.h>

#include <charconv>
#include <cstring>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

namespace conductor::rpc {
namespace {

tl::unexpected<Error> BadAddress(const std::string& address) {
  return InvalidField("invalid_value", "address",
                      "address: expected host:port without a URL scheme, got '" + address + "'");
}

Result<std::vector<SocketAddress>> Lookup(const HostPort& target, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found);
  if (rc != 0) {
    return MakeError(ErrorCode::kUnavailable, "resolve " + target.host + ": " + gai_strerror(rc));
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    SocketAddress address;
    address.length = info->ai_addrlen;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

}  // namespace

Result<HostPort> ParseHostPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return BadAddress(address);
  HostPort target{address.substr(0, colon), address.substr(colon + 1)};
  const bool bracketed =
      target.host.size() > 2 && target.host.front() == '[' && target.host.back() == ']';
  if (bracketed) {
    target.host = target.host.substr(1, target.host.size() - 2);
  } else if (target.host.find(':') != std::string::npos) {
    return BadAddress(address);  // a URL, or IPv6 without brackets
  }
  if (target.host.empty() || target.host.find_first_of("/ []@") != std::string::npos ||
      target.host.find('\0') != std::string::npos) {
    return BadAddress(address);
  }
  unsigned port = 0;
  const char* end = target.port.data() + target.port.size();
  const auto parsed = std::from_chars(target.port.data(), end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port < 1 || port > 65'535) {
    return BadAddress(address);
  }
  return target;
}

Result<std::vector<SocketAddress>> Resolve(const HostPort& target, Deadline deadline) {
  auto numeric = Lookup(target, AI_NUMERICHOST);
  if (numeric) return numeric;
  auto result = std::make_shared<std::promise<Result<std::vector<SocketAddress>>>>();
  auto future = result->get_future();
  try {
    std::thread([result, target] { result->set_value(Lookup(target, 0)); }).detach();
  } catch (const std::system_error& e) {
    return MakeError(ErrorCode::kUnavailable,
                     "resolve " + target.host + ": cannot start a thread: " + e.what());
  }
  if (future.wait_for(std::chrono::milliseconds(deadline.RemainingMs())) !=
      std::future_status::ready) {
    return MakeError(ErrorCode::kUnavailable, "resolve " + target.host + ": no answer in time");
  }
  return future.get();
}

}  // namespace conductor::rpc
