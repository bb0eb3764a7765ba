// Real sockets on loopback: fake publishers on one side, Subscriptions on the other, a recording
// sink behind it. Everything is awaited with a deadline; nothing sleeps.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "replay/subscriptions.h"
#include "src/hash/profile.h"
#include "tests/replay/fake_publisher.h"
#include "tests/replay/payloads.h"
#include "tests/replay/recording_sink.h"
#include "tests/slowness.h"

namespace conductor::replay_test {

inline constexpr std::chrono::seconds kPatience{20 * kSlowness};

class SubscriptionsFixture : public ::testing::Test {
 protected:
  static SubscriptionOptions DefaultOptions() {
    SubscriptionOptions options;
    options.limits.replay_first_reply_ms = 500;
    options.limits.replay_progress_ms = 500;
    options.limits.replay_jitter_ms_max = 20;
    options.limits.reconnect_ms_min = 20;
    options.limits.reconnect_ms_max = 100;
    return options;
  }
  void Open(const SubscriptionOptions& options = DefaultOptions()) {
    subscriptions_.reset();
    auto opened = Subscriptions::Open(options, sink_, digests_, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    subscriptions_ = std::move(*opened);
  }
  static StreamSeed MakeSeed(StreamId stream, std::string live, std::string replay = "") {
    StreamSeed seed;
    seed.stream = stream;
    seed.epoch = 1;
    seed.registration.instance_id = "i" + std::to_string(stream);
    seed.registration.endpoint = std::move(live);
    seed.registration.replay_endpoint = std::move(replay);
    seed.registration.block_size = 4;
    seed.registration.hash_profile = *MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
    return seed;
  }
  StreamSeed SeedOf(StreamId stream, const FakePublisher& publisher) {
    return MakeSeed(stream, publisher.live(), publisher.replay());
  }
  static std::unique_ptr<FakePublisher> MakePublisher(
      ReplayStyle style = ReplayStyle::kThreeFrames) {
    FakePublisher::Options options;
    options.style = style;
    return std::make_unique<FakePublisher>(options);
  }
  // A batch that stores one block; different for each number.
  static std::string Batch(std::uint64_t number) {
    return Payload({S({1'000 + number}, {}, BlockTokens(static_cast<int>(number % 1'000)))});
  }

  template <typename Condition>
  ::testing::AssertionResult Eventually(const Condition& condition,
                                        std::chrono::milliseconds patience = kPatience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) {
        return ::testing::AssertionFailure() << "not within " << patience.count() << " ms";
      }
      sink_.WaitABit();
    }
    return ::testing::AssertionSuccess();
  }
  ::testing::AssertionResult Says(StreamId stream, const std::string& expected) {
    auto result = Eventually([&] { return sink_.Spelled(stream) == expected; });
    if (result) return result;
    return result << ": expected \"" << expected << "\", got \"" << sink_.Spelled(stream) << '"';
  }
  ::testing::AssertionResult IsIn(StreamId stream, StreamState state) {
    return Eventually([&] { return StatusOf(stream).state == state; });
  }
  ::testing::AssertionResult Subscribed(FakePublisher& publisher) {
    return Eventually([&] { return publisher.SubscriberSeen(); });
  }
  StreamStatus StatusOf(StreamId stream) {
    return subscriptions_->GetStatus(stream).value_or(StreamStatus{});
  }
  std::uint64_t Counter(StreamId stream, const std::string& name) {
    for (const auto& [key, value] : StatusOf(stream).counters) {
      if (key == name) return value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  // The status follows the facts after a moment.
  ::testing::AssertionResult CounterIs(StreamId stream, const std::string& name,
                                       std::uint64_t expected) {
    auto result = Eventually([&] { return Counter(stream, name) == expected; });
    if (result) return result;
    return result << ": " << name << ": expected " << expected << ", got " << Counter(stream, name);
  }

  SteadyClock clock_;
  NoDigests digests_;
  RecordingSink sink_;
  std::unique_ptr<Subscriptions> subscriptions_;
};

}  // namespace conductor::replay_test
