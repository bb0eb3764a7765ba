#include "tools/store_sim.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/tools/sim_test_util.h"

namespace conductor::enginesim {
namespace {

constexpr double kNow = 1'786'000'000.123;
constexpr std::uint64_t kNowMs = 1'786'000'000'123;

Digest Block(std::uint8_t number) {
  Digest digest{};
  digest.back() = number;
  return digest;
}

class StoreSimTest : public ::testing::Test {
 protected:
  void Start(StoreOptions options) {
    options.now = [] { return kNow; };
    store_ = std::move(StoreSim::Start(context_, options).value());
    sub_ = OpenClient(context_, ZMQ_SUB, store_->publisher().endpoint());
    ASSERT_TRUE(store_->publisher().WaitUntil(
        [](const PublisherStats& stats) { return stats.subscriptions == 1; }, kDeadline));
  }

  std::vector<StoreEvent> Events(StoreEvent::Kind kind, std::vector<std::uint8_t> blocks,
                                 const std::string& medium = "cpu") {
    std::vector<StoreEvent> events;
    for (const std::uint8_t block : blocks) {
      for (StoreEvent& object : ObjectsOf(Block(block), store_->options().keys)) {
        object.kind = kind;
        object.medium = medium;
        events.push_back(object);
      }
    }
    return events;
  }
  std::vector<StoreEvent> Stored(std::vector<std::uint8_t> blocks) {
    return Events(StoreEvent::Kind::kStored, std::move(blocks));
  }

  // The message that must come next is exactly this one.
  void ExpectBatch(std::uint64_t seq, std::uint64_t first_event_id,
                   std::vector<StoreEvent> events) {
    const StoreBatch batch{
        .timestamp_ms = kNowMs, .first_event_id = first_event_id, .events = std::move(events)};
    const StoreOptions& options = store_->options();
    EXPECT_EQ(MustReceive(sub_),
              (Message{"", EncodeSeq(seq), EncodeStoreBatch(options.era, options.config, batch)}));
  }

  ZmqContext context_;
  std::unique_ptr<StoreSim> store_;
  ZmqSocket sub_;
};

TEST_F(StoreSimTest, EveryPartOfABlockIsAnEventAndNumbersStartAtOne) {
  Start({.keys = {.tp_ranks = 2}});
  const std::vector<Digest> blocks{Block(1), Block(2)};
  const StoreOutcome outcome = store_->Put(blocks, "cpu");
  EXPECT_EQ(outcome.stored_blocks, 2u);
  EXPECT_EQ(outcome.seq, 1u);
  ASSERT_EQ(Stored({1, 2}).size(), 4u);
  ExpectBatch(1, 1, Stored({1, 2}));
  EXPECT_EQ(store_->Put(blocks, "cpu").seq, std::nullopt);
  EXPECT_EQ(store_->Put(blocks, "disk").seq, 2u);
  ExpectBatch(2, 5, Events(StoreEvent::Kind::kStored, {1, 2}, "disk"));
}

TEST_F(StoreSimTest, RemovedBlocksAreOfOneMedium) {
  Start({});
  store_->Put(std::vector{Block(1)}, "cpu");
  store_->Put(std::vector{Block(1)}, "disk");
  MustReceive(sub_);
  MustReceive(sub_);
  EXPECT_EQ(store_->Remove(std::vector{Block(1), Block(9)}, "disk").removed_blocks, 1u);
  ExpectBatch(3, 3, Events(StoreEvent::Kind::kRemoved, {1}, "disk"));
  EXPECT_EQ(store_->CachedBlocks(), 1u);
}

TEST_F(StoreSimTest, AFullStoreLosesWhatWasPutLongestAgo) {
  Start({.blocks = 2});
  store_->Put(std::vector{Block(1), Block(2)}, "cpu");
  store_->Put(std::vector{Block(1)}, "cpu");  // 2 is the oldest now
  MustReceive(sub_);
  EXPECT_EQ(store_->Put(std::vector{Block(3)}, "cpu").removed_blocks, 1u);
  std::vector<StoreEvent> events = Events(StoreEvent::Kind::kRemoved, {2});
  events.push_back(Stored({3})[0]);
  ExpectBatch(2, 3, events);
}

TEST_F(StoreSimTest, BatchesHaveAtMost64Events) {
  Start({.keys = {.tp_ranks = 65}});
  EXPECT_EQ(store_->Put(std::vector{Block(1)}, "cpu").seq, 2u);
  const std::vector<StoreEvent> events = Stored({1});
  ExpectBatch(1, 1, {events.begin(), events.begin() + 64});
  ExpectBatch(2, 65, {events[64]});
}

TEST_F(StoreSimTest, ClearSaysSoExceptInTheFirstEra) {
  Start({.era = StoreEra::kM2});
  store_->Put(std::vector{Block(1)}, "cpu");
  MustReceive(sub_);
  EXPECT_EQ(store_->Clear().value(), 2u);
  StoreEvent cleared;
  cleared.kind = StoreEvent::Kind::kCleared;
  ExpectBatch(2, 2, {cleared});
  EXPECT_EQ(store_->CachedBlocks(), 0u);

  Start({.era = StoreEra::kM1});
  store_->Put(std::vector{Block(1)}, "cpu");
  EXPECT_EQ(store_->Clear().error().message, "clear: m1 masters have no such event");
  EXPECT_EQ(store_->CachedBlocks(), 1u);
}

TEST_F(StoreSimTest, ANewLifeIsEmptyAndCountsFromOne) {
  Start({});
  store_->Put(std::vector{Block(1)}, "cpu");
  MustReceive(sub_);
  store_->Restart();
  EXPECT_EQ(store_->Put(std::vector{Block(1)}, "cpu").seq, 1u);
  ExpectBatch(1, 1, Stored({1}));
}

TEST_F(StoreSimTest, ThereIsNoReplay) {
  PublisherOptions publisher;
  publisher.replay_endpoint = "tcp://127.0.0.1:*";
  Start({.publisher = publisher});
  EXPECT_EQ(store_->publisher().replay_endpoint(), "");
}

TEST_F(StoreSimTest, WrongOptionsAreRefused) {
  for (const StoreOptions& options :
       {StoreOptions{.blocks = 0}, StoreOptions{.keys = {.tp_ranks = 0}}}) {
    const auto store = StoreSim::Start(context_, options);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace conductor::enginesim
