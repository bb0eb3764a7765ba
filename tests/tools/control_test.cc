#include "tools/control.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "tests/tools/sim_test_util.h"
#include "tools/control_server.h"

namespace conductor::enginesim {
namespace {

using Json = nlohmann::json;

class ControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FleetOptions options;
    options.engines = 2;
    options.engine.block_size = 4;
    options.engine.dp_ranks = 2;
    options.engine.blocks = 3;
    options.engine.profile = Profile();
    fleet_ = std::move(Fleet::Start(options).value());
  }

  Json Do(const std::string& line) {
    const ControlReply reply = ExecuteControlLine(*fleet_, "here", line);
    EXPECT_EQ(reply.json.find('\n'), std::string::npos);
    return Json::parse(reply.json);
  }
  std::string ErrorOf(const std::string& line) { return Do(line).value("error", "no error"); }

  std::unique_ptr<Fleet> fleet_;
};

TEST_F(ControlTest, PromptRepliesWithWhatHappened) {
  EXPECT_EQ(Do("0 prompt [1,2,3,4,5,6,7,8]"),
            Json::parse(R"({"hit_tokens":0,"stored_blocks":2,"removed_blocks":0,"seq":0})"));
  EXPECT_EQ(Do("prompt [1,2,3,4]"),
            Json::parse(R"({"hit_tokens":4,"stored_blocks":0,"removed_blocks":0,"seq":null})"));
  EXPECT_EQ(Do(R"(  0.0  prompt {"tokens":[1,2,3,4,5,6,7,8],"salt":"t"} )"),
            Json::parse(R"({"hit_tokens":0,"stored_blocks":2,"removed_blocks":1,"seq":1})"));
}

TEST_F(ControlTest, CommandsGoToTheEngineAndRankTheyName) {
  Do("1.1 prompt [1,2,3,4]");
  EXPECT_EQ(Do("1.1 stats")["cached_blocks"], 1);
  EXPECT_EQ(Do("1 stats")["cached_blocks"], 0);
  EXPECT_EQ(Do("stats")["cached_blocks"], 0);
}

TEST_F(ControlTest, PromptIdsExpandATraceRequest) {
  const Json reply = Do("prompt_ids [1, 2] 600");
  EXPECT_EQ(reply["stored_blocks"], 3);  // as many as the cache holds
  EXPECT_EQ(Do("prompt_ids [1] 12")["hit_tokens"], 12);
  EXPECT_EQ(ErrorOf("prompt_ids [1] 600"), "hash_ids: expected 2 ids for input_length 600, got 1");
  EXPECT_EQ(ErrorOf("prompt_ids 1"), "prompt_ids: expected [IDS] LENGTH");
}

TEST_F(ControlTest, FaultsReachThePublisher) {
  Do("drop 1");
  Do("raw 00");
  Do("lose 1");
  Do("raw 00");
  Do("skip 5");
  EXPECT_EQ(Do("raw 80")["seq"], 7);
  const Json stats = Do("stats");
  EXPECT_EQ(stats["dropped"], 1);
  EXPECT_EQ(stats["lost"], 1);
  EXPECT_EQ(stats["sent"], 1);
  EXPECT_EQ(stats["ring_first"], 0);
  EXPECT_EQ(stats["ring_last"], 7);
  EXPECT_EQ(Do("restart"), Json::parse(R"({"ok":true})"));
  EXPECT_EQ(Do("stats")["life"], 2);
  EXPECT_EQ(Do("stats")["ring_last"], nullptr);
  EXPECT_EQ(Do("clear")["seq"], 0);
  EXPECT_EQ(Do(R"(events [{"type":"BlockRemoved","block_hashes":[1]}])")["seq"], 1);
  EXPECT_EQ(Do("replay late 5 ")["ok"], true);
  EXPECT_EQ(Do("frames 00 - ff")["ok"], true);
  EXPECT_EQ(Do("flush")["ok"], true);
}

TEST_F(ControlTest, ReplayModesAreServed) {
  Do("raw aa");
  Do("raw bb");
  Do("replay cut_end 1");
  ZmqSocket dealer =
      OpenClient(fleet_->context(), ZMQ_DEALER, fleet_->engine(0).publisher().replay_endpoint());
  RequestReplay(dealer, 0);
  EXPECT_EQ(ReceiveReplay(dealer), (std::vector<std::uint64_t>{0, kEndMarkerSeq}));
}

TEST_F(ControlTest, AnEngineGoesDownAndComesUp) {
  EXPECT_EQ(Do("down")["ok"], true);
  EXPECT_EQ(Do("stats")["up"], false);
  EXPECT_EQ(Do("up")["ok"], true);
  EXPECT_EQ(Do("stats")["up"], true);
}

TEST_F(ControlTest, SubscribersCanBeWaitedFor) {
  EXPECT_EQ(Do("wait_subscribers 1 0")["ok"], false);
  ZmqSocket sub = OpenClient(fleet_->context(), ZMQ_SUB, fleet_->engine(0).publisher().endpoint());
  EXPECT_EQ(Do("wait_subscribers 1 20000"), Json::parse(R"({"ok":true,"subscriptions":1})"));
}

TEST_F(ControlTest, EndpointsAreTheStartLine) {
  EXPECT_EQ(Do("endpoints"), Json::parse(fleet_->Describe("here")));
}

TEST_F(ControlTest, WrongLinesSayWhatWasExpected) {
  EXPECT_EQ(ErrorOf("5 stats"), "ENGINE: expected below 2, got 5");
  EXPECT_EQ(ErrorOf("0.2 stats"), "RANK: expected below 2, got 2");
  EXPECT_EQ(ErrorOf("0.x stats"), "RANK: expected a number from 0, got 'x'");
  EXPECT_EQ(ErrorOf("drop"), "N: expected a number from 0, got ''");
  EXPECT_EQ(ErrorOf("drop -1"), "N: expected a number from 0, got '-1'");
  EXPECT_EQ(ErrorOf("raw abc"), "hex: expected an even number of digits, got 3");
  EXPECT_EQ(ErrorOf("frames"), "frames: expected 1 to 1024 frames");
  EXPECT_TRUE(ErrorOf("replay maybe").starts_with("replay mode: expected ok, late MS"));
  EXPECT_TRUE(ErrorOf("\xff").starts_with("command: expected one of prompt"));
  EXPECT_TRUE(ErrorOf("").starts_with("command: expected one of prompt"));
  EXPECT_EQ(Do("stats")["next_seq"], 0);
}

TEST_F(ControlTest, TheServerAnswersOverZmqUntilQuit) {
  auto server = std::move(ControlServer::Open(*fleet_, "tcp://127.0.0.1:0").value());
  const std::atomic<bool> stop{false};
  std::thread serving([&] { server->Serve(stop); });
  ZmqSocket client = OpenClient(fleet_->context(), ZMQ_REQ, server->endpoint());
  EXPECT_TRUE(client.Send({"1 raw 00"}));
  EXPECT_EQ(MustReceive(client), Message{R"({"seq":0})"});
  EXPECT_TRUE(client.Send({"nonsense"}));
  EXPECT_TRUE(MustReceive(client)[0].starts_with(R"({"error":)"));
  EXPECT_TRUE(client.Send({"quit"}));
  EXPECT_EQ(MustReceive(client), Message{R"({"ok":true})"});
  serving.join();
}

TEST_F(ControlTest, TheServerStopsWhenAsked) {
  auto server = std::move(ControlServer::Open(*fleet_, "inproc://control").value());
  std::atomic<bool> stop{false};
  std::thread serving([&] { server->Serve(stop); });
  stop = true;
  serving.join();
}

TEST_F(ControlTest, AStreamIsServedLineByLine) {
  std::istringstream input("raw 00\n\nstatz\nquit\nraw 00\n");
  std::ostringstream output;
  const std::atomic<bool> stop{false};
  ServeStream(*fleet_, input, output, stop);
  std::istringstream lines(output.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, R"({"seq":0})");
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(line.starts_with(R"({"error":)"));
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, R"({"ok":true})");
  EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
}  // namespace conductor::enginesim
