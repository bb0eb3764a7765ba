// One rank's event publisher, as an engine runs it: a PUB socket for live batches and an optional
// ROUTER that replays the recent ones, with faults on command.
//
// One thread per publisher owns both sockets and the ring, and serves replay requests between two
// turns of its send queue, so while a long answer is sent nothing live goes out (a late answer
// waits without holding anything up). Batches are numbered when they are handed over, from 0, and
// sent in that order. Every method is thread-safe. A method that touches a socket returns when the
// thread has done it. The live socket is an XPUB: the same bytes as PUB, and it knows who listens.
//
//   auto publisher = Publisher::Start(context, {.replay_endpoint = "tcp://127.0.0.1:*"});
//   (*publisher)->WaitUntil([](const auto& s) { return s.subscriptions == 1; }, 5s);
//   (*publisher)->Publish(payload);
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/result.h"
#include "tools/replay_ring.h"
#include "tools/zmq_socket.h"

namespace conductor::enginesim {

inline constexpr std::size_t kReplayStartsKept = 64;  // start numbers that the statistics show
inline constexpr std::chrono::milliseconds kRebindTimeout{5'000};
inline constexpr std::chrono::milliseconds kRebindPause{10};

// Who binds the live socket. kAuto is vLLM's rule, see BindsByRule.
enum class Attach : std::uint8_t { kAuto, kBind, kConnect };

struct PublisherOptions {
  std::string endpoint = "tcp://127.0.0.1:*";
  Attach attach = Attach::kAuto;
  std::string replay_endpoint{};  // always bound; empty: no replay
  std::string topic{};
  std::uint64_t first_seq = 0;  // of each life: engines 0, a store's master 1
  ReplayLayout layout = ReplayLayout::kSeqPayload;
  std::size_t buffer_steps = 10'000;  // batches in the replay ring
  int send_hwm = 100'000;             // live messages for one subscriber, then they vanish
  // Replies for one peer, then they vanish. Engines have libzmq's 1,000 and lose answers; 0 is
  // without limit, so that a test loses only what it asks to lose.
  int replay_hwm = 0;
  std::size_t queue_max = 100'000;  // batches not yet sent; then Publish waits
};

// What an operator or a test can see of a publisher.
struct PublisherStats {
  std::uint64_t life = 1;      // counts restarts
  std::uint64_t next_seq = 0;  // the number the next batch gets
  std::uint64_t sent = 0, dropped = 0, lost = 0;
  std::uint64_t replay_requests = 0;         // well formed ones
  std::uint64_t replay_refused = 0;          // of another shape: no reply
  std::vector<std::uint64_t> replay_starts;  // of the newest requests, oldest first
  std::uint64_t ring_batches = 0;
  std::optional<std::uint64_t> ring_first, ring_last;
  std::uint64_t subscriptions = 0;  // topics that peers subscribe to right now
  bool up = true;
};

// vLLM binds an endpoint that contains `*` or `::` or is ipc:// or inproc://; else it connects.
bool BindsByRule(const std::string& endpoint);

// The endpoint of a data-parallel rank: port + rank, or inproc://x_dp<rank>. Rank 0 is unchanged,
// `*` and port 0 stay. Any other scheme with rank > 0 is kInvalidArgument, as in vLLM.
Result<std::string> RankEndpoint(const std::string& endpoint, std::uint32_t rank);

class Publisher {
 public:
  // `context` must outlive the publisher.
  static Result<std::unique_ptr<Publisher>> Start(const ZmqContext& context,
                                                  PublisherOptions options);
  ~Publisher();

  // Endpoints with the chosen ports. The replay endpoint is empty when there is none.
  const std::string& endpoint() const { return endpoint_; }
  const std::string& replay_endpoint() const { return replay_endpoint_; }

  // Numbers the payload and queues it for the wire and the ring. Waits while the queue is full.
  std::uint64_t Publish(std::string payload);

  // Sends a message verbatim: no number, not in the ring.
  void PublishFrames(Message frames);

  // The next `count` batches are not sent live, but are in the ring.
  void DropNext(std::uint64_t count);
  // The next `count` batches are neither sent nor in the ring.
  void LoseNext(std::uint64_t count);
  // The next batch's number is `count` higher, as if that many had been lost.
  void SkipNumbers(std::uint64_t count);
  void SetReplayMode(const ReplayMode& mode);

  // A new life in place: numbers from first_seq, empty ring, no pending drops. The sockets stay,
  // the replay mode too. With Down before and Up after it is a restarted process.
  void Restart();

  // Closes both sockets; Up opens them again at the same endpoints. Batches published in between
  // reach only the ring.
  void Down();
  Status Up();

  // Returns when everything handed over so far has been given to the sockets.
  void Flush();

  PublisherStats stats() const;
  // Whether `wanted` became true of the statistics before `timeout`.
  // A SUB whose owner does not use it never subscribes on a new connection (a bind, a reconnect).
  bool WaitUntil(const std::function<bool(const PublisherStats&)>& wanted,
                 std::chrono::milliseconds timeout) const;

 private:
  using Task = std::function<void()>;
  struct LateAnswer {
    std::chrono::steady_clock::time_point due;
    std::string peer;
    std::uint64_t start;
  };

  Publisher(const ZmqContext& context, PublisherOptions options);

  void enqueue(std::unique_lock<std::mutex>& lock, Task task);
  void runOnThread(Task task);

  // On the publisher's thread, except for openSockets in Start.
  Status openSockets();
  void run();
  bool runTasks();
  void readSubscriptions();
  void readRequest();
  void answer(const std::string& peer, std::uint64_t start);
  void answerDue();
  int pollTimeoutMs() const;
  void sendBatch(const Batch& batch, bool live, bool keep);
  void noteRing();  // with mutex_ held

  const ZmqContext& context_;
  const PublisherOptions options_;
  std::string endpoint_, replay_endpoint_;  // as peers connect; written before the thread starts

  // Owned by the thread.
  std::string live_address_, replay_address_;  // as bound, so that Up finds the same ports
  ZmqSocket live_, router_;
  ReplayRing ring_;
  std::list<LateAnswer> late_;

  int wake_fd_ = -1;  // an eventfd, written when the queue stops being empty

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;  // the statistics changed, or the queue has room
  // Guarded by mutex_:
  std::deque<Task> queue_;
  bool stopping_ = false;
  std::uint64_t drop_next_ = 0, lose_next_ = 0;
  ReplayMode replay_mode_;
  PublisherStats stats_;

  std::thread thread_;
};

}  // namespace conductor::enginesim
