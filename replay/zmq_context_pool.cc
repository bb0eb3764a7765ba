#include "replay/zmq_context_pool.h"

#include <utility>

namespace conductor {
namespace {

constexpr std::size_t kSocketsReserved = 16;
constexpr int kIoThreads = 1;

}  // namespace

Result<ZmqContextPool::Place> ZmqContextPool::Take() {
  std::size_t index = 0;
  while (index < contexts_.size() && contexts_[index].streams >= kStreamsPerContext) ++index;
  if (index == contexts_.size()) {
    constexpr std::size_t kSockets = kStreamsPerContext * kSocketsPerStream + kSocketsReserved;
    CONDUCTOR_ASSIGN_OR_RETURN(auto zmq, ZmqContext::Open(kIoThreads, static_cast<int>(kSockets)));
    contexts_.push_back({std::move(zmq), 0});
  }
  ++contexts_[index].streams;
  return Place{index, contexts_[index].zmq.get()};
}

}  // namespace conductor
