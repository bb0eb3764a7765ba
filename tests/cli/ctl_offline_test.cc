// conductorctl on a data directory, without a daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/ctl_util.h"
#include "tests/cli/temp_dir.h"

namespace conductor::cli {
namespace {

using testing::HasSubstr;

class OfflineCtlTest : public testing::Test {
 protected:
  OfflineCtlTest() { WriteLog(data_dir_); }
  Outcome Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--data-dir", data_dir_});
    return RunArguments(std::move(arguments));
  }
  TempDir directory_;
  const std::string data_dir_ = directory_.Path("data");
};

TEST_F(OfflineCtlTest, LiveCommandsNeedADaemon) {
  const Outcome outcome = Run({"services"});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("needs a running daemon"));
}

TEST_F(OfflineCtlTest, InspectLogShowsEveryRecord) {
  const Outcome outcome = Run({"inspect", "log"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("seq=1 registered instance=vllm-0"));
  EXPECT_THAT(outcome.out, HasSubstr("seq=2 frame stream=1"));
}

TEST_F(OfflineCtlTest, InspectLogTailShowsTheLast) {
  const Json json = Json::parse(Run({"-o", "json", "inspect", "log", "--tail", "1"}).out);
  EXPECT_EQ(json["log_last"], 2);
  EXPECT_EQ(json["from"], 2);
  EXPECT_EQ(json["lines"].size(), 1u);
}

TEST_F(OfflineCtlTest, InspectLogBeyondTheEndIsEmpty) {
  const Outcome outcome = Run({"inspect", "log", "--from", "3"});
  EXPECT_EQ(outcome.code, ExitCode::kOk);
  EXPECT_THAT(outcome.out, HasSubstr("the log has 1..2"));
}

TEST_F(OfflineCtlTest, InspectLogShowsToInclusive) {
  const Json json = Json::parse(Run({"-o", "json", "inspect", "log", "--to", "1"}).out);
  EXPECT_EQ(json["from"], 1);
  EXPECT_EQ(json["to"], 1);
  EXPECT_EQ(json["next"], 2);
  EXPECT_EQ(json["lines"].size(), 1u);
  EXPECT_EQ(Json::parse(Run({"-o", "json", "inspect", "log", "--to", "9"}).out)["to"], 2);
}

TEST_F(OfflineCtlTest, InspectLogOfOneStream) {
  EXPECT_THAT(Run({"inspect", "log", "--stream", "1"}).out, HasSubstr("seq=2 frame stream=1"));
  EXPECT_EQ(Run({"inspect", "log", "--stream", "7"}).out,
            "no records of stream 7 among 1..2: the log has 1..2\n");
}

TEST_F(OfflineCtlTest, FollowEndsAtTo) {
  const Outcome outcome = Run({"inspect", "log", "--follow", "--from", "1", "--to", "2"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("seq=2 frame"));
  const Json line = Json::parse(Run({"-o", "json", "inspect", "log", "--follow", "--to", "2"}).out);
  EXPECT_EQ(line["from"], 1);
  EXPECT_EQ(line["to"], 2);
  EXPECT_EQ(line["lines"].size(), 2u);
}

TEST_F(OfflineCtlTest, InspectStreamsRebuildsThem) {
  const Json json = Json::parse(Run({"-o", "json", "inspect", "streams"}).out);
  ASSERT_EQ(json["count"], 1);
  EXPECT_EQ(json["services"][0]["LastSeq"], 0);
  EXPECT_EQ(json["services"][0]["Blocks"]["device"], 1);
}

TEST_F(OfflineCtlTest, InspectContextsRebuildsThem) {
  const Json json = Json::parse(Run({"inspect", "contexts", "-o", "json"}).out);
  ASSERT_EQ(json["context_count"], 1);
  EXPECT_EQ(json["contexts"][0]["prefix_count"], 1);
}

TEST_F(OfflineCtlTest, InspectBlockNamesItsHolder) {
  const Outcome outcome = Run({"inspect", "block", "11"});
  EXPECT_EQ(outcome.code, ExitCode::kOk);
  EXPECT_THAT(outcome.out, HasSubstr("instance=vllm-0 dp_rank=0 tier=device"));
  EXPECT_EQ(Run({"inspect", "block", "12"}).code, ExitCode::kNo);
  EXPECT_EQ(Run({"inspect", "block", "1,2"}).code, ExitCode::kUsage);
}

TEST_F(OfflineCtlTest, VerifySaysNoToAnotherDigest) {
  const Outcome outcome = Run({"verify", "--expect", std::string(32, '0')});
  EXPECT_EQ(outcome.code, ExitCode::kNo);
  EXPECT_THAT(outcome.out, HasSubstr("DIFFERENT"));
}

Json DigestOf(const Outcome& outcome) {
  return Json::parse(outcome.out)["comparisons"][0]["digest"];
}

TEST_F(OfflineCtlTest, ExportBecomesADataDirectoryOfTheSameDigest) {
  const std::string exported = directory_.Path("export"), imported = directory_.Path("imported");
  ASSERT_EQ(Run({"snapshot", "export", exported}).code, ExitCode::kOk);
  const Json digest = DigestOf(Run({"-o", "json", "verify"}));
  const Outcome import =
      RunArguments({"--data-dir", imported, "-o", "json", "snapshot", "import", exported});
  ASSERT_EQ(import.code, ExitCode::kOk) << import.err;
  const Json found = Json::parse(import.out);
  EXPECT_EQ(found["seq"], 2);
  EXPECT_EQ(found["registrations"], 1);
  EXPECT_EQ(found["blocks"], 1);
  EXPECT_EQ(found["digest"], digest);
  EXPECT_EQ(DigestOf(RunArguments({"--data-dir", imported, "-o", "json", "verify"})), digest);
  EXPECT_EQ(DigestOf(RunArguments({"--data-dir", exported, "-o", "json", "verify"})), digest);
}

TEST_F(OfflineCtlTest, RefusedExportLeavesNothing) {
  const std::string mine = directory_.Path("mine");
  std::filesystem::create_directory(mine);
  std::ofstream(mine + "/file") << "here";
  const Outcome outcome = Run({"snapshot", "export", mine});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("not an empty directory"));
  EXPECT_FALSE(std::filesystem::exists(data_dir_ + "/checkpoints"));
}

TEST_F(OfflineCtlTest, ImportOfAnotherDigestThanExpectedLeavesNothing) {
  const std::string imported = directory_.Path("imported");
  const Outcome outcome = RunArguments(
      {"--data-dir", imported, "snapshot", "import", data_dir_, "--expect", std::string(32, '0')});
  EXPECT_EQ(outcome.code, ExitCode::kNo);
  EXPECT_THAT(outcome.err, HasSubstr("nothing was imported"));
  EXPECT_FALSE(std::filesystem::exists(imported));
}

TEST_F(OfflineCtlTest, ImportRefusesATargetWithContent) {
  const Outcome outcome = RunArguments({"--data-dir", data_dir_, "snapshot", "import", data_dir_});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("not an empty directory"));
}

TEST_F(OfflineCtlTest, ImportOfNoDataDirectoryIsRefused) {
  const TempDir none;
  EXPECT_EQ(
      RunArguments({"--data-dir", directory_.Path("new"), "snapshot", "import", none.path()}).code,
      ExitCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(directory_.Path("new")));
}

TEST_F(OfflineCtlTest, VerifyFromLogUsesTheLogAlone) {
  const Outcome outcome = Run({"-o", "json", "verify", "--from-log"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["comparisons"][0]["snapshot_seq"], 0);
}

TEST_F(OfflineCtlTest, VerifyIsSilentOnStderrUnlessToldOtherwise) {
  EXPECT_EQ(Run({"verify"}).err, "");
}

TEST(OfflineCtlErrorTest, DirectoryWithoutLogIsAUsageError) {
  const TempDir directory;
  EXPECT_EQ(RunArguments({"--data-dir", directory.path(), "verify"}).code, ExitCode::kUsage);
  EXPECT_EQ(RunArguments({"--data-dir", directory.Path("none"), "inspect", "log"}).code,
            ExitCode::kUsage);
}

}  // namespace
}  // namespace conductor::cli
