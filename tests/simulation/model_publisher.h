// One simulated publisher: an engine, its numbers, its replay ring and its live channel, with the
// faults of the field: live frames dropped or repeated, connections lost, replies late, cut, with
// holes or missing, a process that restarts empty or does its old work again. Speaks real messages;
// who listens reads them as it would read a socket. One thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/model_engine.h"
#include "tools/replay_ring.h"

namespace conductor::simulation {

struct PublisherFaults {
  bool honest_replies = true;  // always at once and complete
  std::uint64_t drop_percent = 10;
};

class ModelPublisher {
 public:
  ModelPublisher(std::string name, const EngineTraits& traits, const PromptPool& pool,
                 std::size_t ring_max);

  // Publishes the next piece of work under the next number.
  void Publish(Random& random, const PublisherFaults& faults);
  // A new process. `same_work`: it begins with what the old one did, in the same bytes.
  void Restart(Random& random, bool same_work);

  // The subscription's live channel.
  void Connect(Random& random);
  void Disconnect(bool loses_messages);
  bool connected() const { return connected_; }
  std::optional<enginesim::Message> ReceiveLive();
  bool HasLive() const { return !live_.empty(); }

  // The answer to one replay request; a new request, or none, ends the old one.
  void Ask(const std::string& start, Random& random, const PublisherFaults& faults,
           std::int64_t now_ms);
  std::optional<enginesim::Message> ReceiveReply(std::int64_t now_ms);
  void CloseReplay() { replies_.clear(); }

  const ModelEngine& engine() const { return engine_; }
  const std::string& name() const { return name_; }
  std::uint64_t published() const { return next_; }
  std::uint64_t restarts() const { return restarts_; }
  // What the cache of this life holds, and what any life ever held.
  const CacheContent& content() const { return content_; }
  const CacheContent& ever() const { return ever_; }

 private:
  struct Batch {
    std::vector<CacheChange> changes;
    enginesim::Payload payload;
  };
  void Send(std::uint64_t number, const enginesim::Payload& payload);

  const std::string name_;
  const ModelEngine engine_;
  enginesim::ReplayRing ring_;
  const enginesim::ReplayLayout layout_;
  std::vector<Batch> life_;    // by number
  std::deque<Batch> planned_;  // of a life that repeats the one before
  std::uint64_t next_ = 0, restarts_ = 0;
  CacheContent content_, ever_;

  bool connected_ = false;
  std::deque<enginesim::Message> live_;
  std::deque<enginesim::Message> replies_;
  std::int64_t replies_due_ms_ = 0;
};

}  // namespace conductor::simulation
