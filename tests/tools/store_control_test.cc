// The control commands of stores, and of engines what only the mixed fleet needs.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/sim_test_util.h"
#include "tools/control.h"

namespace conductor::enginesim {
namespace {

using Json = nlohmann::json;

const std::string kBlock(64, 'a');

class StoreControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FleetOptions options;
    options.engines = 2;
    options.type = PublisherType::kMooncake;
    options.engine.profile = Profile();
    options.store.blocks = 2;
    fleet_ = std::move(Fleet::Start(options).value());
  }

  Json Do(const std::string& line) {
    return Json::parse(ExecuteControlLine(*fleet_, "here", line).json);
  }
  std::string ErrorOf(const std::string& line) { return Do(line).value("error", "no error"); }

  std::unique_ptr<Fleet> fleet_;
};

TEST_F(StoreControlTest, PutAndRemoveReplyWithWhatHappened) {
  EXPECT_EQ(Do("1 put [\"" + kBlock + "\"]"),
            Json::parse(R"({"stored_blocks":1,"removed_blocks":0,"seq":1})"));
  EXPECT_EQ(Do("1 put [\"" + kBlock + "\"]"),
            Json::parse(R"({"stored_blocks":0,"removed_blocks":0,"seq":null})"));
  EXPECT_EQ(Do("1 put {\"hashes\":[\"" + kBlock + "\"],\"medium\":\"disk\"}")["seq"], 2);
  EXPECT_EQ(Do("1 stats")["cached_blocks"], 2);
  EXPECT_EQ(Do("0 stats")["cached_blocks"], 0);
  EXPECT_EQ(Do("1 remove [\"" + kBlock + "\"]"),
            Json::parse(R"({"stored_blocks":0,"removed_blocks":1,"seq":3})"));
}

TEST_F(StoreControlTest, EventsAreTheStores) {
  EXPECT_EQ(Do(R"(events [{"event_type":"stored","object_key":"12345","medium":"disk"},)"
               R"({"event_type":"removed","object_key":"k","group_id":"7"},)"
               R"({"event_type":"cleared"}])")["seq"],
            1);
  EXPECT_EQ(ErrorOf(R"(events [{"event_type":"stored","key":"k"}])"), "event 0: unknown field key");
  EXPECT_EQ(ErrorOf(R"(events [{"event_type":"lost"}])"),
            "event 0: event_type: expected stored, removed or cleared, got lost");
  EXPECT_EQ(ErrorOf(R"(events [{"type":"BlockStored"}])"),
            R"(event 0: expected an object with an event_type, got {"type":"BlockStored"})");
}

TEST_F(StoreControlTest, ClearRestartAndFaultsReachTheStore) {
  Do("put [\"" + kBlock + "\"]");
  EXPECT_EQ(Do("clear")["seq"], 2);
  EXPECT_EQ(Do("stats")["cached_blocks"], 0);
  Do("skip 3");
  EXPECT_EQ(Do("raw 00")["seq"], 6);
  Do("restart");
  EXPECT_EQ(Do("stats")["next_seq"], 1);
}

TEST_F(StoreControlTest, CommandsOfEnginesAndWrongBlocksAreRefused) {
  for (const char* command : {"prompt [1]", "prompt_ids [1] 5", "replay ok"}) {
    EXPECT_NE(ErrorOf(command).find("a store does not know this command"), std::string::npos);
  }
  EXPECT_EQ(ErrorOf("put [\"00ff\"]"), R"(expected 64 hex digits, got "00ff")");
  EXPECT_EQ(ErrorOf("put 5"), "blocks: expected a JSON array of digests or an object with hashes");
  EXPECT_EQ(ErrorOf("0.1 stats"), "RANK: expected below 1, got 1");
}

TEST(EngineControlTest, EnginesRefusePutAndNameWhatTheyEvict) {
  FleetOptions options;
  options.engine.block_size = 4;
  options.engine.blocks = 1;
  options.engine.profile = Profile();
  options.show_removed = true;
  auto fleet = std::move(Fleet::Start(options).value());
  const auto ask = [&](const std::string& line) {
    return Json::parse(ExecuteControlLine(*fleet, "here", line).json);
  };
  EXPECT_EQ(ask("put []")["error"], "put: only a store knows this command");
  EXPECT_EQ(ask("prompt [1,2,3,4]")["removed"], Json::array());
  const Digest digest = BlockHasher(Profile())
                            .HashPrompt(std::vector<std::int32_t>{1, 2, 3, 4}, 4, "", "")
                            .value()[0];
  EXPECT_EQ(ask("prompt [5,6,7,8]")["removed"], Json::array({ToHex(digest)}));
}

TEST(EngineControlTest, AProfileOfAnotherEngineIsRefused) {
  FleetOptions options;
  options.type = PublisherType::kSglang;
  options.engine.profile = Profile();
  const auto fleet = Fleet::Start(options);
  ASSERT_FALSE(fleet);
  EXPECT_EQ(fleet.error().message,
            "engines of type SGLang: expected a hash profile of theirs, got vllm_v1");
}

}  // namespace
}  // namespace conductor::enginesim
