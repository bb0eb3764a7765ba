// The only place that touches libzmq: a context, sockets that close themselves, whole messages, and
// the events of a socket's connections. Nothing here waits.
//
// A socket is used by one thread at a time. Subscriptions creates it on the caller's thread and
// hands it to an I/O thread through a mutex, which is the fence libzmq asks for. errno is converted
// in ZmqError and stops there.
#pragma once

#include <zmq.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "src/result.h"

namespace conductor {

// Parts of one message that are kept; a message with more is still read to its end and is refused
// by its part count. The longest valid one has four.
inline constexpr std::size_t kMessagePartsMax = 6;

// "connect tcp://x:1: Invalid argument", with the code that fits the current errno.
tl::unexpected<Error> ZmqError(std::string_view what);

class ZmqContext {
 public:
  static Result<std::unique_ptr<ZmqContext>> Open(int io_threads, int sockets_max);
  // Waits until every socket is closed; they must be, or be closing.
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  void* get() const { return context_; }

 private:
  explicit ZmqContext(void* context) : context_(context) {}
  void* context_;
};

// One multipart message. Reused between receives; its parts are valid until the next one.
class ZmqMessage {
 public:
  ZmqMessage();
  ~ZmqMessage();
  ZmqMessage(const ZmqMessage&) = delete;
  ZmqMessage& operator=(const ZmqMessage&) = delete;

  std::span<const std::span<const std::uint8_t>> parts() const { return {views_.data(), count_}; }
  // The descriptor of the TCP connection it came in on; -1 when there is none.
  int source_descriptor() const { return source_descriptor_; }
  // The host it came from; "an unknown host" when libzmq does not say.
  std::string peer_address();

 private:
  friend class ZmqSocket;
  std::array<zmq_msg_t, kMessagePartsMax> messages_;
  std::array<std::span<const std::uint8_t>, kMessagePartsMax> views_;
  std::size_t count_ = 0;
  int source_descriptor_ = -1;
};

class ZmqSocket {
 public:
  static Result<ZmqSocket> Open(const ZmqContext& context, int type);
  ZmqSocket(ZmqSocket&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;
  ~ZmqSocket() { Close(); }

  Status SetInt(int option, int value);
  Status SetInt64(int option, std::int64_t value);
  Status SetText(int option, std::string_view value);
  Status Connect(const std::string& endpoint);
  Status Bind(const std::string& endpoint);
  // Reports the connections of this socket to a PAIR socket, which is returned.
  Result<ZmqSocket> Monitor(const ZmqContext& context, int events);

  // The descriptor that becomes readable when there may be something to do (edge-triggered: read
  // until Receive says no before waiting for it again).
  Result<int> Descriptor() const;
  // The endpoint it is bound to, its port filled in.
  Result<std::string> LastEndpoint() const;
  // False: nothing there now.
  bool Receive(ZmqMessage& message);
  Status Send(std::span<const std::string> parts);

 private:
  explicit ZmqSocket(void* socket) : socket_(socket) {}
  void Close();
  void* socket_;
};

// What a monitor socket says.
struct ConnectionEvent {
  std::uint16_t kind = 0;  // ZMQ_EVENT_...
  std::int32_t value = 0;  // the descriptor, for events about one connection
};
std::optional<ConnectionEvent> ReadConnectionEvent(const ZmqMessage& message);

}  // namespace conductor
