// A stream's request for its publisher's own snapshot (SGLang): a socket and what has been answered
// so far. A snapshot reaches the tracker whole or not at all.
#include <string>
#include <utility>

#include "replay/stream_reader.h"

namespace conductor {

bool StreamReader::ReadSnapshot(std::int64_t now_ms) {
  for (std::size_t i = 0; i < kSnapshotRepliesPerTurnMax && snapshot_; ++i) {
    if (!snapshot_->socket.Receive(message_)) return false;
    changed_ = true;
    if (!ReadSnapshotReply(now_ms) || tracker_.wanted_snapshot() != snapshot_->id) CloseSnapshot();
  }
  return true;
}

// False: that was the last one, for better or worse.
bool StreamReader::ReadSnapshotReply(std::int64_t now_ms) {
  const std::uint64_t id = snapshot_->id;
  SnapshotAnswer& answer = snapshot_->answer;
  const auto whole = answer.Add(message_.parts());
  if (!whole) {
    tracker_.OnSnapshotFailed(id, now_ms, whole.error().message);
    return false;
  }
  if (!std::exchange(snapshot_->started, true)) {
    tracker_.OnSnapshotStart(id, {answer.resume_number(), answer.epoch()}, now_ms);
  }
  tracker_.OnSnapshotProgress(id, now_ms);
  if (!*whole) return true;
  PublisherSnapshot snapshot;
  snapshot.resume_number = answer.resume_number();
  snapshot.epoch = answer.epoch();
  snapshot.links = answer.TakeLinks();
  tracker_.OnSnapshot(id, std::move(snapshot), now_ms);
  return false;
}

// Makes the open request the one the tracker wants. True: one was opened, read it.
bool StreamReader::SyncSnapshot(std::int64_t now_ms) {
  const auto wanted = tracker_.wanted_snapshot();
  if (snapshot_ && wanted != snapshot_->id) CloseSnapshot();
  if (!wanted || snapshot_ || watcher_ == nullptr) return false;
  if (!context_.slots.TryTake()) return false;
  changed_ = true;
  auto socket = Ask(seed_.registration.snapshot_endpoint, SnapshotRequestParts());
  if (!socket) {
    context_.slots.Return();
    tracker_.OnSnapshotFailed(*wanted, now_ms, "snapshot: " + socket.error().message);
    return false;
  }
  const std::uint32_t rank = seed_.registration.dp_rank;
  snapshot_.emplace(SnapshotRequest{*wanted, std::move(*socket), SnapshotAnswer(rank)});
  tracker_.OnSnapshotSent(*wanted, now_ms);
  return true;
}

void StreamReader::CloseSnapshot() {
  if (!snapshot_) return;
  if (const auto descriptor = snapshot_->socket.Descriptor()) watcher_->Forget(*descriptor);
  snapshot_.reset();
  context_.slots.Return();
}

}  // namespace conductor
