// conductorctl against a daemon that follows a simulated engine: what each command answers, and
// that a killed daemon comes back with the same state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <numeric>

#include "src/hash/profile.h"
#include "tests/cli/process_util.h"
#include "tools/engine_sim.h"

namespace conductor::cli {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kBlockSize = 4;
constexpr char kPrompt[] = "1,2,3,4,5,6,7,8";

class CtlDaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto profile = MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
    ASSERT_TRUE(profile.has_value());
    enginesim::EngineOptions options;
    options.block_size = kBlockSize;
    options.profile = *profile;
    options.publisher.replay_endpoint = "tcp://127.0.0.1:*";
    auto engine = enginesim::EngineSim::Start(context_, options);
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    engine_ = std::move(*engine);
    daemon_ = std::make_unique<TestDaemon>(data_dir_);
    ASSERT_TRUE(daemon_->WaitReady());
  }

  std::vector<std::string> Registration(const std::string& block_size = "4") {
    return {"register",
            "--instance-id",
            "vllm-0",
            "--endpoint",
            engine_->publisher().endpoint(),
            "--replay-endpoint",
            engine_->publisher().replay_endpoint(),
            "--model",
            "m",
            "--block-size",
            block_size,
            "--strategy",
            "vllm_v1",
            "--algorithm",
            "sha256_cbor",
            "--seed",
            "0"};
  }
  // Publishes a prompt of `blocks` blocks, tokens from 1.
  void Prompt(std::int32_t blocks) {
    enginesim::PromptRequest request;
    request.tokens.resize(static_cast<std::size_t>(blocks) * kBlockSize);
    std::iota(request.tokens.begin(), request.tokens.end(), 1);
    ASSERT_TRUE(engine_->Prompt(request).has_value());
  }
  bool WaitBlocks(int blocks) {
    return WaitUntil([&] { return daemon_->Status()["blocks"] == blocks; }, kDeadline);
  }
  Finished Query(const std::string& tokens = kPrompt) {
    return daemon_->Ctl(
        {"-o", "json", "query", "--model", "m", "--block-size", "4", "--tokens", tokens});
  }
  bool WaitFinding(const std::string& code, std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"-o", "json", "doctor"});
    return WaitUntil(
        [&] {
          const Json json = daemon_->Ctl(arguments).json();
          for (const Json& finding : json["findings"]) {
            if (finding["code"] == code) return true;
          }
          return false;
        },
        kDeadline);
  }

  TempDir directory_;
  const std::string data_dir_ = directory_.Path("data");
  enginesim::ZmqContext context_;
  std::unique_ptr<enginesim::EngineSim> engine_;
  std::unique_ptr<TestDaemon> daemon_;
};

TEST_F(CtlDaemonTest, EventsBecomeHits) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(2);
  ASSERT_TRUE(WaitBlocks(2));
  const Finished query = Query();
  EXPECT_EQ(query.code, 0) << query.err;
  EXPECT_EQ(query.json()["instances"]["vllm-0"]["longest_matched"], 8);
  EXPECT_EQ(Query("9,9,9,9").code, 1);
  const Json services = daemon_->Ctl({"-o", "json", "services"}).json();
  EXPECT_EQ(services["services"][0]["HashCheck"], "verified");
  EXPECT_EQ(services["services"][0]["LastSeq"], 0);
  const Json view = daemon_->Ctl({"-o", "json", "view"}).json();
  EXPECT_EQ(view["contexts"][0]["prefix_count"], 2);
}

TEST_F(CtlDaemonTest, KilledDaemonComesBackWithTheSameDigest) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(50);
  ASSERT_TRUE(WaitBlocks(50));
  const Json before = daemon_->Status();
  daemon_->process().Signal(SIGKILL);
  ASSERT_EQ(daemon_->process().Wait(), -SIGKILL);
  const Json offline = RunCtlProgram({"--data-dir", data_dir_, "-o", "json", "verify"}).json();
  EXPECT_EQ(offline["comparisons"][0]["digest"], before["digest"]);

  daemon_ = std::make_unique<TestDaemon>(data_dir_);
  ASSERT_TRUE(daemon_->WaitReady());
  const Json after = daemon_->Status();
  EXPECT_EQ(after["digest"], before["digest"]);
  EXPECT_EQ(after["blocks"], before["blocks"]);
  EXPECT_EQ(Query().json()["instances"]["vllm-0"]["longest_matched"], 8);
}

TEST_F(CtlDaemonTest, WhatWasPublishedWhileItWasDownIsFetched) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(2);
  ASSERT_TRUE(WaitBlocks(2));
  daemon_->process().Signal(SIGTERM);
  ASSERT_EQ(daemon_->process().Wait(), 0);
  Prompt(10);
  daemon_ = std::make_unique<TestDaemon>(data_dir_);
  ASSERT_TRUE(daemon_->WaitReady());
  EXPECT_TRUE(WaitBlocks(10));
}

TEST_F(CtlDaemonTest, VerifyComparesLogAndDaemon) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(5);
  ASSERT_TRUE(WaitBlocks(5));
  const Finished verify = daemon_->Ctl({"-o", "json", "verify"});
  EXPECT_EQ(verify.code, 0) << verify.err << verify.out;
  EXPECT_EQ(verify.json()["match"], true);
}

TEST_F(CtlDaemonTest, SnapshotIsListedShownAndBegunFrom) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(5);
  ASSERT_TRUE(WaitBlocks(5));
  const Finished created = daemon_->Ctl({"-o", "json", "snapshot", "create"});
  ASSERT_EQ(created.code, 0) << created.err;
  const Json snapshot = created.json();
  EXPECT_EQ(snapshot["digest"], daemon_->Status()["digest"]);
  EXPECT_EQ(daemon_->Ctl({"-o", "json", "snapshot", "list"}).json()["snapshots"][0]["seq"],
            snapshot["seq"]);
  EXPECT_EQ(daemon_->Status()["snapshot_seq"], snapshot["seq"]);
  Prompt(9);
  ASSERT_TRUE(WaitBlocks(9));
  const Finished verify = daemon_->Ctl({"-o", "json", "verify"});
  EXPECT_EQ(verify.code, 0) << verify.err << verify.out;
  EXPECT_EQ(verify.json()["comparisons"][0]["snapshot_seq"], snapshot["seq"]);
  const Json before = daemon_->Status();
  daemon_->process().Signal(SIGKILL);
  ASSERT_EQ(daemon_->process().Wait(), -SIGKILL);
  EXPECT_EQ(RunCtlProgram({"--data-dir", data_dir_, "verify", "--all-snapshots"}).code, 0);
  daemon_ = std::make_unique<TestDaemon>(data_dir_);
  ASSERT_TRUE(daemon_->WaitReady());
  EXPECT_EQ(daemon_->Status()["digest"], before["digest"]);
}

TEST_F(CtlDaemonTest, PruneOfADirectoryAsksTheDaemonThatOwnsIt) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  ASSERT_EQ(daemon_->Ctl({"snapshot", "create"}).code, 0);
  Prompt(2);
  ASSERT_TRUE(WaitBlocks(2));
  ASSERT_EQ(daemon_->Ctl({"snapshot", "create"}).code, 0);
  const Finished pruned =
      RunCtlProgram({"--data-dir", data_dir_, "-o", "json", "snapshot", "prune", "--keep", "1"});
  ASSERT_EQ(pruned.code, 0) << pruned.err;
  EXPECT_EQ(pruned.json()["count"], 1);
  EXPECT_EQ(daemon_->Ctl({"-o", "json", "snapshot", "list"}).json()["count"], 1);
}

TEST_F(CtlDaemonTest, SnapshotsComeByThemselvesWhenEventsDo) {
  daemon_.reset();
  daemon_ = std::make_unique<TestDaemon>(data_dir_, "\"snapshot_interval_events\": 1");
  ASSERT_TRUE(daemon_->WaitReady());
  EXPECT_EQ(daemon_->Status()["snapshot_interval_events"], 1);
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(2);
  EXPECT_TRUE(WaitUntil([&] { return daemon_->Status()["snapshot_seq"] > 0; }, kDeadline));
  EXPECT_EQ(RunCtlProgram({"--data-dir", data_dir_, "snapshot", "list"}).code, 0);
}

TEST_F(CtlDaemonTest, ExportMadeWhileServingStartsWithTheSameDigest) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(5);
  ASSERT_TRUE(WaitBlocks(5));
  const Json before = daemon_->Status();
  const std::string exported = directory_.Path("exported");
  const Finished finished = daemon_->Ctl({"-o", "json", "snapshot", "export", exported});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.json()["seq"], before["log_applied"]);
  TestDaemon elsewhere(exported);
  ASSERT_TRUE(elsewhere.WaitReady());
  EXPECT_EQ(elsewhere.Status()["digest"], before["digest"]);
}

TEST_F(CtlDaemonTest, ExportOfADirectoryAsksTheDaemonThatOwnsIt) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(5);
  ASSERT_TRUE(WaitBlocks(5));
  const std::string exported = directory_.Path("exported");
  const Finished finished =
      RunCtlProgram({"--data-dir", data_dir_, "snapshot", "export", exported});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const std::string digest = daemon_->Status()["digest"].get<std::string>();
  EXPECT_EQ(RunCtlProgram({"--data-dir", exported, "verify", "--expect", digest}).code, 0);
}

TEST_F(CtlDaemonTest, FollowGoesOnUntilItIsInterrupted) {
  Process follow({CONDUCTOR_BINARY_DIR "/mooncake-conductor/conductorctl", "--address",
                  "127.0.0.1:" + std::to_string(daemon_->rpc_port()), "inspect", "log",
                  "--follow"});
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  EXPECT_TRUE(WaitUntil(
      [&] { return follow.out().find("registered instance=vllm-0") != std::string::npos; },
      kDeadline));
  follow.Signal(SIGINT);
  EXPECT_EQ(follow.Wait(), 0);
}

TEST_F(CtlDaemonTest, FollowOfADirectoryShowsWhatItsDaemonWrites) {
  Process follow({CONDUCTOR_BINARY_DIR "/mooncake-conductor/conductorctl", "--data-dir", data_dir_,
                  "inspect", "log", "--follow"});
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(2);
  EXPECT_TRUE(
      WaitUntil([&] { return follow.out().find("stored") != std::string::npos; }, kDeadline))
      << follow.out() << follow.err();
  follow.Signal(SIGTERM);
  EXPECT_EQ(follow.Wait(), 0);
}

TEST_F(CtlDaemonTest, RegisteringAgainAndConflictsAreTold) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  std::vector<std::string> again = Registration();
  again.insert(again.begin(), {"-o", "json"});
  EXPECT_EQ(daemon_->Ctl(again).json()["already"], true);
  const Finished conflict = daemon_->Ctl(Registration("8"));
  EXPECT_EQ(conflict.code, 1);
  EXPECT_THAT(conflict.err, HasSubstr("block_size"));
  EXPECT_EQ(daemon_->Ctl(Registration("0")).code, 2);
}

TEST_F(CtlDaemonTest, UnregisterForgetsAndThenSaysNo) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(2);
  ASSERT_TRUE(WaitBlocks(2));
  const Finished removed = daemon_->Ctl({"unregister", "--instance-id", "vllm-0"});
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_THAT(removed.out, HasSubstr("vllm-0|default|0"));
  EXPECT_EQ(daemon_->Status()["blocks"], 0);
  EXPECT_EQ(daemon_->Ctl({"unregister", "--instance-id", "vllm-0"}).code, 1);
}

TEST_F(CtlDaemonTest, InspectAgreesLiveAndOffline) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(3);
  ASSERT_TRUE(WaitBlocks(3));
  for (const std::string what : {"log", "contexts"}) {
    EXPECT_EQ(daemon_->Ctl({"inspect", what}).out,
              RunCtlProgram({"--data-dir", data_dir_, "inspect", what}).out)
        << what;
  }
  const Json live = daemon_->Ctl({"-o", "json", "inspect", "streams"}).json();
  const Json offline =
      RunCtlProgram({"--data-dir", data_dir_, "-o", "json", "inspect", "streams"}).json();
  EXPECT_EQ(live["services"][0]["LastSeq"], offline["services"][0]["LastSeq"]);
  EXPECT_EQ(live["services"][0]["Blocks"], offline["services"][0]["Blocks"]);
}

TEST_F(CtlDaemonTest, DoctorFindsNothingWhenAllIsWell) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  Prompt(2);
  ASSERT_TRUE(WaitBlocks(2));
  const Finished doctor =
      daemon_->Ctl({"doctor", "--model", "m", "--block-size", "4", "--tokens", kPrompt});
  EXPECT_EQ(doctor.code, 0) << doctor.out;
  EXPECT_THAT(doctor.out, HasSubstr("no problem found"));
}

TEST_F(CtlDaemonTest, DoctorNamesAPublisherThatNeverSends) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  EXPECT_TRUE(WaitFinding("never_seen_a_frame"));
}

TEST_F(CtlDaemonTest, DoctorNamesAnotherBlockSize) {
  ASSERT_EQ(daemon_->Ctl(Registration("16")).code, 0);
  Prompt(8);
  EXPECT_TRUE(WaitFinding("block_size_mismatch"));
}

TEST_F(CtlDaemonTest, DoctorNamesAnUnknownModelAndAShortPrompt) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  EXPECT_TRUE(WaitFinding("unknown_model", {"--model", "M"}));
  EXPECT_TRUE(WaitFinding("unknown_tenant", {"--model", "m", "--tenant", "t"}));
  EXPECT_TRUE(WaitFinding("prompt_shorter_than_a_block", {"--model", "m", "--tokens", "1,2,3"}));
}

TEST_F(CtlDaemonTest, DoctorNamesUndecodableFrames) {
  ASSERT_EQ(daemon_->Ctl(Registration()).code, 0);
  ASSERT_TRUE(engine_->publisher().WaitUntil(
      [](const enginesim::PublisherStats& stats) { return stats.subscriptions > 0; }, kDeadline));
  engine_->publisher().Publish("\xc1 not msgpack");
  EXPECT_TRUE(WaitFinding("decode_errors"));
}

}  // namespace
}  // namespace conductor::cli
