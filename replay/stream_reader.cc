#include "replay/stream_reader.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "replay/replay_jitter.h"

namespace conductor {
namespace {

constexpr int kConnectionEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                                  ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED;

Status Configure(ZmqSocket& live, const Registration& registration, const Limits& limits) {
  const int interval = static_cast<int>(limits.heartbeat_interval_ms);
  const int dead = static_cast<int>(limits.heartbeat_dead_ms);
  CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_RCVHWM, kLiveQueueMessages));
  CONDUCTOR_RETURN_IF_ERROR(
      live.SetInt64(ZMQ_MAXMSGSIZE, static_cast<std::int64_t>(limits.payload_bytes_max)));
  // Dead = so long without a sign of life: a ping after the interval, and the rest to answer it.
  CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_HEARTBEAT_IVL, interval));
  CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_HEARTBEAT_TIMEOUT, std::max(1, dead - interval)));
  CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_HEARTBEAT_TTL, dead));
  const int reconnect_max = static_cast<int>(limits.reconnect_ms_max);
  CONDUCTOR_RETURN_IF_ERROR(
      live.SetInt(ZMQ_RECONNECT_IVL, static_cast<int>(limits.reconnect_ms_min)));
  CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_RECONNECT_IVL_MAX, reconnect_max));
  CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_CONNECT_TIMEOUT, reconnect_max));
  if (registration.endpoint.find('[') != std::string::npos) {
    CONDUCTOR_RETURN_IF_ERROR(live.SetInt(ZMQ_IPV6, 1));
  }
  // A prefix; the exact comparison follows when a message is read.
  return live.SetText(ZMQ_SUBSCRIBE, "");  // other topics than the registration's are counted
}

tl::unexpected<Error> EndpointError(Error error) {
  if (error.code == ErrorCode::kInvalidArgument) {
    return InvalidField("invalid_value", "endpoint", std::move(error.message));
  }
  return tl::unexpected(std::move(error));
}

}  // namespace

Result<std::unique_ptr<StreamReader>> StreamReader::Open(const ReaderContext& context,
                                                         const StreamSeed& seed,
                                                         std::int64_t now_ms) {
  const std::string& endpoint = seed.registration.endpoint;
  CONDUCTOR_ASSIGN_OR_RETURN(ZmqSocket live, ZmqSocket::Open(context.zmq, ZMQ_SUB));
  CONDUCTOR_RETURN_IF_ERROR(Configure(live, seed.registration, context.options.limits));
  CONDUCTOR_ASSIGN_OR_RETURN(ZmqSocket monitor, live.Monitor(context.zmq, kConnectionEvents));
  const bool bound = IsWildcardEndpoint(endpoint);
  const Status opened = bound ? live.Bind(endpoint) : live.Connect(endpoint);
  // A port that is in use may be free later: an old socket of ours closes in the background.
  const bool later = !opened && bound && opened.error().code == ErrorCode::kUnavailable;
  if (!opened && !later) return EndpointError(opened.error());
  std::unique_ptr<StreamReader> reader(
      new StreamReader(context, seed, now_ms, std::move(live), std::move(monitor), bound));
  if (later) {
    reader->BindLater(opened.error(), now_ms);
  } else if (bound) {
    reader->AwaitPublisher();
  }
  return reader;
}

StreamReader::StreamReader(const ReaderContext& context, const StreamSeed& seed,
                           std::int64_t now_ms, ZmqSocket live, ZmqSocket monitor, bool bound)
    : context_(context),
      seed_(seed),
      bound_(bound),
      first_replay_ms_(
          now_ms + (seed.cursor
                        ? ReplayJitterMs(seed.stream, context.options.limits.replay_jitter_ms_max)
                        : 0)),
      tracker_(seed, context.options, now_ms),
      report_(std::make_shared<StreamReport>(now_ms)),
      live_(std::move(live)),
      monitor_(std::move(monitor)) {}

StreamReader::~StreamReader() {
  Detach();
}

Status StreamReader::Attach(Watcher& watcher, DigestCache& cache) {
  TranslatorOptions options;
  options.wire.payload_bytes_max = context_.options.limits.payload_bytes_max;
  translator_.emplace(seed_, options, context_.digests, cache);
  for (const ZmqSocket* socket : {&live_, &monitor_}) {
    CONDUCTOR_ASSIGN_OR_RETURN(const int descriptor, socket->Descriptor());
    CONDUCTOR_RETURN_IF_ERROR(watcher.Watch(descriptor, *this));
  }
  watcher_ = &watcher;
  return {};
}

void StreamReader::Detach() {
  if (watcher_ == nullptr) return;
  CloseReplay();
  CloseSnapshot();
  for (const ZmqSocket* socket : {&live_, &monitor_}) {
    if (const auto descriptor = socket->Descriptor()) watcher_->Forget(*descriptor);
  }
  watcher_ = nullptr;
}

bool StreamReader::Turn(std::int64_t now_ms) {
  changed_ = true;
  ReadConnections(now_ms);
  bool more = false;
  if (Flush(now_ms)) {
    more = ReadLive(now_ms);
    if (old_messages_max_ && (!more || *old_messages_max_ <= 0)) {
      old_messages_max_.reset();
      tracker_.OnConnected(now_ms);
    }
    // Trust that was lost is told before the facts that follow, trust that is back after them.
    if (tracker_.state() != StreamState::kLive) TellState();
    const bool flushed = Flush(now_ms);
    SyncReplay(now_ms);
    const bool live_first = more && !reply_seen_ && live_before_reply_ < kLiveQueueMessages;
    if (flushed && replay_ && !live_first) more = ReadReplies(now_ms) || more;
    more = SyncReplay(now_ms) || more;
    if (flushed && snapshot_) more = ReadSnapshot(now_ms) || more;
    SyncSnapshot(now_ms);
    // A stream that is blocked waits for a tick; what it has not read stays where it is.
    more = Flush(now_ms) && more;
  }
  Report();
  return more;
}

bool StreamReader::Tick(std::int64_t now_ms) {
  const bool was_blocked = blocked_;
  if (was_blocked && !Flush(now_ms)) {
    Report();  // the queue is still full, and says so
    return false;
  }
  const StreamState state = tracker_.state();
  const bool caught_up = tracker_.first_catch_up_done();
  if (bind_due_ms_ && now_ms >= *bind_due_ms_) Rebind(now_ms);
  // A publisher that is back is not gone: the turn that reads on will say so.
  if (!old_messages_max_) tracker_.OnTick(now_ms);
  const bool replaying = SyncReplay(now_ms);
  const bool opened = SyncSnapshot(now_ms) || replaying;
  if (changed_ || was_blocked || state != tracker_.state() ||
      caught_up != tracker_.first_catch_up_done()) {
    Report();
  }
  return was_blocked || opened || old_messages_max_ || !tracker_.outputs().empty();
}

// True: stopped by the limit of the turn, not by an empty socket.
bool StreamReader::ReadLive(std::int64_t now_ms) {
  const bool waits = tracker_.state() == StreamState::kCatchingUp;
  const std::size_t frames_max = waits ? kWaitingFramesPerTurnMax : kFramesPerTurnMax;
  for (std::size_t i = 0; i < frames_max; ++i) {
    if (!live_.Receive(message_)) {
      live_before_reply_ = 0;
      return false;
    }
    ++live_before_reply_;
    if (old_messages_max_) --*old_messages_max_;
    ReadLiveMessage(now_ms);
    // The wait is over in the middle of it: what comes is now worth its full price.
    if (tracker_.outputs().size() >= kFramesPerTurnMax) return true;
  }
  return true;
}

void StreamReader::ReadLiveMessage(std::int64_t now_ms) {
  ++counters_.received;
  if (bound_ && !IsOwner(message_, now_ms)) {
    ++counters_.second_publisher;
    message_error_ = "a second publisher, " + message_.peer_address() + ", is connected to " +
                     seed_.registration.endpoint + ": its frames are refused";
    return;
  }
  auto live = conductor::ReadLiveMessage(message_.parts());
  if (!live) {
    ++counters_.malformed;
    message_error_ = live.error().message;
    return;
  }
  if (seed_.registration.has_topic && live->topic != seed_.registration.topic) {
    ++counters_.topic_mismatch;
    return;
  }
  last_frame_ms_ = now_ms;
  if (seed_.registration.type != PublisherType::kSglang) live->epoch.clear();
  tracker_.OnLiveFrame(std::move(live->frame), now_ms, live->epoch);
}

// Hands over everything the tracker has said. False: the sink is full.
bool StreamReader::Flush(std::int64_t now_ms) {
  while (true) {
    if (pending_.empty()) FillPending();
    if (pending_.empty()) break;
    changed_ = true;
    if (!context_.sink.Offer(seed_.stream, pending_, pending_bytes_)) {
      ++counters_.sink_full;
      blocked_ = true;
      return false;
    }
    pending_.clear();
    pending_bytes_ = 0;
  }
  if (std::exchange(blocked_, false)) tracker_.OnResumed(now_ms);
  return true;
}

void StreamReader::FillPending() {
  auto& outputs = tracker_.outputs();
  while (!outputs.empty() && pending_.size() < kFactsPerOfferMax &&
         pending_bytes_ < kBytesPerOfferMax) {
    StreamTracker::Output output = std::move(outputs.front());
    outputs.pop_front();
    Translate(std::move(output));
  }
}

void StreamReader::Translate(StreamTracker::Output&& output) {
  constexpr std::size_t kFactBytes = 128;  // what a fact weighs without its payload
  pending_bytes_ += kFactBytes;
  if (const auto* frame = std::get_if<ReceivedFrame>(&output)) {
    pending_bytes_ += frame->payload.size();
    translator_->Translate(*frame, pending_);
  } else if (auto* epoch = std::get_if<NewEpoch>(&output)) {
    translator_->OnNewLife();
    pending_.emplace_back(*epoch);
  } else if (auto* history = std::get_if<HistoryStart>(&output)) {
    pending_.emplace_back(*history);
  } else if (auto* lost = std::get_if<Lost>(&output)) {
    pending_.emplace_back(*lost);
  } else if (auto* snapshot = std::get_if<PublisherSnapshot>(&output)) {
    constexpr std::size_t kLinkBytes = 24;
    pending_bytes_ += snapshot->links.size() * kLinkBytes;
    pending_.emplace_back(std::move(*snapshot));
  } else {
    const auto& dropped = std::get<Dropped>(output);
    translator_->OnDropped(dropped.reason);
    pending_.emplace_back(dropped);
  }
}

void StreamReader::TellState() {
  if (told_state_ == tracker_.state()) return;
  told_state_ = tracker_.state();
  context_.sink.OnStreamState(seed_.stream, *told_state_);
}

void StreamReader::Report() {
  StreamReport::Facts facts;
  facts.state = tracker_.state();
  facts.connected = tracker_.connected();
  facts.first_catch_up_done =
      tracker_.first_catch_up_done() && !blocked_ && pending_.empty() && tracker_.outputs().empty();
  facts.disconnected_since_ms = tracker_.disconnected_since_ms();
  facts.last_frame_ms = last_frame_ms_;
  facts.waiting_frames = tracker_.waiting_frames();
  facts.tracker = tracker_.counters();
  facts.reader = counters_;
  for (std::string_view text : {std::string_view(connection_error_), tracker_.last_error(),
                                translator_->last_error(), std::string_view(message_error_)}) {
    if (text.empty()) continue;
    facts.last_error = text;
    break;
  }
  report_->Set(std::move(facts));
  TellState();
  changed_ = false;
}

}  // namespace conductor
