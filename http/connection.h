// One client connection: a non-blocking socket, the framing of the request that is arriving and
// the bytes of the answer that are leaving. Owned by whichever loop thread the poller handed it
// to; only the deadline and the descriptor are read by the sweep (connection_loop.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "http/listen_socket.h"
#include "http/request_framing.h"

namespace conductor::http {

class Connection {
 public:
  enum class Step {
    kReading,    // the request is not complete
    kReady,      // complete; waits for its turn
    kAdmitted,   // its turn has come
    kWriting,    // the answer leaves
    kLingering,  // answered and shut down for writing; what still comes is thrown away
  };
  enum class Io { kDone, kWouldBlock, kEnded };

  static constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::max();

  Connection(FileDescriptor fd, FramingLimits limits) : framing(limits), fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }

  // Reads until the request is complete or refused (kDone), nothing is there (kWouldBlock), or the
  // client is gone (kEnded). At most `bytes_max` in one call, so that memory limits are looked at.
  Io ReadRequest(std::size_t bytes_max);
  // Writes the pending output.
  Io Flush();
  // Reads and forgets. kDone: more than kLingerBytesMax.
  Io Discard();

  void SetOutput(std::string bytes);
  // Before the body, on request of the client. Best effort: a client that does not get it sends
  // the body after a while.
  void SendContinue();
  // The answer has left: back to reading.
  void StartNextRequest();
  std::size_t BufferedBytes() const;

  // Kills the socket; the poller then reports it to a thread, which closes it. Any thread, while
  // the connection is in the loop's table.
  void Shutdown() const;
  void ShutdownWrite() const;

  Step step = Step::kReading;
  RequestFraming framing;
  bool close_after_output = false;
  bool holds_slot = false;        // of the loop's AdmissionGate
  std::size_t counted_bytes = 0;  // what the loop's budget holds for this connection
  // Milliseconds of the loop's clock. Relaxed: the sweep only compares it, and a late view of it
  // costs one sweep interval.
  std::atomic<std::int64_t> deadline_ms{kNoDeadline};
  bool request_started = false;  // the deadline is that of a request, not of idleness
  bool timed_out = false;        // guarded by the loop's table mutex

 private:
  FileDescriptor fd_;
  std::string unread_;  // read from the socket, of a later request
  std::string output_;
  std::size_t output_done_ = 0;
  std::size_t lingered_bytes_ = 0;
};

}  // namespace conductor::http
