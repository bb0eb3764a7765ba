// Ports: what the domain needs from the world. Floor 1 implements them; tests use the honest fakes
// in memory_event_log.h, which pass the same contract test as the real ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/fact.h"
#include "src/result.h"
#include "src/types.h"

namespace conductor {

enum class Durability { kBuffered, kSynced };

// The log: positions from 1, no holes. One thread appends (the apply thread); Sync may be called
// by another. Nothing above this port may assume that the log is local or that this process is its
// only reader.
class EventLog {
 public:
  virtual ~EventLog() = default;

  // Writes `records` at FirstSeq() + ... : the first gets LastSeq() + 1. All or nothing. With
  // kSynced the records (and everything before them) are on disk when it returns.
  // After an error the handle is ended: only Reopen and reads of what was read before are allowed.
  virtual Result<Seq> Append(std::span<const Record> records, Durability durability) = 0;

  // Makes everything appended so far durable. Errors end the handle, like Append's. Thread-safe.
  virtual Status Sync() = 0;

  // After an error: opens the store again. Returns its last position, which may be below what was
  // appended without sync; up to it all is on disk. The caller writes the missing records again.
  virtual Result<Seq> Reopen() = 0;

  // Forgets the records before `first`: FirstSeq() is at least that from now on, also after a
  // restart. kInvalidArgument: records before `first` are not on disk yet. Called when a durable
  // snapshot holds what they said. The space comes back in whole files, soon. Errors change
  // nothing; one of the disk ends the handle, like Append's. Thread-safe.
  virtual Status DropBelow(Seq first) = 0;

  // The oldest and newest positions; first > last means empty.
  virtual Seq FirstSeq() const = 0;
  virtual Seq LastSeq() const = 0;

  // Calls `visit` for every record in [from, to], in order, until it returns an error, which is
  // then returned. A hole is kDataLoss. Thread-safe, also while Append runs.
  virtual Status Read(Seq from, Seq to,
                      const std::function<Status(Seq, const Record&)>& visit) const = 0;
};

// One snapshot, or one checkpoint (src/snapshot_store.h).
struct SnapshotInfo {
  Seq seq = 0;
  std::uint64_t bytes = 0;
  std::string path;
  std::int64_t created_unix_ms = 0;
  std::uint64_t blocks = 0;
  std::string digest = {};  // of the state, 32 hex digits; empty: not known
  std::string damage = {};  // why it cannot be used; empty: nothing is known against it
  // What kind of reason: kDataLoss damaged, for good; kFailedPrecondition of a newer release; else
  // it could not be read now, and may be whole.
  ErrorCode damage_code = ErrorCode::kOk;

  bool IsGood() const { return damage.empty(); }
  bool IsDamaged() const { return damage_code == ErrorCode::kDataLoss; }
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t MonotonicMs() const = 0;
  virtual std::int64_t UnixMs() const = 0;
};

// --- Streams ---------------------------------------------------------------------------------

enum class StreamState : std::uint8_t {
  kConnecting = 1,
  kCatchingUp = 2,
  kLive = 3,
  kDegraded = 4
};
std::string_view ToString(StreamState state);

// What a stream tracker needs to go on where the log ends.
struct StreamSeed {
  StreamId stream = 0;
  Registration registration;
  std::uint64_t epoch = 0;              // lives seen, from 1
  std::optional<std::uint64_t> cursor;  // last number applied or lost; none: nothing yet
  std::optional<std::uint64_t> history_from;
  std::optional<std::int64_t> counting_group;  // fixed for this life, if it is
  bool seen_full_size_block = false;
  bool has_lost_ranges = false;
  std::string publisher_epoch;  // SGLang's word for this life; empty: not known
  // (number, fingerprint) of the last frames, oldest first, at most kRecentFingerprintsPerStream.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> recent;
};

// Live facts of a stream that are not in the log. Filled by replay/.
struct StreamStatus {
  StreamState state = StreamState::kConnecting;
  std::int64_t last_frame_age_ms = -1;    // -1: never seen a frame
  std::int64_t disconnected_for_ms = -1;  // -1: connected
  std::string last_error;                 // empty: none
  bool first_catch_up_done = false;
  // Names end in _total; runtime counters since the process started.
  std::vector<std::pair<std::string, std::uint64_t>> counters;
};

// The subscriptions: started and stopped by the service, implemented by replay/. Thread-safe.
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  // Starts reading. Never waits for the network. The endpoint need not exist yet.
  virtual Status Start(const StreamSeed& seed) = 0;
  // Stops reading; when it returns no frame of the stream will be offered again.
  virtual void Stop(StreamId stream) = 0;
  virtual std::optional<StreamStatus> GetStatus(StreamId stream) const = 0;
  virtual void StopAll() = 0;
};

// Where streams hand over what they read: implemented by the apply queue. Facts of one call are
// about one stream, in order: any of NewEpoch, CountingGroup, HistoryStart, Lost, Dropped,
// PublisherSnapshot, Frame.
class FactSink {
 public:
  virtual ~FactSink() = default;
  // Never blocks. False: the queue is full, nothing was taken; call again after `ready` (a callback
  // given at construction of the sink's owner) or a short while. Thread-safe.
  virtual bool Offer(StreamId stream, std::vector<Fact>& facts, std::size_t bytes) = 0;
  // Called at every change of a stream's state (answers carry it). Never blocks. Thread-safe.
  virtual void OnStreamState(StreamId stream, StreamState state) = 0;
};

// What hash verification asks the state: the full digest recomputed for a block of a stream, by
// the name its publisher gives it. Lock-free; a miss is normal. Thread-safe.
class DigestSource {
 public:
  virtual ~DigestSource() = default;
  virtual std::optional<Digest> FindDigest(StreamId stream, const std::string& lora_name,
                                           const BlockName& name) const = 0;
};

}  // namespace conductor
