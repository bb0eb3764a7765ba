#include "tools/control_server.h"

#include <zmq.h>

#include <utility>

#include "tools/control.h"

namespace conductor::enginesim {

Result<std::unique_ptr<ControlServer>> ControlServer::Open(Fleet& fleet,
                                                           const std::string& endpoint) {
  CONDUCTOR_ASSIGN_OR_RETURN(ZmqSocket socket, ZmqSocket::Open(fleet.context(), ZMQ_REP));
  const std::int64_t bytes_max = kControlLineBytesMax;
  zmq_setsockopt(socket.handle(), ZMQ_MAXMSGSIZE, &bytes_max, sizeof(bytes_max));
  // A reply that was not read when the program ends is given a moment to go out.
  CONDUCTOR_RETURN_IF_ERROR(socket.SetInt(ZMQ_LINGER, kStopCheckMs));
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string address, socket.Bind(endpoint));
  return std::unique_ptr<ControlServer>(
      new ControlServer(fleet, std::move(socket), Connectable(address)));
}

void ControlServer::Serve(const std::atomic<bool>& stop) {
  // Relaxed: the flag guards no other data, only the loop.
  while (!stop.load(std::memory_order_relaxed)) {
    const Result<Message> request = socket_.Receive(std::chrono::milliseconds(kStopCheckMs));
    if (!request) {
      if (request.error().code == ErrorCode::kDeadlineExceeded) continue;
      return;
    }
    const ControlReply reply = ExecuteControlLine(fleet_, endpoint_, request->front());
    (void)socket_.Send({reply.json});  // a client that left needs no reply
    if (reply.quit) return;
  }
}

void ServeStream(Fleet& fleet, std::istream& input, std::ostream& output,
                 const std::atomic<bool>& stop) {
  std::string line;
  while (!stop.load(std::memory_order_relaxed) && std::getline(input, line)) {
    if (line.empty()) continue;
    const ControlReply reply = ExecuteControlLine(fleet, "stdin", line);
    output << reply.json + "\n" << std::flush;
    if (reply.quit) return;
  }
}

}  // namespace conductor::enginesim
