// The libzmq contexts of all streams. libzmq looks through lists of all sockets of a context when
// one is closed and of all timers when one ends, so what thousands of streams cost grows with their
// square in one context: closing 5,000 took a minute. A context of bounded size costs two sleeping
// threads and keeps it linear. Contexts are made when they are needed and kept.
// Used under its owner's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "replay/zmq_socket.h"
#include "src/result.h"

namespace conductor {

inline constexpr std::size_t kStreamsPerContext = 512;
// A subscription, the two ends of its monitor, and at times a replay.
inline constexpr std::size_t kSocketsPerStream = 4;

class ZmqContextPool {
 public:
  // A context with room for one more stream; its index is what Release takes. The context lives as
  // long as the pool.
  struct Place {
    std::size_t index = 0;
    const ZmqContext* context = nullptr;
  };
  Result<Place> Take();
  void Release(std::size_t index) { --contexts_[index].streams; }
  std::size_t size() const { return contexts_.size(); }

 private:
  struct Context {
    std::unique_ptr<ZmqContext> zmq;
    std::size_t streams = 0;
  };
  std::vector<Context> contexts_;
};

}  // namespace conductor
