#include "fuzz/translation.h"

#include "replay/messages.h"

namespace conductor::fuzz {
namespace {

// Shorter ones may come out of a hash or a number by chance.
constexpr std::size_t kSecretBytesMin = 8;

StreamSeed MakeSeed(const Registration& registration) {
  StreamSeed seed;
  seed.stream = 1;
  seed.registration = registration;
  seed.epoch = 1;
  return seed;
}

std::uint64_t IgnoredTotal(const Frame& frame) {
  std::uint64_t total = 0;
  for (const auto& [reason, count] : frame.ignored) total += count;
  return total;
}

}  // namespace

Translation::Translation(const Registration& registration, bool with_states)
    : seed_(MakeSeed(registration)), translator_(seed_, {}, digests_, cache_) {
  if (with_states) states_.emplace();
  Log(Record{{Registered{registration, UnverifiedBlocks::kContent}}});
}

std::string Translation::Log(const Record& record) {
  return states_ ? states_->Apply(record) : RequireLogged(record);
}

Translation::Outcome Translation::Run(Bytes payload) {
  ReceivedFrame received;
  received.number = number_++;
  received.payload = AsText(payload);
  received.fingerprint = FingerprintPayload(payload);
  std::vector<Fact> facts;
  translator_.Translate(received, facts);

  Require(!facts.empty() && facts.size() <= 2, "one frame and at most its counting group");
  if (facts.size() == 2) {
    const auto* group = std::get_if<CountingGroup>(&facts.front());
    Require(group != nullptr && group->stream == seed_.stream, "the first of two is the group");
    Require(!group_is_known_, "a life has one counting group");
    Require(seed_.registration.type == PublisherType::kVllm, "only vLLM has counting groups");
    group_is_known_ = true;
  }
  const Frame* frame = std::get_if<Frame>(&facts.back());
  Require(frame != nullptr, "the last fact is the frame");
  Require(frame->stream == seed_.stream && frame->number == received.number &&
              frame->fingerprint == received.fingerprint,
          "the frame is the one that came in");
  Outcome outcome{*frame, "", std::string(translator_.last_error())};
  outcome.logged = Log(Record{std::move(facts)});
  return outcome;
}

void Translation::StartNewLife() {
  translator_.OnNewLife();
  Log(Record{{NewEpoch{seed_.stream, UnverifiedBlocks::kContent}}});
  group_is_known_ = false;
  number_ = 0;
}

void RequireNothingLost(const Frame& frame, const EventCounts& counts) {
  if (frame.ignored.contains(IgnoreReason::kRankMismatch)) {
    Require(frame.events.empty() && IgnoredTotal(frame) == 1, "a wrong rank counts once");
    return;
  }
  const std::uint64_t kept = frame.events.size() + IgnoredTotal(frame);
  const std::uint64_t came = counts.decoded + counts.rejected;
  Require(kept <= came && kept + counts.empty >= came, "every event is applied or counted",
          std::to_string(kept) + " of " + std::to_string(came));
  const auto rejected = frame.ignored.find(IgnoreReason::kUndecodableEvent);
  Require((rejected == frame.ignored.end() ? 0 : rejected->second) == counts.rejected,
          "every undecodable event is counted as such");
}

void RequireSecret(const std::string& salt, Bytes payload, const Translation::Outcome& outcome) {
  if (salt.size() < kSecretBytesMin) return;
  // A piece of a sentence may be ours.
  constexpr std::string_view kProse = "abcdefghijklmnopqrstuvwxyz ,.:;()'";
  if (salt.find_first_not_of(kProse) == std::string::npos) return;
  const std::string_view text = AsText(payload);
  const std::size_t at = text.find(salt);
  if (at == std::string_view::npos || text.find(salt, at + 1) != std::string_view::npos) return;
  Require(outcome.logged.find(salt) == std::string::npos, "a salt is never logged", salt);
  Require(outcome.last_error.find(salt) == std::string::npos, "a salt is in no error text", salt);
}

void RequireRefused(const Frame& frame, const Error& error) {
  Require(
      error.code == ErrorCode::kInvalidArgument && !error.reason.empty() && !error.message.empty(),
      "a refusal is named");
  Require(frame.events.empty() && IgnoredTotal(frame) == 1 &&
              frame.ignored.contains(IgnoreReason::kUndecodableFrame),
          "a refused payload counts once and brings nothing");
}

}  // namespace conductor::fuzz
