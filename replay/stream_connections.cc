// The connections of a stream: whether its publisher is there, which of several it listens to, and
// the replay socket, which lives as long as one question.
#include <string>
#include <utility>

#include "replay/stream_reader.h"

namespace conductor {

void StreamReader::ReadConnections(std::int64_t now_ms) {
  while (monitor_.Receive(message_)) {
    const auto event = ReadConnectionEvent(message_);
    if (!event) continue;
    switch (event->kind) {
      case ZMQ_EVENT_ACCEPTED:
        peers_.insert(event->value);
        break;
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        // Of a second publisher on a bound endpoint nothing is asked.
        if (tracker_.connected()) break;
        connection_error_.clear();
        tracker_.OnConnected(now_ms);
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

void StreamReader::OnConnectionLost(int descriptor, std::int64_t now_ms) {
  if (!bound_) return tracker_.OnDisconnected(now_ms);
  peers_.erase(descriptor);
  const bool served = owner_ ? *owner_ == descriptor : peers_.empty();
  if (!served) return;
  owner_.reset();
  tracker_.OnDisconnected(now_ms);
  // Whoever else is connected may now be the publisher: the first one heard.
  if (!peers_.empty()) tracker_.OnConnected(now_ms);
}

// Whether the message is the one publisher's that a bound endpoint serves.
bool StreamReader::IsOwner(const ZmqMessage& message) {
  const int descriptor = message.source_descriptor();
  if (descriptor < 0) return true;
  if (!owner_) owner_ = descriptor;
  return *owner_ == descriptor;
}

bool StreamReader::ReadReplies(std::int64_t now_ms) {
  for (std::size_t i = 0; i < kFramesPerTurnMax && replay_; ++i) {
    if (!replay_->Receive(message_)) return false;
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
  if (const Status opened = OpenReplay(wanted->from); !opened) {
    context_.slots.Return();
    tracker_.OnReplayFailed(replay_id_, now_ms, "replay: " + opened.error().message);
    return false;
  }
  tracker_.OnReplaySent(replay_id_, now_ms);
  return true;
}

Status StreamReader::OpenReplay(std::uint64_t from) {
  const std::string& endpoint = seed_.registration.replay_endpoint;
  CONDUCTOR_ASSIGN_OR_RETURN(ZmqSocket socket, ZmqSocket::Open(context_.zmq, ZMQ_DEALER));
  // A reply dropped here is a hole, and a hole is another replay: no limit on what waits.
  CONDUCTOR_RETURN_IF_ERROR(socket.SetInt(ZMQ_RCVHWM, 0));
  const auto bytes_max = static_cast<std::int64_t>(context_.options.limits.payload_bytes_max);
  CONDUCTOR_RETURN_IF_ERROR(socket.SetInt64(ZMQ_MAXMSGSIZE, bytes_max));
  if (endpoint.find('[') != std::string::npos) {
    CONDUCTOR_RETURN_IF_ERROR(socket.SetInt(ZMQ_IPV6, 1));
  }
  CONDUCTOR_RETURN_IF_ERROR(socket.Connect(endpoint));
  CONDUCTOR_RETURN_IF_ERROR(socket.Send(ReplayRequest(from)));
  CONDUCTOR_ASSIGN_OR_RETURN(const int descriptor, socket.Descriptor());
  CONDUCTOR_RETURN_IF_ERROR(watcher_->Watch(descriptor, *this));
  replay_ = std::move(socket);
  return {};
}

void StreamReader::CloseReplay() {
  if (!replay_) return;
  if (const auto descriptor = replay_->Descriptor()) watcher_->Forget(*descriptor);
  replay_.reset();
  context_.slots.Return();
}

}  // namespace conductor
