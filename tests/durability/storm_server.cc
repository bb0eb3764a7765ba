#include "tests/durability/storm_server.h"

#include <zmq.h>

#include <algorithm>
#include <utility>

#include "src/check.h"
#include "tools/vllm_encoder.h"

namespace conductor::durability {
namespace {

using enginesim::Message;
using enginesim::ZmqSocket;

constexpr std::chrono::milliseconds kLookAgain{10};
constexpr int kBacklog = 4'096;  // connections that come at once

ZmqSocket OpenSocket(const enginesim::ZmqContext& context, int type, std::string* port) {
  auto socket = ZmqSocket::Open(context, type);
  CHECK(socket);
  CHECK(socket->SetInt(ZMQ_BACKLOG, kBacklog));
  CHECK(socket->SetInt(ZMQ_SNDHWM, 0));
  const auto bound = socket->Bind("tcp://0.0.0.0:*");
  CHECK(bound);
  *port = bound->substr(bound->rfind(':') + 1);
  return std::move(*socket);
}

}  // namespace

StormServer::StormServer()
    : live_(OpenSocket(context_, ZMQ_XPUB, &live_port_)),
      router_(OpenSocket(context_, ZMQ_ROUTER, &replay_port_)) {
  thread_ = std::thread([this] { Serve(); });
}

StormServer::~StormServer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  thread_.join();
}

std::string StormServer::At(std::size_t publisher, const std::string& port) {
  return "tcp://127.0." + std::to_string(1 + publisher / 200) + "." +
         std::to_string(1 + publisher % 200) + ":" + port;
}

void StormServer::Append(std::uint64_t number) {
  enginesim::EventBatch batch;
  batch.ts = static_cast<double>(number);
  batch.dp_rank = 0;
  const std::string payload = enginesim::EncodeBatch(enginesim::Era::kB, batch);
  const std::lock_guard lock(mutex_);
  ring_.Append({number, std::make_shared<const std::string>(payload)});
}

void StormServer::ExpectStorm(std::size_t expected, std::size_t together) {
  const std::lock_guard lock(mutex_);
  expected_ = expected;
  together_ = together;
  requests_ = 0;
  open_max_ = 0;
}

std::size_t StormServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t StormServer::open_max() const {
  const std::lock_guard lock(mutex_);
  return open_max_;
}

void StormServer::Serve() {
  while (true) {
    // Everything that is there is counted before anything is answered.
    if (Receive(kLookAgain)) {
      while (Receive(std::chrono::milliseconds(0))) {
      }
    }
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    const std::size_t to_come = expected_ - std::min(expected_, requests_);
    if (open_.size() >= together_ || to_come == 0) AnswerAll();
  }
}

bool StormServer::Receive(std::chrono::milliseconds timeout) {
  auto message = router_.Receive(timeout);
  if (!message) return false;
  const auto start = enginesim::ReplayRing::ParseRequest(*message);
  if (!start) return true;
  const std::lock_guard lock(mutex_);
  open_.push_back({message->front(), *start});
  ++requests_;
  open_max_ = std::max(open_max_, open_.size());
  return true;
}

void StormServer::AnswerAll() {
  for (const Request& request : open_) {
    for (Message& answer :
         ring_.Answer(request.start, {}, enginesim::ReplayLayout::kSeqPayload, "")) {
      answer.insert(answer.begin(), request.peer);
      static_cast<void>(router_.Send(answer));  // who has gone is not told
    }
  }
  open_.clear();
}

}  // namespace conductor::durability
