// The service on a RocksDB log in a directory of its own, `interval` sync, as the daemon runs it
// but without front ends. With Streams::kZmq its registrations are subscribed to over libzmq; with
// kNone facts are offered by hand.
//
// Used by one thread; the service's own threads run beside it. Waiting is polling with a deadline.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "bench/workload.h"
#include "src/service/conductor_service.h"
#include "storage/rocksdb_event_log.h"

namespace conductor {
class Subscriptions;
}

namespace conductor::bench {

inline constexpr std::chrono::seconds kPatience{60};

// A new directory below `parent`, removed with this.
class ScratchDirectory {
 public:
  static Result<std::unique_ptr<ScratchDirectory>> Make(const std::string& parent);
  ~ScratchDirectory();
  const std::string& path() const { return path_; }
  std::string data_dir() const { return path_ + "/data"; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

class SteadyClock final : public Clock {
 public:
  std::int64_t MonotonicMs() const override;
  std::int64_t UnixMs() const override;
};

// How a waiting thread looks again: at once (to see the very moment), or after a pause that leaves
// the processor to the service (when the whole takes many pauses).
enum class Poll { kSpin, kPause };

// kDeadlineExceeded, naming `what`, when it does not come true.
Status WaitUntil(const std::string& what, Poll poll, const std::function<bool()>& condition);

class ServiceRig {
 public:
  enum class Streams { kNone, kZmq };

  struct Options {
    std::uint64_t snapshot_interval_events = 0;  // none: what is measured is something else
  };

  // Opens the log of `data_dir`, whatever it holds, and waits until the state is rebuilt.
  static Result<std::unique_ptr<ServiceRig>> Start(const std::string& data_dir, Streams streams,
                                                   const Options& rig_options);
  static Result<std::unique_ptr<ServiceRig>> Start(const std::string& data_dir, Streams streams) {
    return Start(data_dir, streams, Options());
  }
  ~ServiceRig();

  ConductorService& service() { return *service_; }
  const ConductorService& service() const { return *service_; }
  // Of the time from the service's start to its readiness: the rebuild.
  double start_ns() const { return start_ns_; }
  // What all threads of the process took meanwhile.
  double start_processor_ns() const { return start_processor_ns_; }

  Status Register(std::size_t instance, const std::string& endpoint);
  // Hands the frame over, again and again while the queue is full.
  Status Offer(StreamId stream, Frame frame);
  // Prompts [first, first + count) of `source`, kPromptBlocks each in events of kEventBlocks; from
  // frame `number` on, which is the next one afterwards. Waits until they are visible.
  Status Store(const PromptSource& source, StreamId stream, std::uint64_t first, std::size_t count,
               std::uint64_t& number);
  // Whether somebody has the block: O(1), lock-free.
  bool Has(std::uint64_t name) const;
  Status WaitForBlock(std::uint64_t name, Poll poll);
  // Blocks of the whole prompt that `instance` has, by content.
  Result<std::uint64_t> MatchedBlocks(const std::vector<std::int32_t>& tokens) const;

 private:
  ServiceRig() = default;

  SteadyClock clock_;
  std::unique_ptr<storage::RocksDbEventLog> log_;
  std::unique_ptr<ConductorService> service_;
  std::unique_ptr<Subscriptions> zmq_;
  std::unique_ptr<StreamSource> none_;
  double start_ns_ = 0, start_processor_ns_ = 0;
};

}  // namespace conductor::bench
