#include "tools/store_sim.h"

#include <algorithm>
#include <chrono>

#include "src/check.h"

namespace conductor::enginesim {
namespace {

constexpr std::uint64_t kFirstSeq = 1;

std::uint64_t Milliseconds(const StoreOptions& options) {
  if (options.now) return static_cast<std::uint64_t>(options.now() * 1'000 + 0.5);
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

}  // namespace

Result<std::unique_ptr<StoreSim>> StoreSim::Start(const ZmqContext& context,
                                                  const StoreOptions& options) {
  if (options.blocks == 0) {
    return MakeError(ErrorCode::kInvalidArgument, "store: expected blocks above 0");
  }
  CONDUCTOR_RETURN_IF_ERROR(CheckKeyOptions(options.keys));
  std::unique_ptr<StoreSim> store(new StoreSim(options));
  PublisherOptions publisher = options.publisher;
  publisher.first_seq = kFirstSeq;
  publisher.attach = Attach::kBind;  // a master always binds
  publisher.replay_endpoint.clear();
  publisher.topic.clear();
  CONDUCTOR_ASSIGN_OR_RETURN(store->publisher_, Publisher::Start(context, std::move(publisher)));
  return store;
}

StoreOutcome StoreSim::Put(std::span<const Digest> digests, const std::string& medium) {
  std::unique_lock lock(mutex_);
  StoreOutcome outcome;
  std::vector<StoreEvent> events;
  for (const Digest& digest : digests) {
    const Block block{medium, digest};
    if (const auto found = where_.find(block); found != where_.end()) {
      queue_.splice(queue_.end(), queue_, found->second);
      continue;
    }
    if (queue_.size() == options_.blocks) {
      appendObjects(StoreEvent::Kind::kRemoved, queue_.front(), events);
      where_.erase(queue_.front());
      queue_.pop_front();
      ++outcome.removed_blocks;
    }
    queue_.push_back(block);
    where_.emplace(block, std::prev(queue_.end()));
    appendObjects(StoreEvent::Kind::kStored, block, events);
    ++outcome.stored_blocks;
  }
  outcome.seq = publish(events);
  return outcome;
}

StoreOutcome StoreSim::Remove(std::span<const Digest> digests, const std::string& medium) {
  std::unique_lock lock(mutex_);
  StoreOutcome outcome;
  std::vector<StoreEvent> events;
  for (const Digest& digest : digests) {
    const auto found = where_.find({medium, digest});
    if (found == where_.end()) continue;
    appendObjects(StoreEvent::Kind::kRemoved, found->first, events);
    queue_.erase(found->second);
    where_.erase(found);
    ++outcome.removed_blocks;
  }
  outcome.seq = publish(events);
  return outcome;
}

Result<std::uint64_t> StoreSim::Clear() {
  if (options_.era == StoreEra::kM1) {
    return MakeError(ErrorCode::kInvalidArgument, "clear: m1 masters have no such event");
  }
  std::unique_lock lock(mutex_);
  queue_.clear();
  where_.clear();
  StoreEvent cleared;
  cleared.kind = StoreEvent::Kind::kCleared;
  return *publish({cleared});
}

std::uint64_t StoreSim::PublishEvents(const std::vector<StoreEvent>& events) {
  std::unique_lock lock(mutex_);
  if (const std::optional<std::uint64_t> seq = publish(events)) return *seq;
  return publisher_->Publish(
      EncodeStoreBatch(options_.era, options_.config, {.timestamp_ms = Milliseconds(options_)}));
}

void StoreSim::Restart() {
  std::unique_lock lock(mutex_);
  queue_.clear();
  where_.clear();
  next_event_id_ = 1;
  publisher_->Restart();
}

std::size_t StoreSim::CachedBlocks() const {
  std::unique_lock lock(mutex_);
  return queue_.size();
}

void StoreSim::appendObjects(StoreEvent::Kind kind, const Block& block,
                             std::vector<StoreEvent>& events) {
  for (StoreEvent& object : ObjectsOf(block.second, options_.keys)) {
    object.kind = kind;
    object.medium = block.first;
    events.push_back(std::move(object));
  }
}

std::optional<std::uint64_t> StoreSim::publish(const std::vector<StoreEvent>& events) {
  std::optional<std::uint64_t> seq;
  for (std::size_t begin = 0; begin < events.size(); begin += kStoreBatchEventsMax) {
    const std::size_t end = std::min(events.size(), begin + kStoreBatchEventsMax);
    StoreBatch batch{.timestamp_ms = Milliseconds(options_), .first_event_id = next_event_id_};
    batch.events.assign(events.begin() + static_cast<std::ptrdiff_t>(begin),
                        events.begin() + static_cast<std::ptrdiff_t>(end));
    next_event_id_ += batch.events.size();
    seq = publisher_->Publish(EncodeStoreBatch(options_.era, options_.config, batch));
  }
  return seq;
}

}  // namespace conductor::enginesim
