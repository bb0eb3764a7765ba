#include "tests/simulation/model_publisher.h"

#include <algorithm>
#include <utility>

#include "src/check.h"
#include "tests/simulation/trace.h"

namespace conductor::simulation {

using enginesim::ReplayMode;

namespace {

constexpr const char* kTopic = "kv-events";
constexpr std::uint64_t kLateMsMax = 4'000;  // twice the patience for a first reply

ReplayMode AnyMode(Random& random) {
  switch (random.Below(8)) {
    case 0:
      return {ReplayMode::Kind::kLate, random.Below(kLateMsMax)};
    case 1:
      return {ReplayMode::Kind::kCut, random.Below(10)};
    case 2:
      return {ReplayMode::Kind::kCutEnd, random.Below(10)};
    case 3:
      return {ReplayMode::Kind::kNever, {}};
    case 4:
      return {ReplayMode::Kind::kNoEndMarker, {}};
    case 5:
      return {ReplayMode::Kind::kHole, random.Below(6)};
    default:
      return {ReplayMode::Kind::kOk, {}};
  }
}

}  // namespace

ModelPublisher::ModelPublisher(std::string name, const EngineTraits& traits, const PromptPool& pool,
                               std::size_t ring_max)
    : name_(std::move(name)),
      engine_(traits, pool),
      ring_(ring_max),
      layout_(traits.era >= enginesim::Era::kC ? enginesim::ReplayLayout::kTopicSeqPayload
                                               : enginesim::ReplayLayout::kSeqPayload) {}

void ModelPublisher::Publish(Random& random, const PublisherFaults& faults) {
  Batch batch;
  if (!planned_.empty()) {
    batch = std::move(planned_.front());
    planned_.pop_front();
  } else {
    const Work work = engine_.Next(random, content_);
    // No two lives say the same at the same second.
    const double seconds =
        static_cast<double>(restarts_) * 100'000 + static_cast<double>(next_) + 1;
    batch.payload = std::make_shared<const std::string>(engine_.Encode(work, seconds));
    batch.changes = work.changes;
  }
  for (const CacheChange& change : batch.changes) {
    ApplyChange(change, content_);
    if (change.kind == CacheChange::Kind::kAdd) ApplyChange(change, ever_);
  }
  ring_.Append({next_, batch.payload});
  const bool dropped = random.Percent(faults.drop_percent);
  if (connected_ && !dropped) Send(next_, batch.payload);
  life_.push_back(std::move(batch));
  ++next_;
}

void ModelPublisher::Send(std::uint64_t number, const enginesim::Payload& payload) {
  live_.push_back({kTopic, enginesim::EncodeSeq(number), *payload});
}

void ModelPublisher::Restart(Random& random, bool same_work) {
  ++restarts_;
  Trace(name(), "restarts after", next_, same_work ? "with the same work" : "");
  planned_.clear();
  if (same_work && !life_.empty()) {
    const std::size_t repeated = 1 + random.Below(life_.size());
    planned_.assign(life_.begin(), life_.begin() + static_cast<std::ptrdiff_t>(repeated));
  }
  life_.clear();
  next_ = 0;
  content_.clear();
  ring_.Clear();
  replies_.clear();
}

void ModelPublisher::Connect(Random& random) {
  CHECK(!connected_);
  connected_ = true;
  // Some publishers' proxies repeat the last few frames.
  if (!random.Percent(30)) return;
  for (std::uint64_t number = next_ > 3 ? next_ - 3 : 0; number < next_; ++number) {
    Send(number, life_[number].payload);
  }
}

void ModelPublisher::Disconnect(bool loses_messages) {
  connected_ = false;
  if (loses_messages) live_.clear();
}

std::optional<enginesim::Message> ModelPublisher::ReceiveLive() {
  if (live_.empty()) return std::nullopt;
  enginesim::Message message = std::move(live_.front());
  live_.pop_front();
  return message;
}

void ModelPublisher::Ask(const std::string& start, Random& random, const PublisherFaults& faults,
                         std::int64_t now_ms) {
  replies_.clear();
  const auto from = enginesim::ReplayRing::ParseRequest({"peer", "", start});
  CHECK(from);
  const ReplayMode mode = faults.honest_replies ? ReplayMode{} : AnyMode(random);
  for (enginesim::Message& message : ring_.Answer(*from, mode, layout_, kTopic)) {
    replies_.push_back(std::move(message));
  }
  const bool late = mode.kind == ReplayMode::Kind::kLate;
  replies_due_ms_ = now_ms + (late ? static_cast<std::int64_t>(*mode.number) : 0);
}

std::optional<enginesim::Message> ModelPublisher::ReceiveReply(std::int64_t now_ms) {
  if (replies_.empty() || now_ms < replies_due_ms_) return std::nullopt;
  enginesim::Message message = std::move(replies_.front());
  replies_.pop_front();
  return message;
}

}  // namespace conductor::simulation
