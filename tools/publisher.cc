#include "tools/publisher.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <future>
#include <utility>

#include "src/check.h"

namespace conductor::enginesim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint32_t kPortMax = 65'535;

void Wake(int fd) {
  const std::uint64_t one = 1;
  CHECK(write(fd, &one, sizeof(one)) == sizeof(one));
}

}  // namespace

bool BindsByRule(const std::string& endpoint) {
  return endpoint.find('*') != std::string::npos || endpoint.find("::") != std::string::npos ||
         endpoint.starts_with("ipc://") || endpoint.starts_with("inproc://");
}

Result<std::string> RankEndpoint(const std::string& endpoint, std::uint32_t rank) {
  if (rank == 0 || endpoint.empty()) return endpoint;
  if (endpoint.starts_with("inproc://")) return endpoint + "_dp" + std::to_string(rank);
  const std::size_t colon = endpoint.rfind(':');
  if (!endpoint.starts_with("tcp://") || colon < 6) {
    return MakeError(ErrorCode::kInvalidArgument, "endpoint of rank " + std::to_string(rank) +
                                                      ": expected tcp:// or inproc://, got " +
                                                      endpoint);
  }
  const std::string port_text = endpoint.substr(colon + 1);
  if (port_text == "*" || port_text == "0") return endpoint;
  std::uint32_t port = 0;
  const auto [end, error] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (error != std::errc{} || end != port_text.data() + port_text.size() || port > kPortMax ||
      rank > kPortMax - port) {
    return MakeError(ErrorCode::kInvalidArgument, "endpoint " + endpoint + " with rank " +
                                                      std::to_string(rank) +
                                                      ": expected a port up to 65535");
  }
  return endpoint.substr(0, colon + 1) + std::to_string(port + rank);
}

Publisher::Publisher(const ZmqContext& context, PublisherOptions options)
    : context_(context),
      options_(std::move(options)),
      live_address_(options_.endpoint),
      replay_address_(options_.replay_endpoint),
      ring_(options_.buffer_steps) {
  stats_.next_seq = options_.first_seq;
}

Result<std::unique_ptr<Publisher>> Publisher::Start(const ZmqContext& context,
                                                    PublisherOptions options) {
  std::unique_ptr<Publisher> publisher(new Publisher(context, std::move(options)));
  publisher->wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (publisher->wake_fd_ < 0) {
    return MakeError(ErrorCode::kResourceExhausted, "eventfd for a publisher: no descriptor left");
  }
  CONDUCTOR_RETURN_IF_ERROR(publisher->openSockets());
  publisher->endpoint_ = Connectable(publisher->live_address_);
  publisher->replay_endpoint_ = Connectable(publisher->replay_address_);
  publisher->thread_ = std::thread([self = publisher.get()] { self->run(); });
  return publisher;
}

Publisher::~Publisher() {
  if (thread_.joinable()) {
    {
      std::unique_lock lock(mutex_);
      stopping_ = true;
    }
    Wake(wake_fd_);
    thread_.join();
  }
  if (wake_fd_ >= 0) close(wake_fd_);
}

Status Publisher::openSockets() {
  const bool bind = options_.attach == Attach::kBind ||
                    (options_.attach == Attach::kAuto && BindsByRule(options_.endpoint));
  CONDUCTOR_ASSIGN_OR_RETURN(ZmqSocket live, ZmqSocket::Open(context_, ZMQ_XPUB));
  CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_SNDHWM, options_.send_hwm));
  // Every subscription and its end is reported, not only the first and last of a topic.
  CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_XPUB_VERBOSER, 1));
  CONDUCTOR_ASSIGN_OR_RETURN(live_address_,
                             bind ? live.Bind(live_address_) : live.Connect(live_address_));
  if (!replay_address_.empty()) {
    CONDUCTOR_ASSIGN_OR_RETURN(ZmqSocket router, ZmqSocket::Open(context_, ZMQ_ROUTER));
    CONDUCTOR_RETURN_IF_ERROR(router.SetInt(ZMQ_SNDHWM, options_.replay_hwm));
    CONDUCTOR_ASSIGN_OR_RETURN(replay_address_, router.Bind(replay_address_));
    router_ = std::move(router);
  }
  live_ = std::move(live);
  return {};
}

void Publisher::enqueue(std::unique_lock<std::mutex>& lock, Task task) {
  CHECK(lock.owns_lock());
  const bool was_empty = queue_.empty();
  queue_.push_back(std::move(task));
  if (was_empty) Wake(wake_fd_);
}

void Publisher::runOnThread(Task task) {
  std::promise<void> done;
  std::future<void> finished = done.get_future();
  {
    std::unique_lock lock(mutex_);
    enqueue(lock, [&task, &done] {
      task();
      done.set_value();
    });
  }
  finished.wait();
}

std::uint64_t Publisher::Publish(std::string payload) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.size() < options_.queue_max; });
  const std::uint64_t seq = stats_.next_seq++;
  const bool lose = lose_next_ > 0;
  const bool drop = !lose && drop_next_ > 0;
  if (lose) --lose_next_;
  if (drop) --drop_next_;
  Batch batch{seq, std::make_shared<const std::string>(std::move(payload))};
  enqueue(lock, [this, batch = std::move(batch), live = !lose && !drop, keep = !lose] {
    sendBatch(batch, live, keep);
  });
  return seq;
}

void Publisher::PublishFrames(Message frames) {
  std::unique_lock lock(mutex_);
  enqueue(lock, [this, frames = std::move(frames)] {
    if (live_.IsOpen()) (void)live_.Send(frames);
  });
}

void Publisher::DropNext(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  drop_next_ = count;
}

void Publisher::LoseNext(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  lose_next_ = count;
}

void Publisher::SkipNumbers(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  stats_.next_seq += count;
}

void Publisher::SetReplayMode(const ReplayMode& mode) {
  std::unique_lock lock(mutex_);
  replay_mode_ = mode;
}

void Publisher::Restart() {
  std::unique_lock lock(mutex_);
  stats_.next_seq = options_.first_seq;
  ++stats_.life;
  drop_next_ = lose_next_ = 0;
  enqueue(lock, [this] {
    ring_.Clear();
    late_.clear();
    std::unique_lock lock(mutex_);
    noteRing();
  });
}

void Publisher::Down() {
  runOnThread([this] {
    live_.Close();
    router_.Close();
    late_.clear();
    std::unique_lock lock(mutex_);
    stats_.subscriptions = 0;
    stats_.up = false;
  });
}

Status Publisher::Up() {
  // libzmq frees an address only some time after its socket was closed.
  const auto deadline = Clock::now() + kRebindTimeout;
  while (true) {
    Status opened;
    runOnThread([this, &opened] {
      if (!live_.IsOpen()) opened = openSockets();
      std::unique_lock lock(mutex_);
      stats_.up = opened.has_value();
    });
    const bool in_use = !opened && opened.error().code == ErrorCode::kAlreadyExists;
    if (!in_use || Clock::now() >= deadline) return opened;
    std::this_thread::sleep_for(kRebindPause);
  }
}

void Publisher::Flush() {
  runOnThread([] {});
}

PublisherStats Publisher::stats() const {
  std::unique_lock lock(mutex_);
  return stats_;
}

bool Publisher::WaitUntil(const std::function<bool(const PublisherStats&)>& wanted,
                          milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return wanted(stats_); });
}

void Publisher::run() {
  pthread_setname_np(pthread_self(), "engine-pub");
  while (runTasks()) {
    std::array<zmq_pollitem_t, 3> items{};
    int count = 0;
    items[count++] = {nullptr, wake_fd_, ZMQ_POLLIN, 0};
    if (live_.IsOpen()) items[count++] = {live_.handle(), 0, ZMQ_POLLIN, 0};
    if (router_.IsOpen()) items[count++] = {router_.handle(), 0, ZMQ_POLLIN, 0};
    zmq_poll(items.data(), count, pollTimeoutMs());
    std::uint64_t wakes = 0;
    // Not readable is fine: a socket or a due answer ended the wait.
    [[maybe_unused]] const ssize_t got = read(wake_fd_, &wakes, sizeof(wakes));
    // Twice, because a stop that came with tasks is seen only when they are done.
    if (!runTasks()) break;
    readSubscriptions();
    readRequest();
    answerDue();
  }
}

bool Publisher::runTasks() {
  std::deque<Task> tasks;
  {
    std::unique_lock lock(mutex_);
    if (stopping_ && queue_.empty()) return false;
    tasks.swap(queue_);
  }
  for (const Task& task : tasks) task();
  changed_.notify_all();
  return true;
}

void Publisher::sendBatch(const Batch& batch, bool live, bool keep) {
  const bool sent = live && live_.IsOpen() &&
                    live_.Send({options_.topic, EncodeSeq(batch.seq), *batch.payload}).has_value();
  if (keep) ring_.Append(batch);
  std::unique_lock lock(mutex_);
  ++(sent ? stats_.sent : keep ? stats_.dropped : stats_.lost);
  noteRing();
}

void Publisher::noteRing() {
  stats_.ring_batches = ring_.size();
  stats_.ring_first = ring_.first();
  stats_.ring_last = ring_.last();
}

void Publisher::readSubscriptions() {
  while (live_.IsOpen()) {
    const Result<Message> message = live_.Receive(milliseconds(0));
    if (!message) return;
    const std::string& body = message->front();
    if (body.empty()) continue;
    std::unique_lock lock(mutex_);
    if (body[0] == 1) ++stats_.subscriptions;
    if (body[0] == 0 && stats_.subscriptions > 0) --stats_.subscriptions;
    changed_.notify_all();
  }
}

void Publisher::readRequest() {
  if (!router_.IsOpen()) return;
  const Result<Message> request = router_.Receive(milliseconds(0));
  if (!request) return;
  // What was handed over before the request came must be in its answer.
  runTasks();
  const std::optional<std::uint64_t> start = ReplayRing::ParseRequest(*request);
  ReplayMode mode;
  {
    std::unique_lock lock(mutex_);
    mode = replay_mode_;
    ++(start ? stats_.replay_requests : stats_.replay_refused);
    if (start) {
      std::vector<std::uint64_t>& starts = stats_.replay_starts;
      if (starts.size() == kReplayStartsKept) starts.erase(starts.begin());
      starts.push_back(*start);
    }
  }
  changed_.notify_all();
  if (!start) return;
  if (mode.kind == ReplayMode::Kind::kLate) {
    late_.push_back({Clock::now() + milliseconds(*mode.number), request->front(), *start});
  } else {
    answer(request->front(), *start);
  }
}

void Publisher::answer(const std::string& peer, std::uint64_t start) {
  if (!router_.IsOpen()) return;  // taken down between the request and its answer
  ReplayMode mode;
  {
    std::unique_lock lock(mutex_);
    mode = replay_mode_;
  }
  for (Message& message : ring_.Answer(start, mode, options_.layout, options_.topic)) {
    message.insert(message.begin(), peer);
    (void)router_.Send(message);  // a peer that left, or whose queue is full, gets nothing
  }
}

void Publisher::answerDue() {
  const auto now = Clock::now();
  for (auto late = late_.begin(); late != late_.end();) {
    if (late->due > now) {
      ++late;
      continue;
    }
    answer(late->peer, late->start);
    late = late_.erase(late);
  }
}

int Publisher::pollTimeoutMs() const {
  if (late_.empty()) return -1;
  const auto earliest =
      std::min_element(late_.begin(), late_.end(),
                       [](const LateAnswer& a, const LateAnswer& b) { return a.due < b.due; });
  const auto wait = std::chrono::ceil<milliseconds>(earliest->due - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 60'000));
}

}  // namespace conductor::enginesim
