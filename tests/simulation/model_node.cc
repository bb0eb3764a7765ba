#include "tests/simulation/model_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "replay/messages.h"
#include "src/check.h"
#include "src/service/conductor_service.h"
#include "src/service/recover.h"
#include "tests/simulation/trace.h"

namespace conductor::simulation {
namespace {

constexpr std::size_t kFactsPerOffer = 4;
constexpr std::size_t kUnsyncedBytesMax = 64u << 10;
constexpr std::size_t kFactBytes = 128;

std::vector<MessagePart> Parts(const enginesim::Message& message) {
  std::vector<MessagePart> parts;
  for (const std::string& part : message) {
    parts.emplace_back(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
  }
  return parts;
}

}  // namespace

ModelNode::Stream::Stream(const StreamSeed& seed, ModelNode& node, ModelPublisher& from,
                          std::int64_t now_ms)
    : tracker(seed, node.options_.tracker, now_ms),
      translator(seed, {}, node, *node.cache_),
      publisher(from) {}

// --- life ----------------------------------------------------------------------------------------

void ModelNode::Boot(const Network& network, std::int64_t now_ms) {
  CHECK(!up());
  Trace("node", "boots");
  while (!log_.Reopen()) {
  }
  writer_ = std::make_unique<LogWriter>(log_, options_.log_sync, kUnsyncedBytesMax);
  cache_ = std::make_unique<DigestCache>(options_.digest_cache_entries);
  Rebuild();
  StartStreams(network, now_ms);
}

void ModelNode::Crash(bool lose_unsynced) {
  Trace("node", lose_unsynced ? "loses power" : "is killed");
  StopStreams();
  queue_.clear();
  snapshots_.GiveUp();
  writer_.reset();
  cache_.reset();
  state_.reset();
  log_.CrashForTest(lose_unsynced);
}

void ModelNode::Rebuild() {
  snapshots_.GiveUp();
  auto recovered = RecoverState(log_, snapshots_.store(), {});
  ASSERT_TRUE(recovered) << recovered.error().message;
  for (const Seq damaged : recovered->damaged) EXPECT_TRUE(snapshots_.store().SetAside(damaged));
  state_ = std::move(recovered->state);
  applied_ = recovered->seq;
  writer_->StartAt(applied_);
  // The log may have lost its end, or hold what nobody had applied yet.
  if (history_.size() > applied_) history_.resize(applied_);
  if (history_.size() == applied_) return;
  EXPECT_TRUE(log_.Read(history_.size() + 1, applied_, [&](Seq, const Record& record) -> Status {
    history_.push_back(record);
    return {};
  }));
}

void ModelNode::StartStreams(const Network& network, std::int64_t now_ms) {
  for (const auto& [id, facts] : state_->streams()) StartStream(facts, network, now_ms);
}

void ModelNode::StartStream(const StreamFacts& facts, const Network& network, std::int64_t now_ms) {
  ModelPublisher& publisher = *network.at(facts.registration.endpoint);
  streams_[facts.id] = std::make_unique<Stream>(facts.Seed(), *this, publisher, now_ms);
}

void ModelNode::StopStreams() {
  for (auto& [id, stream] : streams_) {
    stream->publisher.Disconnect(/*loses_messages=*/true);
    stream->publisher.CloseReplay();
  }
  streams_.clear();
}

bool ModelNode::idle() const {
  return queue_.empty() && std::all_of(streams_.begin(), streams_.end(), [](const auto& entry) {
           const Stream& stream = *entry.second;
           return stream.pending.empty() && !stream.connects && !stream.publisher.HasLive() &&
                  stream.tracker.state() != StreamState::kCatchingUp &&
                  !stream.tracker.wanted_replay();
         });
}

// --- registrations -------------------------------------------------------------------------------

void ModelNode::Register(const Registration& registration, const Network& network,
                         std::int64_t now_ms) {
  const auto already = state_->CheckRegister(registration);
  ASSERT_TRUE(already) << already.error().message;
  ASSERT_FALSE(*already);
  const Record record{{Registered{registration, options_.tracker.unverified_blocks}}};
  if (!Write(record, /*synced=*/true, network, now_ms)) return;
  StartStream(*state_->FindStream(registration.Key()), network, now_ms);
}

void ModelNode::Unregister(const ServiceKey& key, const Network& network, std::int64_t now_ms) {
  const StreamFacts* facts = state_->FindStream(key);
  ASSERT_NE(facts, nullptr);
  // What it had queued stays in the queue, and must not resurface.
  const auto stream = streams_.find(facts->id);
  stream->second->publisher.Disconnect(/*loses_messages=*/true);
  stream->second->publisher.CloseReplay();
  streams_.erase(stream);
  const Record record{{Unregistered{key}}};
  static_cast<void>(Write(record, /*synced=*/true, network, now_ms));
}

// --- the I/O side --------------------------------------------------------------------------------

void ModelNode::OnConnected(StreamId stream, std::int64_t now_ms) {
  Trace(streams_.at(stream)->publisher.name(), "connected");
  Stream& found = *streams_.at(stream);
  found.connects = found.tracker.counters().disconnects > 0;
  if (!found.connects) found.tracker.OnConnected(now_ms);
}
void ModelNode::OnDisconnected(StreamId stream, std::int64_t now_ms) {
  Trace(streams_.at(stream)->publisher.name(), "disconnected");
  streams_.at(stream)->connects = false;
  streams_.at(stream)->tracker.OnDisconnected(now_ms);
}

void ModelNode::Turn(StreamId id, std::size_t messages, Random& random,
                     const PublisherFaults& faults, std::int64_t now_ms) {
  Stream& stream = *streams_.at(id);
  if (!Flush(id, stream, now_ms)) return;
  for (std::size_t i = 0; i < messages; ++i) {
    const auto message = stream.publisher.ReceiveLive();
    if (!message) break;
    auto live = ReadLiveMessage(Parts(*message));
    ASSERT_TRUE(live) << live.error().message;
    Trace(stream.publisher.name(), "live", live->frame.number, ToString(stream.tracker.state()));
    stream.tracker.OnLiveFrame(std::move(live->frame), now_ms);
  }
  if (!stream.publisher.HasLive() && std::exchange(stream.connects, false)) {
    stream.tracker.OnConnected(now_ms);
  }
  const bool flushed = Flush(id, stream, now_ms);
  SyncReplay(stream, random, faults, now_ms);
  if (flushed) ReadReplies(stream, messages, now_ms);
  SyncReplay(stream, random, faults, now_ms);
  if (Flush(id, stream, now_ms) && !stream.connects) stream.tracker.OnTick(now_ms);
}

void ModelNode::SyncReplay(Stream& stream, Random& random, const PublisherFaults& faults,
                           std::int64_t now_ms) {
  const auto wanted = stream.tracker.wanted_replay();
  if (!wanted) {
    stream.publisher.CloseReplay();
    return;
  }
  if (wanted->id == stream.open_replay) return;
  stream.open_replay = wanted->id;
  Trace(stream.publisher.name(), "asks from", wanted->from, "at ms", now_ms);
  stream.publisher.Ask(ReplayRequest(wanted->from)[1], random, faults, now_ms);
  stream.tracker.OnReplaySent(wanted->id, now_ms);
}

void ModelNode::ReadReplies(Stream& stream, std::size_t messages, std::int64_t now_ms) {
  for (std::size_t i = 0; i < messages; ++i) {
    const auto message = stream.publisher.ReceiveReply(now_ms);
    if (!message) return;
    auto reply = ReadReplayMessage(Parts(*message));
    ASSERT_TRUE(reply) << reply.error().message;
    if (reply->end) {
      Trace(stream.publisher.name(), "end of replies");
      stream.tracker.OnReplayEnd(stream.open_replay, now_ms);
    } else {
      Trace(stream.publisher.name(), "reply", reply->frame.number);
      stream.tracker.OnReplayFrame(stream.open_replay, std::move(reply->frame), now_ms);
    }
    const auto wanted = stream.tracker.wanted_replay();
    if (!wanted || wanted->id != stream.open_replay) return stream.publisher.CloseReplay();
  }
}

// As StreamReader does: translated facts wait, and nothing is read, while the queue is full.
bool ModelNode::Flush(StreamId id, Stream& stream, std::int64_t now_ms) {
  while (true) {
    auto& outputs = stream.tracker.outputs();
    while (stream.pending.size() < kFactsPerOffer && !outputs.empty()) {
      StreamTracker::Output output = std::move(outputs.front());
      outputs.pop_front();
      Translate(stream, std::move(output));
    }
    if (stream.pending.empty()) break;
    if (queue_.size() >= options_.queue_items_max) {
      stream.blocked = true;
      return false;
    }
    queue_.push_back({id, std::exchange(stream.pending, {})});
  }
  if (std::exchange(stream.blocked, false)) stream.tracker.OnResumed(now_ms);
  return true;
}

void ModelNode::Translate(Stream& stream, StreamTracker::Output&& output) {
  if (const auto* frame = std::get_if<ReceivedFrame>(&output)) {
    stream.translator.Translate(*frame, stream.pending);
  } else if (const auto* epoch = std::get_if<NewEpoch>(&output)) {
    stream.translator.OnNewLife();
    stream.pending.emplace_back(*epoch);
  } else if (const auto* history = std::get_if<HistoryStart>(&output)) {
    stream.pending.emplace_back(*history);
  } else if (const auto* lost = std::get_if<Lost>(&output)) {
    stream.pending.emplace_back(*lost);
  } else {
    const auto& dropped = std::get<Dropped>(output);
    stream.translator.OnDropped(dropped.reason);
    stream.pending.emplace_back(dropped);
  }
}

// --- the apply side ------------------------------------------------------------------------------

void ModelNode::Commit(std::size_t items, const Network& network, std::int64_t now_ms) {
  Record record;
  for (; items > 0 && !queue_.empty(); --items) {
    Item item = std::move(queue_.front());
    queue_.pop_front();
    if (state_->FindStream(item.stream) == nullptr) continue;
    std::move(item.facts.begin(), item.facts.end(), std::back_inserter(record.facts));
  }
  if (!record.facts.empty()) static_cast<void>(Write(record, false, network, now_ms));
}

bool ModelNode::Write(const Record& record, bool synced, const Network& network,
                      std::int64_t now_ms) {
  const std::size_t bytes = record.facts.size() * kFactBytes;
  while (true) {
    const auto seq = synced ? writer_->WriteSynced(record)
                            : writer_->Write(std::make_shared<const Record>(record), bytes);
    if (seq) {
      Apply(record, *seq);
      return true;
    }
    LogWriter::Recovery recovery = writer_->Recover();
    while (recovery == LogWriter::Recovery::kFailed) recovery = writer_->Recover();
    if (recovery == LogWriter::Recovery::kRecordPresent) {
      Apply(record, writer_->appended());
      return true;
    }
    if (recovery != LogWriter::Recovery::kRebuild) continue;
    // What waits was read by trackers that are ahead of the log: it is fetched again.
    ++rebuilds_;
    StopStreams();
    queue_.clear();
    Rebuild();
    while (writer_->failed()) static_cast<void>(writer_->Recover());
    StartStreams(network, now_ms);
    return false;
  }
}

void ModelNode::Apply(const Record& record, Seq seq) {
  if (Tracing()) {
    for (const std::string& line : RenderRecord(seq, record)) Trace("node", line);
  }
  CheckOrder(record);
  state_->Apply(record);
  applied_ = seq;
  history_.resize(seq - 1);
  history_.push_back(record);
}

// Numbers follow each other within a life, or what lies between is said before.
void ModelNode::CheckOrder(const Record& record) const {
  struct Place {
    std::optional<std::uint64_t> cursor, history;
  };
  std::map<StreamId, Place> places;
  const auto place = [&](StreamId id) -> Place& {
    const StreamFacts* facts = state_->FindStream(id);
    const auto [at, fresh] = places.try_emplace(id);
    if (fresh && facts != nullptr) at->second = {facts->cursor, facts->history_from};
    return at->second;
  };
  for (const Fact& fact : record.facts) {
    if (const auto* frame = std::get_if<Frame>(&fact)) {
      Place& at = place(frame->stream);
      if (at.cursor) {
        EXPECT_EQ(frame->number, *at.cursor + 1);
      } else if (frame->number > 0) {
        EXPECT_EQ(at.history, frame->number);
      }
      at.cursor = frame->number;
    } else if (const auto* lost = std::get_if<Lost>(&fact)) {
      Place& at = place(lost->stream);
      EXPECT_TRUE(at.cursor && lost->from == *at.cursor + 1 && lost->from <= lost->to);
      at.cursor = lost->to;
    } else if (const auto* history = std::get_if<HistoryStart>(&fact)) {
      EXPECT_FALSE(place(history->stream).cursor);
      place(history->stream).history = history->number;
    } else if (const auto* epoch = std::get_if<NewEpoch>(&fact)) {
      place(epoch->stream) = {};
    } else if (const auto* dropped = std::get_if<Dropped>(&fact)) {
      if (dropped->reason == DropReason::kDisconnected) place(dropped->stream) = {};
    }
  }
}

std::optional<Digest> ModelNode::FindDigest(StreamId stream, const std::string& lora_name,
                                            const BlockName& name) const {
  const StreamFacts* facts = state_->FindStream(stream);
  if (facts == nullptr) return std::nullopt;
  ContextKey key = facts->registration.Context();
  key.lora_name = lora_name;
  const ContextId context = state_->index().contexts().Find(key);
  if (context == 0) return std::nullopt;
  return state_->index().FindDigest(context, static_cast<Scope>(stream), name);
}

}  // namespace conductor::simulation
