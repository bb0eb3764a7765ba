// conductorctl as a function: usage, exit codes, and that nobody is there.
#include "cli/ctl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/cli/ctl_util.h"
#include "tests/cli/temp_dir.h"

namespace conductor::cli {
namespace {

using testing::HasSubstr;

// Nobody listens on port 1 of the loopback.
const std::vector<std::string> kNobody = {"--address", "127.0.0.1:1"};

Outcome Unreachable(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kNobody.begin(), kNobody.end());
  return RunArguments(std::move(arguments));
}

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
                                                          {"snapshot", "prune"},
                                                          {"inspect"},
                                                          {"inspect", "log"},
                                                          {"inspect", "streams"},
                                                          {"inspect", "contexts"},
                                                          {"inspect", "block"},
                                                          {"verify"},
                                                          {"doctor"}};
  for (std::vector<std::string> command : commands) {
    command.push_back("--help");
    const Outcome outcome = RunArguments(command);
    EXPECT_EQ(outcome.code, ExitCode::kOk) << command.front();
    EXPECT_THAT(outcome.out, HasSubstr("Example")) << command.front();
    EXPECT_THAT(outcome.out, HasSubstr("  conductorctl ")) << command.front();
  }
}

TEST(CtlUsageTest, VersionIsShown) {
  const Outcome outcome = RunArguments({"--version"});
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
      {"inspect", "log", "--to", "0"},
      {"inspect", "log", "--from", "3", "--to", "2"},
      {"snapshot", "prune", "--keep", "0"},
      {"doctor", "--tokens", "1"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = RunArguments(arguments);
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
  EXPECT_EQ(RunArguments({"--address", "nonsense", "status"}).code, ExitCode::kUsage);
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
      {"snapshot", "prune"},
      {"snapshot", "export", testing::TempDir() + "conductor_never_made"},
      {"inspect", "log"},
      {"inspect", "log", "--follow"},
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

}  // namespace
}  // namespace conductor::cli
