// conductorctl as a function: usage, exit codes, and everything it does without a daemon.
#include "cli/ctl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "storage/rocksdb_event_log.h"
#include "tests/cli/temp_dir.h"

namespace conductor::cli {
namespace {

using testing::HasSubstr;

struct Outcome {
  ExitCode code = ExitCode::kOk;
  std::string out, err;
};

Outcome Ctl(std::vector<std::string> arguments, const std::string& stdin_text = "") {
  std::vector<const char*> argv = {"conductorctl"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::istringstream in(stdin_text);
  std::ostringstream out, err;
  const ExitCode code = RunCtl(static_cast<int>(argv.size()), argv.data(), {in, out, err});
  return {code, out.str(), err.str()};
}

// Nobody listens on port 1 of the loopback.
const std::vector<std::string> kNobody = {"--address", "127.0.0.1:1"};

Outcome Unreachable(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kNobody.begin(), kNobody.end());
  return Ctl(std::move(arguments));
}

// A log with one registration, which holds one block of name 11.
void WriteLog(const std::string& data_dir) {
  storage::RocksDbEventLogOptions options;
  options.data_dir = data_dir;
  auto log = storage::RocksDbEventLog::Open(std::move(options));
  ASSERT_TRUE(log.has_value()) << log.error().message;
  Registration registration;
  registration.instance_id = "vllm-0";
  registration.endpoint = "tcp://127.0.0.1:5557";
  registration.model_name = "m";
  registration.block_size = 4;
  Stored stored;
  stored.block_length = 4;
  stored.extra_keys_on_wire = true;
  stored.blocks = {{{11, ""}, 99, HashCheck::kEqual}};
  Frame frame;
  frame.stream = 1;
  frame.events = {stored};
  const std::vector<Record> records = {{{Registered{registration, UnverifiedBlocks::kContent}}},
                                       {{frame}}};
  ASSERT_TRUE((*log)->Append(records, Durability::kSynced).has_value());
}

class OfflineCtlTest : public testing::Test {
 protected:
  OfflineCtlTest() { WriteLog(data_dir_); }
  Outcome Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--data-dir", data_dir_});
    return Ctl(std::move(arguments));
  }
  TempDir directory_;
  const std::string data_dir_ = directory_.Path("data");
};

TEST(CtlUsageTest, HelpOfEveryCommandShowsAnExample) {
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"status"},
                                                          {"services"},
                                                          {"view"},
                                                          {"query"},
                                                          {"register"},
                                                          {"unregister"},
                                                          {"snapshot"},
                                                          {"snapshot", "create"},
                                                          {"snapshot", "list"},
                                                          {"snapshot", "export"},
                                                          {"snapshot", "import"},
                                                          {"inspect"},
                                                          {"inspect", "log"},
                                                          {"inspect", "streams"},
                                                          {"inspect", "contexts"},
                                                          {"inspect", "block"},
                                                          {"verify"},
                                                          {"doctor"}};
  for (std::vector<std::string> command : commands) {
    command.push_back("--help");
    const Outcome outcome = Ctl(command);
    EXPECT_EQ(outcome.code, ExitCode::kOk) << command.front();
    EXPECT_THAT(outcome.out, HasSubstr("Example")) << command.front();
    EXPECT_THAT(outcome.out, HasSubstr("  conductorctl ")) << command.front();
  }
}

TEST(CtlUsageTest, VersionIsShown) {
  const Outcome outcome = Ctl({"--version"});
  EXPECT_EQ(outcome.code, ExitCode::kOk);
  EXPECT_THAT(outcome.out, HasSubstr("conductorctl "));
}

TEST(CtlUsageTest, WrongCommandLinesAreUsageErrors) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"frobnicate"},
      {"status", "--frobnicate"},
      {"-o", "yaml", "status"},
      {"--timeout-ms", "0", "status"},
      {"query"},
      {"query", "--model", "m", "--block-size", "4"},
      {"query", "--model", "m", "--block-size", "x", "--tokens", "1"},
      {"query", "--model", "m", "--block-size", "4", "--tokens", "1", "--hashes", "1"},
      {"unregister"},
      {"snapshot"},
      {"snapshot", "export"},
      {"inspect"},
      {"inspect", "block"},
      {"inspect", "log", "--tail", "1", "--from", "2"},
      {"doctor", "--tokens", "1"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = Ctl(arguments);
    EXPECT_EQ(outcome.code, ExitCode::kUsage) << testing::PrintToString(arguments);
    EXPECT_THAT(outcome.err, HasSubstr("conductorctl: "));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(CtlUsageTest, WrongValuesAreNamedBeforeTheDaemonIsAsked) {
  const Outcome outcome =
      Unreachable({"query", "--model", "m", "--block-size", "4", "--tokens", "1,zwei"});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--tokens[1]"));
}

TEST(CtlUsageTest, RegistrationFileErrorsNameFileAndField) {
  const TempDir directory;
  const std::string path = directory.Write("r.json", R"({"model": "m"})");
  const Outcome outcome = Unreachable({"register", "--file", path});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_THAT(outcome.err, HasSubstr(path + ": model: unknown key"));
}

TEST(CtlUsageTest, AddressThatIsNoneIsAUsageError) {
  EXPECT_EQ(Ctl({"--address", "nonsense", "status"}).code, ExitCode::kUsage);
}

TEST(CtlUnreachableTest, EveryLiveCommandSaysThree) {
  const std::vector<std::vector<std::string>> commands = {
      {"status"},
      {"services"},
      {"view"},
      {"query", "--model", "m", "--block-size", "4", "--tokens", "1"},
      {"register", "--instance-id", "a"},
      {"unregister", "--instance-id", "a"},
      {"snapshot", "create"},
      {"snapshot", "list"},
      {"inspect", "log"},
      {"inspect", "streams"},
      {"inspect", "contexts"},
      {"inspect", "block", "1"},
      {"verify"},
      {"doctor"}};
  for (const auto& arguments : commands) {
    const Outcome outcome = Unreachable(arguments);
    EXPECT_EQ(outcome.code, ExitCode::kUnreachable) << arguments.front() << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("127.0.0.1:1"));
  }
}

TEST(CtlUnreachableTest, JsonErrorsAreJson) {
  const Outcome outcome = Unreachable({"-o", "json", "status"});
  EXPECT_EQ(outcome.code, ExitCode::kUnreachable);
  EXPECT_TRUE(Json::parse(outcome.out).contains("error"));
}

TEST(CtlExitCodeTest, CodesFollowTheContract) {
  const auto code = [](ErrorCode error, const char* reason) {
    return CtlExitCode({error, "", reason, "", -1});
  };
  EXPECT_EQ(code(ErrorCode::kUnavailable, ""), ExitCode::kUnreachable);
  EXPECT_EQ(code(ErrorCode::kUnavailable, "not_ready"), ExitCode::kNo);
  EXPECT_EQ(code(ErrorCode::kDeadlineExceeded, ""), ExitCode::kUnreachable);
  EXPECT_EQ(code(ErrorCode::kNotFound, "not_found"), ExitCode::kNo);
  EXPECT_EQ(code(ErrorCode::kInvalidArgument, "invalid_value"), ExitCode::kUsage);
  EXPECT_EQ(code(ErrorCode::kInvalidArgument, "invalid_registration"), ExitCode::kNo);
  EXPECT_EQ(code(ErrorCode::kDataLoss, ""), ExitCode::kDamaged);
}

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

TEST_F(OfflineCtlTest, ExportedSnapshotBecomesADataDirectory) {
  const std::string exported = directory_.Path("export"), imported = directory_.Path("imported");
  ASSERT_EQ(Run({"snapshot", "export", exported}).code, ExitCode::kOk);
  const std::string before = Run({"-o", "json", "snapshot", "list"}).out;
  std::ofstream(exported + "/mine") << "here";
  EXPECT_EQ(Run({"snapshot", "export", exported}).code, ExitCode::kUsage);
  EXPECT_EQ(Run({"-o", "json", "snapshot", "list"}).out, before)
      << "a refused export leaves nothing";
  std::filesystem::remove(exported + "/mine");
  const Outcome import = Ctl({"--data-dir", imported, "snapshot", "import", exported});
  ASSERT_EQ(import.code, ExitCode::kOk) << import.err;
  const auto digest = [](const Outcome& outcome) {
    return Json::parse(outcome.out)["comparisons"][0]["digest"];
  };
  EXPECT_EQ(digest(Ctl({"--data-dir", imported, "-o", "json", "verify"})),
            digest(Run({"-o", "json", "verify"})));
}

TEST(OfflineCtlErrorTest, DirectoryWithoutLogIsAUsageError) {
  const TempDir directory;
  EXPECT_EQ(Ctl({"--data-dir", directory.path(), "verify"}).code, ExitCode::kUsage);
  EXPECT_EQ(Ctl({"--data-dir", directory.Path("none"), "inspect", "log"}).code, ExitCode::kUsage);
}

}  // namespace
}  // namespace conductor::cli
