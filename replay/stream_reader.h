// One subscription: its sockets, its tracker and its translator, driven by one I/O thread.
//
// A turn reads a bounded number of messages, so that no stream starves the others, and hands over
// what came out of them. When the sink takes nothing the stream is blocked: it reads no frames
// until the sink has taken what is pending; its publisher's high-water mark and the replay endpoint
// see to the rest. Live messages are read before replies, because a ring may have lost what waits
// here.
//
// Open runs on any thread; everything else on the I/O thread the stream belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "replay/messages.h"
#include "replay/replay_slots.h"
#include "replay/snapshot_request.h"
#include "replay/stream_report.h"
#include "replay/stream_tracker.h"
#include "replay/translator.h"
#include "replay/zmq_socket.h"

namespace conductor {

// Frames one stream reads from a socket in one turn.
inline constexpr std::size_t kFramesPerTurnMax = 256;
// Frames a stream that catches up reads from its live socket first: they are only put aside.
inline constexpr std::size_t kWaitingFramesPerTurnMax = 4'096;
// Facts and payload bytes of one offer to the sink.
inline constexpr std::size_t kFactsPerOfferMax = 128;
inline constexpr std::size_t kBytesPerOfferMax = 1u << 20;
// Snapshot messages of one turn: each may hold thousands of blocks.
inline constexpr std::size_t kSnapshotRepliesPerTurnMax = 16;
// Live messages libzmq keeps for us; beyond it the publisher's queue fills, and then it drops.
inline constexpr int kLiveQueueMessages = 200'000;

// What a stream borrows. All of it outlives the stream.
struct ReaderContext {
  const ZmqContext& zmq;
  FactSink& sink;
  const DigestSource& digests;
  const TrackerOptions& options;
  ReplaySlots& slots;
};

class StreamReader {
 public:
  // Creates and connects (or binds) the live socket; never waits for the network. Errors name the
  // endpoint and libzmq's reason.
  static Result<std::unique_ptr<StreamReader>> Open(const ReaderContext& context,
                                                    const StreamSeed& seed, std::int64_t now_ms);
  ~StreamReader();

  // Before the first turn. `watch` is told of descriptors to wait for; the reader outlives its use.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual Status Watch(int descriptor, StreamReader& reader) = 0;
    virtual void Forget(int descriptor) = 0;
  };
  Status Attach(Watcher& watcher, DigestCache& cache);
  void Detach();

  // Reads and hands over. True: there may be more to do at once.
  bool Turn(std::int64_t now_ms);
  // Timeouts, waiting replays and refused offers; several times a second. True: wants a turn.
  bool Tick(std::int64_t now_ms);

  StreamId stream() const { return seed_.stream; }
  const std::shared_ptr<StreamReport>& report() const { return report_; }

  bool queued = false;  // the I/O thread's: already in line for a turn

 private:
  StreamReader(const ReaderContext& context, const StreamSeed& seed, std::int64_t now_ms,
               ZmqSocket live, ZmqSocket monitor, bool bound);

  // stream_reader.cc
  bool ReadLive(std::int64_t now_ms);
  void ReadLiveMessage(std::int64_t now_ms);
  bool Flush(std::int64_t now_ms);
  void FillPending();
  void Translate(StreamTracker::Output&& output);
  void TellState();
  void Report();

  // stream_connections.cc
  void ReadConnections(std::int64_t now_ms);
  void OnConnectionUp(std::int64_t now_ms);
  void OnConnectionLost(int descriptor, std::int64_t now_ms);
  bool IsOwner(const ZmqMessage& message, std::int64_t now_ms);
  void BindLater(const Error& error, std::int64_t now_ms);
  void Rebind(std::int64_t now_ms);
  void AwaitPublisher();
  bool ReadReplies(std::int64_t now_ms);
  bool SyncReplay(std::int64_t now_ms);
  Result<ZmqSocket> Ask(const std::string& endpoint, std::span<const std::string> request);
  void CloseReplay();

  // stream_snapshot.cc
  bool ReadSnapshot(std::int64_t now_ms);
  bool ReadSnapshotReply(std::int64_t now_ms);
  bool SyncSnapshot(std::int64_t now_ms);
  void CloseSnapshot();

  const ReaderContext context_;
  const StreamSeed seed_;  // its cursor and recent frames are only the start
  const bool bound_;
  const std::int64_t first_replay_ms_;  // not before: jitter after our own restart
  StreamTracker tracker_;
  std::optional<Translator> translator_;  // from Attach on
  std::shared_ptr<StreamReport> report_;  // shared with status requests, which may outlive us

  Watcher* watcher_ = nullptr;
  ZmqSocket live_;
  ZmqSocket monitor_;
  std::optional<ZmqSocket> replay_;
  std::uint64_t replay_id_ = 0;  // of the replay that is open, or was last
  // An answer's first message decides what is lost: live messages that came before it are read
  // before it. Once it has come, the rest is read with them in turn.
  bool reply_seen_ = false;
  std::uint64_t live_before_reply_ = 0;  // read since the live socket was last empty
  // The snapshot request that is open, as far as it has been answered.
  struct SnapshotRequest {
    std::uint64_t id = 0;
    ZmqSocket socket;
    SnapshotAnswer answer;
    bool started = false;
  };
  std::optional<SnapshotRequest> snapshot_;
  ZmqMessage message_;
  ZmqMessage connection_event_;

  // A bound endpoint: connections that are up, and the one whose frames count: the first one heard.
  // An owner that has gone keeps its place, for what it left in the queue, until another is heard.
  std::set<int> peers_;
  std::optional<int> owner_;
  bool owner_is_up_ = false;
  std::optional<std::int64_t> bind_due_ms_;  // its port was in use
  // A connection is up that the tracker is not told of yet: so many messages of the one before may
  // still be in the queue.
  std::optional<int> old_messages_max_;

  std::vector<Fact> pending_;
  std::size_t pending_bytes_ = 0;
  bool blocked_ = false;
  bool changed_ = true;                    // since the last report
  std::optional<StreamState> told_state_;  // to the sink
  std::int64_t last_frame_ms_ = -1;
  ReaderCounters counters_;
  std::string connection_error_;  // empty once connected
  std::string message_error_;     // of the last message that was refused
};

}  // namespace conductor
