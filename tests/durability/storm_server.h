// StormServer: as many publishers as there are loopback addresses, behind one pair of sockets. All
// have the same frames. It counts the replays that are open at once; it can keep them waiting until
// a number of them are. One thread of its own; every method is thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/replay_ring.h"
#include "tools/zmq_socket.h"

namespace conductor::durability {

class StormServer {
 public:
  StormServer();
  ~StormServer();

  std::string Endpoint(std::size_t publisher) const { return At(publisher, live_port_); }
  std::string ReplayEndpoint(std::size_t publisher) const { return At(publisher, replay_port_); }
  // Into the ring only: who listens is told nothing.
  void Append(std::uint64_t number);
  // From now on requests wait until `together` of them do, or all that are still to come of
  // `expected`. The counts begin anew.
  void ExpectStorm(std::size_t expected, std::size_t together);

  std::size_t requests() const;
  std::size_t open_max() const;

 private:
  static std::string At(std::size_t publisher, const std::string& port);
  void Serve();
  bool Receive(std::chrono::milliseconds timeout);
  void AnswerAll();

  enginesim::ZmqContext context_;
  std::string live_port_, replay_port_;  // before the sockets, which set them
  enginesim::ZmqSocket live_, router_;

  struct Request {
    std::string peer;
    std::uint64_t start;
  };
  mutable std::mutex mutex_;  // guards everything below
  enginesim::ReplayRing ring_{1'000};
  std::vector<Request> open_;
  std::size_t requests_ = 0, open_max_ = 0, expected_ = 0, together_ = 1;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace conductor::durability
