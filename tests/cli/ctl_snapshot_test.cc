// conductorctl and the snapshots of a data directory that has no daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/ctl_util.h"
#include "tests/cli/temp_dir.h"
#include "tests/no_more_bytes.h"

namespace conductor::cli {
namespace {

using testing::HasSubstr;

class SnapshotCtlTest : public testing::Test {
 protected:
  SnapshotCtlTest() { WriteLog(data_dir_); }

  std::unique_ptr<storage::RocksDbEventLog> OpenForWriting() {
    storage::RocksDbEventLogOptions options;
    options.data_dir = data_dir_;
    auto log = storage::RocksDbEventLog::Open(std::move(options));
    EXPECT_TRUE(log) << log.error().message;
    return log ? *std::move(log) : nullptr;
  }
  void Append(std::uint64_t number, std::uint64_t name) {
    const std::vector<Record> records = {FrameRecord(number, name)};
    ASSERT_TRUE(OpenForWriting()->Append(records, Durability::kSynced));
  }
  Outcome Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--data-dir", data_dir_});
    return RunArguments(std::move(arguments));
  }
  Json RunJson(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"-o", "json"});
    const Outcome outcome = Run(std::move(arguments));
    EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err << outcome.out;
    return Json::parse(outcome.out, nullptr, false);
  }
  Json Create() const { return RunJson({"snapshot", "create"}); }
  // A bit of the middle of the snapshot's file.
  static void Damage(const Json& snapshot) {
    const std::string path = snapshot["path"].get<std::string>();
    const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(path) / 2);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(middle);
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(middle);
    file.put(byte);
    ASSERT_TRUE(file.flush().good());
  }

  TempDir directory_;
  const std::string data_dir_ = directory_.Path("data");
};

TEST_F(SnapshotCtlTest, CreatedOneIsListedWithWhatItHolds) {
  const Json created = Create();
  EXPECT_EQ(created["seq"], 2);
  EXPECT_EQ(created["blocks"], 1);
  EXPECT_GT(created["bytes"], 0);
  EXPECT_EQ(created["damage"], "");
  const Json list = RunJson({"snapshot", "list"});
  ASSERT_EQ(list["count"], 1);
  EXPECT_EQ(list["snapshots"][0]["digest"], created["digest"]);
  EXPECT_EQ(RunJson({"verify"})["comparisons"][0]["digest"], created["digest"]);
}

TEST_F(SnapshotCtlTest, VerifyBeginsAtTheNewestAndChecksIt) {
  Create();
  Append(1, 12);
  Create();
  Append(2, 13);
  const Json verify = RunJson({"verify", "--all-snapshots"});
  EXPECT_EQ(verify["match"], true);
  const Json& comparisons = verify["comparisons"];
  ASSERT_EQ(comparisons.size(), 3u);
  EXPECT_EQ(comparisons[0]["with"], "log");
  EXPECT_EQ(comparisons[0]["seq"], 4);
  EXPECT_EQ(comparisons[0]["snapshot_seq"], 3);
  EXPECT_EQ(comparisons[1]["with"], "snapshot 3");
  EXPECT_EQ(comparisons[1]["snapshot_seq"], 2) << "from what led to it";
  EXPECT_EQ(comparisons[2]["with"], "snapshot 2");
  EXPECT_EQ(comparisons[2]["snapshot_seq"], 0);
  for (std::size_t i : {1, 2}) EXPECT_EQ(comparisons[i]["digest"], comparisons[i]["expected"]);
}

TEST_F(SnapshotCtlTest, VerifyFromLogComparesBothWays) {
  Create();
  Append(1, 12);
  const Json comparisons = RunJson({"verify", "--from-log"})["comparisons"];
  EXPECT_EQ(comparisons[0]["snapshot_seq"], 0);
  EXPECT_EQ(comparisons[1]["with"], "snapshot and log");
  EXPECT_EQ(comparisons[1]["snapshot_seq"], 2);
  EXPECT_EQ(comparisons[1]["match"], true);
}

TEST_F(SnapshotCtlTest, VerifyFromLogNeedsTheLogsBeginning) {
  Create();
  Append(1, 12);
  Create();
  ASSERT_TRUE(OpenForWriting()->DropBelow(3));
  EXPECT_EQ(Run({"verify"}).code, ExitCode::kOk);
  const Outcome outcome = Run({"verify", "--from-log"});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("the log begins at 3"));
}

TEST_F(SnapshotCtlTest, DroppedPositionIsNamedOffline) {
  Create();
  Append(1, 12);
  ASSERT_TRUE(OpenForWriting()->DropBelow(3));
  const Outcome outcome = Run({"inspect", "log", "--from", "1"});
  EXPECT_EQ(outcome.code, ExitCode::kNo);
  EXPECT_THAT(outcome.err, HasSubstr("record 1 was dropped"));
  EXPECT_EQ(RunJson({"inspect", "streams"})["services"][0]["Blocks"]["device"], 2);
  EXPECT_EQ(Run({"inspect", "block", "11"}).code, ExitCode::kOk);
}

TEST_F(SnapshotCtlTest, DamagedOneIsPassedOverWithAWarning) {
  const Json digest = Create()["digest"];
  Append(1, 12);
  const Json damaged = Create();
  Damage(damaged);
  const Outcome outcome = Run({"verify", "--expect", damaged["digest"].get<std::string>()});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("warning: "));
  EXPECT_THAT(outcome.err, HasSubstr("3"));
}

TEST_F(SnapshotCtlTest, DamagedOneWithNothingBeforeItIsDamage) {
  Append(1, 12);
  const Json damaged = Create();
  ASSERT_TRUE(OpenForWriting()->DropBelow(4));
  Damage(damaged);
  EXPECT_EQ(Run({"verify"}).code, ExitCode::kDamaged);
  EXPECT_EQ(Run({"inspect", "streams"}).code, ExitCode::kDamaged);
}

TEST_F(SnapshotCtlTest, ProgressIsShownInLinesWhenAskedFor) {
  constexpr std::uint64_t kFrames = 300;
  std::vector<Record> records;
  for (std::uint64_t i = 1; i <= kFrames; ++i) records.push_back(FrameRecord(i, 100 + i));
  ASSERT_TRUE(OpenForWriting()->Append(records, Durability::kSynced));
  EXPECT_EQ(Run({"verify"}).err, "");
  EXPECT_THAT(Run({"verify", "--progress"}).err, testing::ContainsRegex("log [0-9.]+ %, record "));
}

TEST_F(SnapshotCtlTest, PruneKeepsTheNewestGoodOnes) {
  Create();
  Append(1, 12);
  Create();
  Append(2, 13);
  const Json newest = Create();
  EXPECT_EQ(RunJson({"snapshot", "prune"})["snapshots"][0]["seq"], 2);
  EXPECT_EQ(RunJson({"snapshot", "list"})["count"], 2);
  Damage(newest);
  const Json removed = RunJson({"snapshot", "prune", "--keep", "1"});
  ASSERT_EQ(removed["count"], 1) << "the one that cannot be read, not the one before";
  EXPECT_EQ(removed["snapshots"][0]["seq"], 4);
  EXPECT_EQ(RunJson({"snapshot", "list"})["snapshots"][0]["seq"], 3);
  EXPECT_EQ(Run({"snapshot", "prune", "--keep", "1"}).out, "nothing to remove\n");
}

TEST_F(SnapshotCtlTest, PruneRemovesTheCheckpointsOfKilledExports) {
  std::string recent, old;
  {
    const auto log = OpenForWriting();  // its export was killed: nobody removes them
    recent = log->CreateCheckpoint()->path;
    old = data_dir_ + "/checkpoints/2-1";
    std::filesystem::rename(log->CreateCheckpoint()->path, old);
  }
  const Json removed = RunJson({"snapshot", "prune"});
  ASSERT_EQ(removed["count"], 1);
  EXPECT_EQ(removed["snapshots"][0]["path"], old);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(recent)) << "it may be copied just now";
  Create();
  EXPECT_FALSE(std::filesystem::exists(recent)) << "another owner";
}

TEST_F(SnapshotCtlTest, PruneWorksOnAFullDisk) {
  Create();
  Append(1, 12);
  const Json newest = Create();
  {
    const NoMoreBytes full;
    const Outcome create = Run({"snapshot", "create"});
    EXPECT_NE(create.code, ExitCode::kOk) << "no disk to write a snapshot to";
    const Json removed = RunJson({"snapshot", "prune", "--keep", "1"});
    ASSERT_EQ(removed["count"], 1);
    EXPECT_EQ(removed["snapshots"][0]["seq"], 2);
  }
  EXPECT_EQ(RunJson({"snapshot", "list"})["count"], 1);
  EXPECT_EQ(RunJson({"verify"})["comparisons"][0]["digest"], newest["digest"]);
}

TEST_F(SnapshotCtlTest, ExportTakesSnapshotsAlong) {
  Create();
  Append(1, 12);
  Create();
  ASSERT_TRUE(OpenForWriting()->DropBelow(3));
  const Json digest = RunJson({"verify"})["comparisons"][0]["digest"];
  const std::string exported = directory_.Path("export"), imported = directory_.Path("imported");
  const Outcome outcome = Run({"snapshot", "export", exported});
  ASSERT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_FALSE(std::filesystem::exists(data_dir_ + "/checkpoints") &&
               !std::filesystem::is_empty(data_dir_ + "/checkpoints"))
      << "the checkpoint is gone again";
  const Outcome import =
      RunArguments({"--data-dir", imported, "-o", "json", "snapshot", "import", exported});
  ASSERT_EQ(import.code, ExitCode::kOk) << import.err;
  const Json found = Json::parse(import.out);
  EXPECT_EQ(found["digest"], digest);
  EXPECT_EQ(found["snapshot_seq"], 3);
  EXPECT_EQ(found["log_first"], 3);
  EXPECT_EQ(found["blocks"], 2);
}

TEST_F(SnapshotCtlTest, ImportOfADamagedDirectoryLeavesNothing) {
  Append(1, 12);
  const Json snapshot = Create();
  ASSERT_TRUE(OpenForWriting()->DropBelow(4));
  Damage(snapshot);
  const std::string imported = directory_.Path("imported");
  EXPECT_EQ(RunArguments({"--data-dir", imported, "snapshot", "import", data_dir_}).code,
            ExitCode::kDamaged);
  EXPECT_FALSE(std::filesystem::exists(imported));
  EXPECT_FALSE(std::filesystem::exists(imported + ".unfinished"));
}

}  // namespace
}  // namespace conductor::cli
