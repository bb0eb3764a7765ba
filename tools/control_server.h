// Serves the command language (control.h) on a ZMQ REP socket or on a pair of streams.
//
// One request is one frame of text, one reply one frame of JSON. Serve runs on the caller's thread
// until `quit` came or `stop` is set (looked at after each command and at least every
// kStopCheckMs). The fleet outlives the server.
#pragma once

#include <atomic>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "src/result.h"
#include "tools/fleet.h"
#include "tools/zmq_socket.h"

namespace conductor::enginesim {

inline constexpr int kStopCheckMs = 500;

class ControlServer {
 public:
  // `endpoint`: ipc://path, tcp://127.0.0.1:* or :0, inproc://name. Errors of the bind.
  static Result<std::unique_ptr<ControlServer>> Open(Fleet& fleet, const std::string& endpoint);

  const std::string& endpoint() const { return endpoint_; }
  void Serve(const std::atomic<bool>& stop);

 private:
  ControlServer(Fleet& fleet, ZmqSocket socket, std::string endpoint)
      : fleet_(fleet), socket_(std::move(socket)), endpoint_(std::move(endpoint)) {}

  Fleet& fleet_;
  ZmqSocket socket_;
  std::string endpoint_;
};

// The same over lines; ends at the end of the input too.
void ServeStream(Fleet& fleet, std::istream& input, std::ostream& output,
                 const std::atomic<bool>& stop);

}  // namespace conductor::enginesim
