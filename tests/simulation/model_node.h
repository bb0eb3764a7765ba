// Conductor without its threads and sockets: the real trackers, translators, log writer, log and
// state, driven by hand in the order in which the service drives them: append, apply. It can be
// killed at any moment, with or without what was not synced; what comes back comes from the log.
//
// Every fact is checked on its way to the log: numbers are contiguous within a life, or the hole is
// said. One thread. Faults of the disk are those of MemoryEventLog.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/digest_cache.h"
#include "replay/stream_tracker.h"
#include "replay/translator.h"
#include "src/memory_event_log.h"
#include "src/service/log_writer.h"
#include "src/state/state_machine.h"
#include "tests/simulation/model_publisher.h"
#include "tests/simulation/model_snapshots.h"

namespace conductor::simulation {

struct NodeOptions {
  TrackerOptions tracker;
  LogSync log_sync = LogSync::kInterval;
  std::size_t queue_items_max = 16;
  std::size_t digest_cache_entries = 64;
};

class ModelNode : public DigestSource {
 public:
  explicit ModelNode(const NodeOptions& options) : options_(options) {}

  // The publishers are looked up by their registration's endpoint when a stream starts.
  using Network = std::map<std::string, ModelPublisher*>;
  void Boot(const Network& network, std::int64_t now_ms);
  bool up() const { return state_ != nullptr; }
  void Crash(bool lose_unsynced);

  void Register(const Registration& registration, const Network& network, std::int64_t now_ms);
  void Unregister(const ServiceKey& key, const Network& network, std::int64_t now_ms);

  // The I/O side of one stream: up to `messages` live ones, and replies.
  void Turn(StreamId stream, std::size_t messages, Random& random, const PublisherFaults& faults,
            std::int64_t now_ms);
  void OnConnected(StreamId stream, std::int64_t now_ms);
  void OnDisconnected(StreamId stream, std::int64_t now_ms);
  // The apply side: up to `items` of the queue as one record. The sync side.
  void Commit(std::size_t items, const Network& network, std::int64_t now_ms);
  void Sync() { writer_->SyncIfNeeded(); }
  void StepSnapshot(std::size_t blocks) {
    snapshots_.Step(*state_, applied_, blocks, *writer_, log_);
  }

  const StateMachine& state() const { return *state_; }
  const StreamTracker& tracker(StreamId stream) const { return streams_.at(stream)->tracker; }
  MemoryEventLog& log() { return log_; }
  ModelSnapshots& snapshots() { return snapshots_; }
  // Every record that is applied, from the first: also those that the log has dropped.
  const std::vector<Record>& history() const { return history_; }
  Seq applied() const { return applied_; }
  bool idle() const;
  // Rebuilds after the log lost records that nobody had any more.
  std::uint64_t rebuilds() const { return rebuilds_; }

  std::optional<Digest> FindDigest(StreamId stream, const std::string& lora_name,
                                   const BlockName& name) const override;

 private:
  struct Stream {
    Stream(const StreamSeed& seed, ModelNode& node, ModelPublisher& from, std::int64_t now_ms);
    StreamTracker tracker;
    Translator translator;
    ModelPublisher& publisher;
    std::uint64_t open_replay = 0;
    std::vector<Fact> pending;  // translated, but the queue was full
    bool blocked = false;
    bool connects = false;  // as StreamReader: told when what was queued before is read
  };
  struct Item {
    StreamId stream = 0;
    std::vector<Fact> facts;
  };

  void StartStream(const StreamFacts& facts, const Network& network, std::int64_t now_ms);
  bool Flush(StreamId id, Stream& stream, std::int64_t now_ms);
  static void Translate(Stream& stream, StreamTracker::Output&& output);
  void SyncReplay(Stream& stream, Random& random, const PublisherFaults& faults,
                  std::int64_t now_ms);
  void ReadReplies(Stream& stream, std::size_t messages, std::int64_t now_ms);
  // False: the state was rebuilt from the log, and the record is not in it.
  bool Write(const Record& record, bool synced, const Network& network, std::int64_t now_ms);
  void Apply(const Record& record, Seq seq);
  void CheckOrder(const Record& record) const;
  void Rebuild();
  void StopStreams();
  void StartStreams(const Network& network, std::int64_t now_ms);

  const NodeOptions options_;
  MemoryEventLog log_;
  std::vector<Record> history_;
  // What a process has in memory.
  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<StateMachine> state_;
  ModelSnapshots snapshots_;  // what is being taken goes before the state
  std::unique_ptr<DigestCache> cache_;
  std::map<StreamId, std::unique_ptr<Stream>> streams_;
  std::deque<Item> queue_;
  Seq applied_ = 0;
  std::uint64_t rebuilds_ = 0;
};

}  // namespace conductor::simulation
