// A small fake engine: a live socket, and a replay ROUTER with a ring of past batches served by a
// thread of its own. It can drop chosen numbers, restart under the same ports, and answer replays
// in both layouts, cut short, or never.
#pragma once

#include <zmq.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/check.h"

namespace conductor::replay_test {

enum class ReplayStyle { kThreeFrames, kFourFrames, kSilent, kNone };

class FakePublisher {
 public:
  struct Options {
    ReplayStyle style = ReplayStyle::kThreeFrames;
    std::size_t ring_max = 10'000;
    std::string live_endpoint = "tcp://127.0.0.1:*";
    std::string replay_endpoint = "tcp://127.0.0.1:*";
    bool connects = false;  // the live socket connects: the consumer has bound
    std::string topic;
  };

  explicit FakePublisher(Options options) : options_(std::move(options)) {
    context_ = zmq_ctx_new();
    // XPUB is PUB that tells of subscriptions.
    live_ = Socket(ZMQ_XPUB);
    // Also of one that it knows from before its connection was lost.
    const int verbose = 1;
    zmq_setsockopt(live_, ZMQ_XPUB_VERBOSE, &verbose, sizeof(verbose));
    CHECK(zmq_socket_monitor(live_, "inproc://monitor", ZMQ_EVENT_HANDSHAKE_SUCCEEDED) == 0);
    monitor_ = Socket(ZMQ_PAIR);
    CHECK(zmq_connect(monitor_, "inproc://monitor") == 0);
    options_.live_endpoint = Open(live_, options_.live_endpoint, options_.connects);
    if (options_.style == ReplayStyle::kNone) {
      options_.replay_endpoint.clear();
      return;
    }
    router_ = Socket(ZMQ_ROUTER);
    const int no_limit = 0;
    zmq_setsockopt(router_, ZMQ_SNDHWM, &no_limit, sizeof(no_limit));
    options_.replay_endpoint = Open(router_, options_.replay_endpoint, false);
    server_ = std::thread([this] { Serve(); });
  }
  ~FakePublisher() {
    stop_ = true;
    if (server_.joinable()) server_.join();
    zmq_socket_monitor(live_, nullptr, 0);
    zmq_close(monitor_);
    zmq_close(live_);
    if (router_ != nullptr) zmq_close(router_);
    zmq_ctx_term(context_);
  }
  // A new process under the same ports: empty ring, numbers from 0.
  static std::unique_ptr<FakePublisher> Restart(std::unique_ptr<FakePublisher> old) {
    const Options options = old->options_;
    old.reset();
    return std::make_unique<FakePublisher>(options);
  }

  const std::string& live() const { return options_.live_endpoint; }
  const std::string& replay() const { return options_.replay_endpoint; }
  const Options& options() const { return options_; }

  // Takes the next number; into the ring, and out on the live socket unless `drop`.
  std::uint64_t Send(const std::string& payload, bool drop = false) {
    const std::uint64_t number = next_++;
    {
      // Before it is sent: what a consumer is answered then does not depend on who is faster.
      std::lock_guard lock(mutex_);
      ring_.emplace_back(number, payload);
      if (ring_.size() > options_.ring_max) ring_.pop_front();
    }
    if (!drop) SendLive(number, payload);
    return number;
  }
  // Only on the live socket: a repetition, or a number of one's choice.
  void SendLive(std::uint64_t number, const std::string& payload) {
    const std::string seq = BigEndian(number);
    zmq_send(live_, options_.topic.data(), options_.topic.size(), ZMQ_SNDMORE);
    zmq_send(live_, seq.data(), seq.size(), ZMQ_SNDMORE);
    zmq_send(live_, payload.data(), payload.size(), 0);
  }
  void SkipTo(std::uint64_t number) { next_ = number; }
  // True once a consumer has subscribed (and each time one does so anew).
  bool SubscriberSeen() {
    char message[64];
    const int size = zmq_recv(live_, message, sizeof(message), ZMQ_DONTWAIT);
    return size > 0 && message[0] == 1;
  }

  // True once a consumer has connected, whether or not it has subscribed.
  bool ConnectionSeen() {
    char message[8];
    return zmq_recv(monitor_, message, sizeof(message), ZMQ_DONTWAIT) > 0;
  }

  // Start numbers of the replays asked for, and requests that were not ['', 8 bytes].
  std::vector<std::uint64_t> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  int bad_requests() const { return bad_requests_; }
  // The next answers end after so many batches, without an end marker.
  void CutAnswers(int answers, std::size_t batches) {
    std::lock_guard lock(mutex_);
    cut_answers_ = answers;
    cut_batches_ = batches;
  }
  // The next answers lack these numbers, and end with the marker all the same.
  void SkipInAnswers(int answers, std::uint64_t from, std::uint64_t to) {
    std::lock_guard lock(mutex_);
    holed_answers_ = answers;
    hole_ = {from, to};
  }

 private:
  static std::string BigEndian(std::uint64_t number) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(number >> (8 * (7 - i)));
    return bytes;
  }
  void* Socket(int type) {
    void* socket = zmq_socket(context_, type);
    CHECK(socket != nullptr);
    const int zero = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof(zero));
    const int hwm = 1'000'000;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof(hwm));
    const int ipv6 = options_.live_endpoint.find('[') != std::string::npos ? 1 : 0;
    zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof(ipv6));
    return socket;
  }
  // The endpoint with its real port.
  static std::string Open(void* socket, const std::string& endpoint, bool connect) {
    if (connect) {
      CHECK(zmq_connect(socket, endpoint.c_str()) == 0);
      return endpoint;
    }
    // A port that was just left may take a moment to be free: polled by binding.
    for (int attempt = 0; zmq_bind(socket, endpoint.c_str()) != 0; ++attempt) {
      CHECK(zmq_errno() == EADDRINUSE && attempt < 100'000);
      std::this_thread::yield();
    }
    char text[256];
    std::size_t size = sizeof(text);
    CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text, &size) == 0);
    return text;
  }

  void Serve() {
    while (!stop_) {
      zmq_pollitem_t item{router_, 0, ZMQ_POLLIN, 0};
      if (zmq_poll(&item, 1, 10) <= 0) continue;
      std::vector<std::string> parts;
      int more = 1;
      while (more != 0) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, router_, 0) < 0) break;
        parts.emplace_back(static_cast<char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
        more = zmq_msg_more(&message);
        zmq_msg_close(&message);
      }
      if (parts.size() != 3 || !parts[1].empty() || parts[2].size() != 8) {
        ++bad_requests_;
        continue;
      }
      std::uint64_t start = 0;
      for (unsigned char byte : parts[2]) start = start << 8 | byte;
      Answer(parts[0], start);
    }
  }
  void Answer(const std::string& peer, std::uint64_t start) {
    std::deque<std::pair<std::uint64_t, std::string>> ring;
    std::size_t batches_max = static_cast<std::size_t>(-1);
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(start);
      ring = ring_;
      if (cut_answers_ > 0) {
        --cut_answers_;
        batches_max = cut_batches_;
      }
      if (holed_answers_ > 0) {
        --holed_answers_;
        std::erase_if(ring, [this](const auto& batch) {
          return batch.first >= hole_.first && batch.first <= hole_.second;
        });
      }
    }
    if (options_.style == ReplayStyle::kSilent) return;
    std::size_t batches = 0;
    for (const auto& [number, payload] : ring) {
      if (number < start) continue;
      if (batches++ >= batches_max) return;
      Reply(peer, BigEndian(number), payload, options_.topic);
    }
    Reply(peer, std::string(8, '\xff'), "", "");
  }
  void Reply(const std::string& peer, const std::string& seq, const std::string& payload,
             const std::string& topic) {
    zmq_send(router_, peer.data(), peer.size(), ZMQ_SNDMORE);
    zmq_send(router_, "", 0, ZMQ_SNDMORE);
    if (options_.style == ReplayStyle::kFourFrames) {
      zmq_send(router_, topic.data(), topic.size(), ZMQ_SNDMORE);
    }
    zmq_send(router_, seq.data(), seq.size(), ZMQ_SNDMORE);
    zmq_send(router_, payload.data(), payload.size(), 0);
  }

  Options options_;
  void* context_ = nullptr;
  void* live_ = nullptr;
  void* monitor_ = nullptr;  // of live_
  void* router_ = nullptr;
  std::uint64_t next_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> bad_requests_{0};
  mutable std::mutex mutex_;
  std::deque<std::pair<std::uint64_t, std::string>> ring_;
  std::vector<std::uint64_t> requests_;
  int cut_answers_ = 0;
  std::size_t cut_batches_ = 0;
  int holed_answers_ = 0;
  std::pair<std::uint64_t, std::uint64_t> hole_;
  std::thread server_;
};

}  // namespace conductor::replay_test
