#include "replay/subscriptions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "replay/descriptor_limit.h"

namespace conductor {
namespace {

TrackerOptions MakeTrackerOptions(const SubscriptionOptions& options) {
  TrackerOptions tracker;
  tracker.limits = options.limits;
  tracker.unverified_blocks = options.unverified_blocks;
  tracker.drop_on_lost_events = options.drop_on_lost_events;
  tracker.disconnected_drop_ms = options.disconnected_drop_ms;
  return tracker;
}

}  // namespace

Result<std::unique_ptr<Subscriptions>> Subscriptions::Open(const SubscriptionOptions& options,
                                                           FactSink& sink,
                                                           const DigestSource& digests,
                                                           const Clock& clock) {
  RaiseDescriptorLimit();
  std::unique_ptr<Subscriptions> opened(new Subscriptions(options, sink, digests, clock));
  const std::size_t threads = std::max<std::size_t>(1, options.limits.stream_threads);
  for (std::size_t i = 0; i < threads; ++i) {
    CONDUCTOR_ASSIGN_OR_RETURN(auto thread, IoThread::Start(clock, "stream-" + std::to_string(i)));
    opened->threads_.push_back(std::move(thread));
  }
  return opened;
}

Subscriptions::Subscriptions(const SubscriptionOptions& options, FactSink& sink,
                             const DigestSource& digests, const Clock& clock)
    : options_(MakeTrackerOptions(options)),
      sink_(sink),
      digests_(digests),
      clock_(clock),
      slots_(std::max(1u, options.limits.replays_concurrent_max)) {}

Subscriptions::~Subscriptions() {
  StopAll();
}

Status Subscriptions::Start(const StreamSeed& seed) {
  const std::string name = "stream " + std::to_string(seed.stream);
  MutexLock lock(mutex_);
  if (stopped_) return MakeError(ErrorCode::kUnavailable, name + ": subscriptions are stopped");
  if (entries_.count(seed.stream) != 0) {
    return MakeError(ErrorCode::kAlreadyExists, name + ": it is started already");
  }
  const Limits& limits = options_.limits;
  if (entries_.size() >= limits.registrations_max) {
    return MakeError(ErrorCode::kResourceExhausted,
                     name + ": expected at most registrations_max = " +
                         std::to_string(limits.registrations_max) + " streams");
  }
  CONDUCTOR_RETURN_IF_ERROR(
      CheckDescriptorLimit(entries_.size() + 1, limits.replays_concurrent_max));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto place, contexts_.Take());
  auto reader = StreamReader::Open({*place.context, sink_, digests_, options_, slots_}, seed,
                                   clock_.MonotonicMs());
  if (!reader) {
    contexts_.Release(place.index);
    return tl::unexpected(reader.error());
  }
  load_.resize(threads_.size());
  const auto thread =
      static_cast<std::size_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
  ++load_[thread];
  entries_[seed.stream] = {thread, place.index, (*reader)->report()};
  threads_[thread]->Add(std::move(*reader));
  return {};
}

void Subscriptions::Stop(StreamId stream) {
  Entry entry;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(stream);
    if (found == entries_.end()) return;
    entry = std::move(found->second);
    entries_.erase(found);
  }
  threads_[entry.thread]->Remove(stream);
  MutexLock lock(mutex_);
  --load_[entry.thread];
  contexts_.Release(entry.context);
}

std::optional<StreamStatus> Subscriptions::GetStatus(StreamId stream) const {
  std::shared_ptr<StreamReport> report;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(stream);
    if (found == entries_.end()) return std::nullopt;
    report = found->second.report;
  }
  return report->Read(clock_.MonotonicMs());
}

void Subscriptions::StopAll() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    entries_.clear();
  }
  for (auto& thread : threads_) thread->Stop();
}

}  // namespace conductor
