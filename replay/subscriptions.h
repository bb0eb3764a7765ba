// The streams of all registrations: the StreamSource of the service, over libzmq.
//
// A few I/O threads serve any number of streams (Limits::stream_threads). Decoding, hash comparison
// and fingerprints happen there; facts go to the sink, which never blocks. All calls are
// thread-safe and none waits for the network. Sink, digest source and clock outlive it.
//
//   auto subscriptions = Subscriptions::Open(options, service, service, clock);
//   service.Start(**subscriptions, static_registrations);
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "replay/io_thread.h"
#include "replay/replay_slots.h"
#include "replay/stream_report.h"
#include "replay/zmq_context_pool.h"
#include "src/limits.h"
#include "src/mutex.h"
#include "src/ports.h"

namespace conductor {

struct SubscriptionOptions {
  Limits limits;
  // The value in force: written into the facts that begin a life.
  UnverifiedBlocks unverified_blocks = UnverifiedBlocks::kContent;
  bool drop_on_lost_events = false;       // on_lost_events: "drop"
  std::int64_t disconnected_drop_ms = 0;  // disconnected_drop_s; 0: never
};

class Subscriptions : public StreamSource {
 public:
  // Also raises the process's soft limit of descriptors to the hard one.
  static Result<std::unique_ptr<Subscriptions>> Open(const SubscriptionOptions& options,
                                                     FactSink& sink, const DigestSource& digests,
                                                     const Clock& clock);
  ~Subscriptions() override;

  // Errors: INVALID_ARGUMENT (field endpoint, with libzmq's reason), RESOURCE_EXHAUSTED (streams or
  // descriptors), ALREADY_EXISTS, UNAVAILABLE after StopAll.
  Status Start(const StreamSeed& seed) override;
  void Stop(StreamId stream) override;
  std::optional<StreamStatus> GetStatus(StreamId stream) const override;
  void StopAll() override;

 private:
  struct Entry {
    std::size_t thread = 0;
    std::size_t context = 0;
    std::shared_ptr<StreamReport> report;  // shared with the stream's I/O thread
  };

  Subscriptions(const SubscriptionOptions& options, FactSink& sink, const DigestSource& digests,
                const Clock& clock);

  const TrackerOptions options_;
  FactSink& sink_;
  const DigestSource& digests_;
  const Clock& clock_;
  ReplaySlots slots_;

  mutable Mutex mutex_;
  ZmqContextPool contexts_ GUARDED_BY(mutex_);      // outlives the sockets of the threads
  std::vector<std::unique_ptr<IoThread>> threads_;  // fixed after Open
  std::unordered_map<StreamId, Entry> entries_ GUARDED_BY(mutex_);
  std::vector<std::size_t> load_ GUARDED_BY(mutex_);  // streams of each thread
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace conductor
