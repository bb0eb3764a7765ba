// A simulated Mooncake Store master: blocks put and removed, KV events out, for a chosen era.
//
// It knows which blocks it has on which medium, at most `blocks` of them: what was put longest ago
// goes first, and says so. A block is one object for each part of it (store_keys.h), and each
// object an event of its own; events go out in batches of at most 64. Numbers and event ids count
// from 1 in each life. There is no replay: what nobody heard is lost, as with the real one.
// `context` must outlive the store. Thread-safe; commands run one after the other.
//
//   auto store = StoreSim::Start(context, {.keys = {.model_name = "m"}});
//   auto outcome = (*store)->Put(digests, "cpu");
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/result.h"
#include "src/types.h"
#include "tools/publisher.h"
#include "tools/store_encoder.h"
#include "tools/store_keys.h"

namespace conductor::enginesim {

struct StoreOptions {
  StoreEra era = StoreEra::kM3;
  StoreConfig config{};
  KeyOptions keys{};
  std::size_t blocks = 1'000'000;  // on all media together
  PublisherOptions publisher{};    // its replay endpoint and first number are the store's own
  // The time in each batch, seconds since 1970. Empty: the system's clock.
  std::function<double()> now{};
};

struct StoreOutcome {
  std::size_t stored_blocks = 0;
  std::size_t removed_blocks = 0;
  std::optional<std::uint64_t> seq{};  // of the last batch; none: nothing changed
};

class StoreSim {
 public:
  static Result<std::unique_ptr<StoreSim>> Start(const ZmqContext& context,
                                                 const StoreOptions& options);

  // Puts those that are not there yet; the others become the youngest.
  StoreOutcome Put(std::span<const Digest> digests, const std::string& medium);

  // Removes those that are there.
  StoreOutcome Remove(std::span<const Digest> digests, const std::string& medium);

  // Empties the store and publishes `cleared`. M1 masters have no such event: kInvalidArgument.
  Result<std::uint64_t> Clear();

  // Publishes any events; the store does not learn of them. Returns the last batch's number.
  std::uint64_t PublishEvents(const std::vector<StoreEvent>& events);

  // A new life: empty, numbers and event ids from 1.
  void Restart();

  Publisher& publisher() { return *publisher_; }
  std::size_t CachedBlocks() const;
  const StoreOptions& options() const { return options_; }

 private:
  using Block = std::pair<std::string, Digest>;  // medium and name

  explicit StoreSim(const StoreOptions& options) : options_(options) {}

  // With mutex_ held:
  void appendObjects(StoreEvent::Kind kind, const Block& block, std::vector<StoreEvent>& events);
  std::optional<std::uint64_t> publish(const std::vector<StoreEvent>& events);

  const StoreOptions options_;
  std::unique_ptr<Publisher> publisher_;

  mutable std::mutex mutex_;
  // Guarded by mutex_. Invariant: one entry in where_ for each of queue_, oldest first.
  std::list<Block> queue_;
  std::map<Block, std::list<Block>::iterator> where_;
  std::uint64_t next_event_id_ = 1;
};

}  // namespace conductor::enginesim
