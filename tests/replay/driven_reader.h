// A StreamReader that is driven by hand: the sockets are real, the turns and the time are the
// test's.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/stream_reader.h"
#include "tests/replay/subscriptions_fixture.h"

namespace conductor::replay_test {

class DrivenReaderTest : public SubscriptionsFixture {
 protected:
  static constexpr std::int64_t kNowMs = 5'000;
  static constexpr StreamId kStream = 7;

  void SetUp() override {
    auto context = ZmqContext::Open(1, 16);
    ASSERT_TRUE(context) << context.error().message;
    context_ = std::move(*context);
  }
  // Before the context, which waits for its sockets.
  void TearDown() override {
    if (reader_) reader_->Detach();
    reader_.reset();
  }
  // Returns once it is connected.
  void OpenReader(const FakePublisher& publisher, std::optional<std::uint64_t> cursor = {}) {
    StreamSeed seed = SeedOf(kStream, publisher);
    seed.cursor = cursor;
    auto opened = StreamReader::Open({*context_, sink_, digests_, options_, slots_}, seed, kNowMs);
    ASSERT_TRUE(opened) << opened.error().message;
    reader_ = std::move(*opened);
    ASSERT_TRUE(reader_->Attach(watcher_, cache_));
    ASSERT_TRUE(Eventually([&] {
      reader_->Turn(kNowMs);
      return reader_->report()->Read(kNowMs).disconnected_for_ms == -1;
    }));
  }
  void TurnAt(std::int64_t now_ms) {
    reader_->Tick(now_ms);
    reader_->Turn(now_ms);
  }
  // Turns until these facts, and no others, have been handed over.
  ::testing::AssertionResult SaysInTurns(const std::string& expected) {
    auto result = Eventually([&] {
      TurnAt(kNowMs);
      return sink_.Spelled(kStream) == expected;
    });
    if (result) return result;
    return result << ": expected \"" << expected << "\", got \"" << sink_.Spelled(kStream) << '"';
  }
  // Something has come to the live socket that no turn has looked at.
  ::testing::AssertionResult LiveHasNews() { return HasNews(watcher_.descriptors.at(0)); }
  // The same of the replay that was opened last.
  ::testing::AssertionResult ReplayHasNews() { return HasNews(watcher_.descriptors.back()); }
  ::testing::AssertionResult HasNews(int descriptor) {
    return Eventually([&] {
      pollfd socket{descriptor, POLLIN, 0};
      return poll(&socket, 1, 0) == 1;
    });
  }
  std::uint64_t ReaderCounter(const std::string& name) const {
    for (const auto& [key, value] : reader_->report()->Read(kNowMs).counters) {
      if (key == name) return value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  struct Descriptors : StreamReader::Watcher {
    Status Watch(int descriptor, StreamReader&) override {
      descriptors.push_back(descriptor);
      return {};
    }
    void Forget(int) override {}
    std::vector<int> descriptors;  // the live socket's is the first
  };
  TrackerOptions options_;
  std::unique_ptr<ZmqContext> context_;
  ReplaySlots slots_{4};
  DigestCache cache_{16};
  Descriptors watcher_;
  std::unique_ptr<StreamReader> reader_;
};

}  // namespace conductor::replay_test
