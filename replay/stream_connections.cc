// The connections of a stream: whether its publisher is there, which of several it listens to, and
// the replay socket, which lives as long as one question.
#include <span>
#include <string>
#include <utility>

#include "replay/stream_reader.h"

namespace conductor {

void StreamReader::ReadConnections(std::int64_t now_ms) {
  while (monitor_.Receive(connection_event_)) {
    const auto event = ReadConnectionEvent(connection_event_);
    if (!event) continue;
    switch (event->kind) {
      case ZMQ_EVENT_ACCEPTED:
        peers_.insert(event->value);
        break;
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        // Of a second publisher on a bound endpoint nothing is asked.
        if (tracker_.connected() || old_messages_max_) break;
        connection_error_.clear();
        OnConnectionUp(now_ms);
        break;
      case ZMQ_EVENT_DISCONNECTED:
        OnConnectionLost(event->value, now_ms);
        break;
      case ZMQ_EVENT_CONNECT_RETRIED:
        ++counters_.connect_retries;
        if (!tracker_.connected()) {
          connection_error_ = "no publisher answers at " + seed_.registration.endpoint;
        }
        break;
      default:
        break;
    }
  }
}

// What the connection before left in the queue is read first: it may be of a process that is gone,
// and the tracker takes what it reads after the report for the words of whoever is there now.
void StreamReader::OnConnectionUp(std::int64_t now_ms) {
  if (tracker_.counters().disconnects == 0) return tracker_.OnConnected(now_ms);
  old_messages_max_ = kLiveQueueMessages;
}

void StreamReader::OnConnectionLost(int descriptor, std::int64_t now_ms) {
  if (!bound_) {
    old_messages_max_.reset();
    return tracker_.OnDisconnected(now_ms);
  }
  peers_.erase(descriptor);
  const bool served = owner_is_up_ ? *owner_ == descriptor : peers_.empty();
  if (!served) return;
  owner_is_up_ = false;
  old_messages_max_.reset();
  tracker_.OnDisconnected(now_ms);
  if (peers_.empty()) return AwaitPublisher();
  // Whoever else is connected may now be the publisher: the first one heard.
  OnConnectionUp(now_ms);
}

// Whether the message is the one publisher's that a bound endpoint serves. Messages outlive their
// connection, and descriptors are used again: only one that is up becomes the owner.
bool StreamReader::IsOwner(const ZmqMessage& message, std::int64_t now_ms) {
  const int descriptor = message.source_descriptor();
  if (descriptor < 0) return true;
  // Accepted since we looked.
  if (peers_.count(descriptor) == 0) ReadConnections(now_ms);
  if (!owner_is_up_ && peers_.count(descriptor) != 0) {
    owner_ = descriptor;
    owner_is_up_ = true;
  }
  return owner_ == descriptor;
}

void StreamReader::BindLater(const Error& error, std::int64_t now_ms) {
  connection_error_ = error.message;
  bind_due_ms_ = now_ms + context_.options.limits.reconnect_ms_max;
  changed_ = true;
}

void StreamReader::Rebind(std::int64_t now_ms) {
  if (const Status bound = live_.Bind(seed_.registration.endpoint); !bound) {
    return BindLater(bound.error(), now_ms);
  }
  bind_due_ms_.reset();
  AwaitPublisher();
}

void StreamReader::AwaitPublisher() {
  connection_error_ = "no publisher is connected to " + seed_.registration.endpoint;
  changed_ = true;
}

bool StreamReader::ReadReplies(std::int64_t now_ms) {
  for (std::size_t i = 0; i < kFramesPerTurnMax && replay_; ++i) {
    if (!replay_->Receive(message_)) return false;
    reply_seen_ = true;
    auto reply = ReadReplayMessage(message_.parts());
    if (!reply) {
      ++counters_.malformed;
      message_error_ = "replay: " + reply.error().message;
      continue;
    }
    if (reply->end) {
      tracker_.OnReplayEnd(replay_id_, now_ms);
    } else {
      tracker_.OnReplayFrame(replay_id_, std::move(reply->frame), now_ms);
    }
    const auto wanted = tracker_.wanted_replay();
    if (!wanted || wanted->id != replay_id_) CloseReplay();
  }
  return true;
}

// Makes the open replay the one the tracker wants. True: one was opened, read it.
bool StreamReader::SyncReplay(std::int64_t now_ms) {
  const auto wanted = tracker_.wanted_replay();
  if (replay_ && (!wanted || wanted->id != replay_id_)) CloseReplay();
  if (!wanted || replay_ || now_ms < first_replay_ms_ || watcher_ == nullptr) return false;
  if (!context_.slots.TryTake()) return false;
  replay_id_ = wanted->id;
  changed_ = true;
  auto socket = Ask(seed_.registration.replay_endpoint, ReplayRequest(wanted->from));
  if (!socket) {
    context_.slots.Return();
    tracker_.OnReplayFailed(replay_id_, now_ms, "replay: " + socket.error().message);
    return false;
  }
  replay_ = std::move(*socket);
  reply_seen_ = false;
  tracker_.OnReplaySent(replay_id_, now_ms);
  return true;
}

// A socket that lives as long as one question.
Result<ZmqSocket> StreamReader::Ask(const std::string& endpoint,
                                    std::span<const std::string> request) {
  CONDUCTOR_ASSIGN_OR_RETURN(ZmqSocket socket, ZmqSocket::Open(context_.zmq, ZMQ_DEALER));
  // A reply dropped here is a hole, and a hole is another replay: no limit on what waits.
  CONDUCTOR_RETURN_IF_ERROR(socket.SetInt(ZMQ_RCVHWM, 0));
  const auto bytes_max = static_cast<std::int64_t>(context_.options.limits.payload_bytes_max);
  CONDUCTOR_RETURN_IF_ERROR(socket.SetInt64(ZMQ_MAXMSGSIZE, bytes_max));
  if (endpoint.find('[') != std::string::npos) {
    CONDUCTOR_RETURN_IF_ERROR(socket.SetInt(ZMQ_IPV6, 1));
  }
  CONDUCTOR_RETURN_IF_ERROR(socket.Connect(endpoint));
  CONDUCTOR_RETURN_IF_ERROR(socket.Send(request));
  CONDUCTOR_ASSIGN_OR_RETURN(const int descriptor, socket.Descriptor());
  CONDUCTOR_RETURN_IF_ERROR(watcher_->Watch(descriptor, *this));
  return socket;
}

void StreamReader::CloseReplay() {
  if (!replay_) return;
  if (const auto descriptor = replay_->Descriptor()) watcher_->Forget(*descriptor);
  replay_.reset();
  context_.slots.Return();
}

}  // namespace conductor
