// A thin owner of libzmq's context and sockets, for the engine simulator.
//
// The C API is used because it throws nothing: every failure is an errno, converted here once. A
// ZmqContext may be shared by any number of threads and must outlive its sockets. A ZmqSocket
// belongs to one thread at a time. Sockets never linger: closing the simulator never hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"

namespace conductor::enginesim {

inline constexpr int kZmqSocketsMax = 65'536;
inline constexpr std::size_t kMessagePartsMax = 1'024;

// The frames of one ZMQ message.
using Message = std::vector<std::string>;

// A bound endpoint as a peer on this machine can connect to it: 127.0.0.1 instead of any address.
std::string Connectable(const std::string& endpoint);

class ZmqContext {
 public:
  explicit ZmqContext(int io_threads = 1);
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  void* handle() const { return handle_; }

 private:
  void* handle_;
};

class ZmqSocket {
 public:
  // `type` is libzmq's constant (ZMQ_XPUB, ZMQ_ROUTER, ...).
  static Result<ZmqSocket> Open(const ZmqContext& context, int type);

  ZmqSocket() = default;
  ~ZmqSocket() { Close(); }
  ZmqSocket(ZmqSocket&& other) noexcept;
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;

  bool IsOpen() const { return handle_ != nullptr; }
  void* handle() const { return handle_; }

  Status SetInt(int option, int value);
  Status SetText(int option, std::string_view value);

  // Binds and returns the endpoint with the chosen port instead of `*` or 0.
  Result<std::string> Bind(const std::string& endpoint);
  Result<std::string> Connect(const std::string& endpoint);

  // Never blocks: a message that a queue has no room for is lost, which is what PUB and ROUTER do.
  Status Send(const Message& message);

  // Waits for one whole message. kDeadlineExceeded when none came in `timeout`.
  Result<Message> Receive(std::chrono::milliseconds timeout);

  void Close();

 private:
  explicit ZmqSocket(void* handle) : handle_(handle) {}

  void* handle_ = nullptr;
};

}  // namespace conductor::enginesim
