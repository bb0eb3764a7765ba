// conductorctl against a gRPC server over a service that a test scripts: what it does when the
// daemon's answers are not the usual ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include "rpc/rpc_server.h"
#include "src/memory_event_log.h"
#include "src/service/conductor_service.h"
#include "tests/cli/ctl_util.h"
#include "tests/cli/temp_dir.h"
#include "tests/rpc/scripted_service.h"
#include "tests/slowness.h"

namespace conductor::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A log in memory, and checkpoints that are whatever directory the test names.
class LogService final : public rpc::ScriptedService {
 public:
  Result<StatusView> GetStatus() const override {
    StatusView now = status;
    {
      const std::lock_guard lock(mutex_);
      if (!statuses_before.empty()) {
        now = statuses_before.front();
        statuses_before.pop_front();
      }
    }
    now.log_first = log.FirstSeq();
    now.log_last = log.LastSeq();
    return now;
  }
  Result<LogLines> InspectLog(Seq from, std::uint32_t count_max, StreamId stream) const override {
    const std::lock_guard lock(mutex_);
    if (from > log.LastSeq()) ++asked_for_more_;
    changed_.notify_all();
    return InspectRecords(log, from, count_max, stream);
  }
  Result<SnapshotInfo> CreateCheckpoint() override {
    return SnapshotInfo{2, 99, checkpoint_path, 0, 0};
  }
  Status RemoveCheckpoint(const std::string& path) override {
    removed.push_back(path);
    return remove_status;
  }
  bool AwaitAskedForMore() const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10 * kSlowness),
                             [&] { return asked_for_more_ > 0; });
  }

  StatusView status;
  mutable std::deque<StatusView> statuses_before;  // one answer each, before `status`
  MemoryEventLog log;
  std::string checkpoint_path;
  Status remove_status;
  std::vector<std::string> removed;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int asked_for_more_ = 0;
};

class LiveCtlTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = rpc::RpcServer::Start(service_, {});
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    Append({RegistrationRecord(), FrameRecord(0, 11), FrameRecord(1, 12), FrameRecord(2, 13)});
    service_.status.readiness = {.ready = true, .phase = "ready"};
  }
  void Append(const std::vector<Record>& records) {
    ASSERT_TRUE(service_.log.Append(records, Durability::kSynced));
  }
  Outcome Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {"--address", "127.0.0.1:" + std::to_string(server_->port())});
    return RunArguments(std::move(arguments));
  }

  TempDir directory_;
  LogService service_;
  std::unique_ptr<rpc::RpcServer> server_;
};

TEST_F(LiveCtlTest, InspectLogShowsARangeWithBothEnds) {
  const Json json =
      Json::parse(Run({"-o", "json", "inspect", "log", "--from", "2", "--to", "3"}).out);
  EXPECT_EQ(json["from"], 2);
  EXPECT_EQ(json["to"], 3);
  EXPECT_EQ(json["next"], 4);
  EXPECT_EQ(json["log_last"], 4);
  ASSERT_EQ(json["lines"].size(), 2u);
  EXPECT_THAT(json["lines"][1].get<std::string>(), HasSubstr("seq=3 "));
}

TEST_F(LiveCtlTest, ALongRangeIsAskedForInParts) {
  constexpr std::uint64_t kFrames = 300;
  for (std::uint64_t i = 0; i < kFrames; ++i) Append({FrameRecord(3 + i, 100 + i)});
  const Json json = Json::parse(Run({"-o", "json", "inspect", "log", "--count", "290"}).out);
  EXPECT_EQ(json["lines"].size(), 290u);
  EXPECT_EQ(json["to"], 290);
}

TEST_F(LiveCtlTest, APositionThatWasDroppedIsNamed) {
  ASSERT_TRUE(service_.log.DropBelow(3));
  const Outcome outcome = Run({"inspect", "log", "--from", "2"});
  EXPECT_EQ(outcome.code, ExitCode::kNo);
  EXPECT_THAT(outcome.err, HasSubstr("record 2 was dropped"));
  EXPECT_THAT(outcome.err, HasSubstr("begins at 3"));
  const Outcome whole = Run({"inspect", "log"});
  EXPECT_EQ(whole.code, ExitCode::kOk) << whole.err;
  EXPECT_THAT(whole.out, testing::StartsWith("seq=3 "));
}

TEST_F(LiveCtlTest, FollowShowsWhatComesLater) {
  Outcome outcome;
  std::thread ctl([&] {
    outcome = Run({"inspect", "log", "--follow", "--from", "4", "--to", "6"});
  });
  EXPECT_TRUE(service_.AwaitAskedForMore());
  Append({FrameRecord(3, 14), FrameRecord(4, 15)});
  ctl.join();
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  for (const char* seq : {"seq=4 ", "seq=5 ", "seq=6 "}) EXPECT_THAT(outcome.out, HasSubstr(seq));
}

TEST_F(LiveCtlTest, ExportRemovesItsCheckpoint) {
  service_.checkpoint_path = directory_.Path("checkpoint");
  WriteLog(service_.checkpoint_path);
  const std::string exported = directory_.Path("export");
  const Outcome outcome = Run({"snapshot", "export", exported});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(service_.removed, ElementsAre(service_.checkpoint_path));
  EXPECT_EQ(RunArguments({"--data-dir", exported, "verify"}).code, ExitCode::kOk);
}

TEST_F(LiveCtlTest, ExportThatFailsRemovesItsCheckpointToo) {
  // A directory without a log: the copy does not pass its check.
  service_.checkpoint_path = directory_.Path("checkpoint");
  std::filesystem::create_directory(service_.checkpoint_path);
  const Outcome outcome = Run({"snapshot", "export", directory_.Path("export")});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("must be reachable from here"));
  EXPECT_THAT(service_.removed, ElementsAre(service_.checkpoint_path));
  EXPECT_FALSE(std::filesystem::exists(directory_.Path("export")));
  EXPECT_FALSE(std::filesystem::exists(directory_.Path("export.unfinished")));
}

TEST_F(LiveCtlTest, ExportAsksForNothingWhenTheTargetIsTaken) {
  const std::string taken = directory_.Path("taken");
  std::filesystem::create_directories(taken + "/mine");
  EXPECT_EQ(Run({"snapshot", "export", taken}).code, ExitCode::kUsage);
  EXPECT_THAT(service_.removed, IsEmpty());
}

TEST_F(LiveCtlTest, ACheckpointThatStaysBehindIsAWarning) {
  service_.checkpoint_path = directory_.Path("checkpoint");
  WriteLog(service_.checkpoint_path);
  service_.remove_status = MakeError(ErrorCode::kPermissionDenied, "not allowed");
  const Outcome outcome = Run({"snapshot", "export", directory_.Path("export")});
  EXPECT_EQ(outcome.code, ExitCode::kOk);
  EXPECT_THAT(outcome.err, HasSubstr("warning: checkpoint " + service_.checkpoint_path +
                                     " stays behind: not allowed"));
}

TEST_F(LiveCtlTest, PruneSaysWhatItRemoved) {
  const Json json = Json::parse(Run({"-o", "json", "snapshot", "prune", "--keep", "3"}).out);
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(json["snapshots"][0]["path"], "gone");
}

class LiveVerifyTest : public LiveCtlTest {
 protected:
  void SetUp() override {
    LiveCtlTest::SetUp();
    service_.status.data_dir = directory_.Path("data");
    WriteLog(service_.status.data_dir);
    auto log = Ctl::OpenLog(service_.status.data_dir);
    ASSERT_TRUE(log) << log.error().message;
    service_.status.log_applied = 2;
    service_.status.digest = *DigestOfLog(**log, 2, nullptr);
    at_one_ = *DigestOfLog(**log, 1, nullptr);
  }
  std::string at_one_;
};

TEST_F(LiveVerifyTest, ComparesAtTheDaemonsPosition) {
  EXPECT_EQ(Run({"verify"}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"verify", "--from-log"}).code, ExitCode::kOk);
  // The log has gone on since the daemon was asked.
  service_.status.log_applied = 1;
  const Outcome wrong = Run({"verify"});
  EXPECT_EQ(wrong.code, ExitCode::kNo);
  EXPECT_THAT(wrong.out, HasSubstr("DIFFERENT"));
  service_.status.digest = at_one_;
  const Outcome right = Run({"verify"});
  EXPECT_EQ(right.code, ExitCode::kOk) << right.out;
  EXPECT_THAT(right.out, HasSubstr("began at"));
}

TEST_F(LiveVerifyTest, ALogThatEndsBeforeTheDaemonIsDamage) {
  service_.status.log_applied = 3;
  const Outcome outcome = Run({"verify"});
  EXPECT_EQ(outcome.code, ExitCode::kDamaged);
  EXPECT_THAT(outcome.err, HasSubstr("the log ends at 2"));
}

TEST_F(LiveVerifyTest, ReadsAgainWhenTheDaemonMovedOnMeanwhile) {
  // The log does not have what the daemon spoke of, and the daemon has made a snapshot since.
  StatusView before = service_.status;
  before.log_applied = 3;
  service_.status.snapshot_seq = 2;
  service_.statuses_before = {before};
  const Outcome outcome = Run({"verify"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(service_.statuses_before, IsEmpty());
}

TEST_F(LiveVerifyTest, ARebuildIsWaitedFor) {
  for (const char* phase : {"loading_snapshot", "rebuilding"}) {
    service_.status.readiness = {.phase = phase};
    const Outcome outcome = Run({"verify"});
    EXPECT_EQ(outcome.code, ExitCode::kNo) << phase;
    EXPECT_THAT(outcome.err, HasSubstr("still rebuilding"));
  }
}

}  // namespace
}  // namespace conductor::cli
