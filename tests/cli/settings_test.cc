// Command line over environment over file, and what happens when the file is not there.
#include "cli/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "cli/disk_error.h"
#include "tests/cli/temp_dir.h"

namespace conductor::cli {
namespace {

using testing::HasSubstr;

// A home of its own, and none of the variables a developer may have set.
class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    setenv("HOME", home_.path().c_str(), 1);
    for (const char* name :
         {"CONDUCTOR_CONFIG_PATH", "CONDUCTOR_DATA_DIR", "CONDUCTOR_LOG_LEVEL"}) {
      unsetenv(name);
    }
  }

  static CommandLine Read(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "mooncake_conductor");
    return ReadCommandLine(static_cast<int>(arguments.size()), arguments.data());
  }
  static Settings Accepted(std::vector<const char*> arguments) {
    CommandLine line = Read(std::move(arguments));
    EXPECT_TRUE(line.settings.has_value()) << line.text;
    return line.settings.value_or(Settings{});
  }
  static void ExpectRefused(const CommandLine& line, const std::string& text) {
    EXPECT_FALSE(line.settings.has_value());
    EXPECT_EQ(line.exit_code, ExitCode::kUsage);
    EXPECT_THAT(line.text, HasSubstr(text));
  }

  TempDir home_;
};

TEST_F(SettingsTest, MissingDefaultFileMeansTheDefaults) {
  const Settings settings = Accepted({});
  EXPECT_EQ(settings.config_path, "");
  EXPECT_EQ(settings.config.http_server_port, 13333);
  EXPECT_EQ(settings.config.data_dir, home_.Path(".mooncake/conductor"));
}

TEST_F(SettingsTest, DefaultFileIsReadWhenItIsThere) {
  std::filesystem::create_directories(home_.Path(".mooncake"));
  home_.Write(".mooncake/conductor_config.json", R"({"http_server_port": 1234})");
  EXPECT_EQ(Accepted({}).config.http_server_port, 1234);
}

TEST_F(SettingsTest, InvalidDefaultFileIsAnError) {
  std::filesystem::create_directories(home_.Path(".mooncake"));
  home_.Write(".mooncake/conductor_config.json", "{");
  ExpectRefused(Read({}), ".mooncake/conductor_config.json: not JSON");
}

TEST_F(SettingsTest, FileOfTheEnvironmentIsRead) {
  setenv("CONDUCTOR_CONFIG_PATH", home_.Write("c.json", R"({"rpc_server_port": 1})").c_str(), 1);
  EXPECT_EQ(Accepted({}).config.rpc_server_port, 1);
}

TEST_F(SettingsTest, CommandLineWinsOverTheEnvironmentsFile) {
  setenv("CONDUCTOR_CONFIG_PATH", "/does/not/exist", 1);
  const std::string path = home_.Write("c.json", R"({"rpc_server_port": 2})");
  EXPECT_EQ(Accepted({"--config", path.c_str()}).config.rpc_server_port, 2);
}

TEST_F(SettingsTest, NamedFileThatIsMissingIsAnError) {
  setenv("CONDUCTOR_CONFIG_PATH", "/does/not/exist.json", 1);
  ExpectRefused(Read({}), "config /does/not/exist.json: cannot be read: No such file");
}

TEST_F(SettingsTest, DirectoryAsFileIsAnError) {
  ExpectRefused(Read({"--config", home_.path().c_str()}), "cannot be read: Is a directory");
}

TEST_F(SettingsTest, InvalidFileNamesFileFieldAndReason) {
  const std::string path = home_.Write("c.json", R"({"http_server_port": 70000})");
  ExpectRefused(Read({"--config", path.c_str()}),
                "config " + path + ": http_server_port: expected an integer 0..65535, got 70000");
}

TEST_F(SettingsTest, DataDirOfTheFileWithHomeExpanded) {
  const std::string path = home_.Write("c.json", R"({"data_dir": "~/d"})");
  EXPECT_EQ(Accepted({"--config", path.c_str()}).config.data_dir, home_.Path("d"));
}

TEST_F(SettingsTest, DataDirOfTheEnvironmentWinsOverTheFile) {
  setenv("CONDUCTOR_DATA_DIR", "/e", 1);
  const std::string path = home_.Write("c.json", R"({"data_dir": "/f"})");
  EXPECT_EQ(Accepted({"--config", path.c_str()}).config.data_dir, "/e");
}

TEST_F(SettingsTest, DataDirOfTheCommandLineWinsOverAll) {
  setenv("CONDUCTOR_DATA_DIR", "/e", 1);
  EXPECT_EQ(Accepted({"--data-dir", "/c"}).config.data_dir, "/c");
}

TEST_F(SettingsTest, NoHomeIsAnErrorOnlyWhereItIsNeeded) {
  unsetenv("HOME");
  ExpectRefused(Read({}), "HOME is not set");
  EXPECT_EQ(Accepted({"--data-dir", "/c"}).config.data_dir, "/c");
}

TEST_F(SettingsTest, LogLevelsOfAnyCaseAreAccepted) {
  setenv("CONDUCTOR_LOG_LEVEL", "warn", 1);
  EXPECT_EQ(Accepted({}).log_level, LogLevel::kWarn);
  setenv("CONDUCTOR_LOG_LEVEL", "Error", 1);
  EXPECT_EQ(Accepted({}).log_level, LogLevel::kError);
  EXPECT_EQ(Accepted({"--log-level", "DEBUG"}).log_level, LogLevel::kDebug);
}

TEST_F(SettingsTest, UnknownLogLevelIsAnError) {
  setenv("CONDUCTOR_LOG_LEVEL", "WARNING", 1);
  ExpectRefused(Read({}), "CONDUCTOR_LOG_LEVEL: expected DEBUG, INFO, WARN or ERROR, got WARNING");
}

TEST_F(SettingsTest, UnknownFlagIsAnError) {
  ExpectRefused(Read({"--port", "1"}), "--port");
}

TEST_F(SettingsTest, HelpShowsExamplesAndEnds) {
  const CommandLine line = Read({"--help"});
  EXPECT_EQ(line.exit_code, ExitCode::kOk);
  EXPECT_FALSE(line.settings.has_value());
  EXPECT_THAT(line.text, HasSubstr("CONDUCTOR_CONFIG_PATH=conductor.json"));
  EXPECT_THAT(line.text, HasSubstr("snapshot_interval_s 900"));
}

TEST_F(SettingsTest, VersionEnds) {
  const CommandLine line = Read({"--version"});
  EXPECT_EQ(line.exit_code, ExitCode::kOk);
  EXPECT_THAT(line.text, HasSubstr("mooncake_conductor "));
}

TEST(FailureExitCodeTest, WhatPassesIsOneAndWhatNeedsSomebodyIsNot) {
  const auto code_of = [](ErrorCode code) { return FailureExitCode(Error{code, "", "", "", -1}); };
  EXPECT_EQ(code_of(ErrorCode::kResourceExhausted), ExitCode::kNo) << "a full disk";
  EXPECT_EQ(code_of(ErrorCode::kUnavailable), ExitCode::kNo) << "a disk that fails";
  EXPECT_EQ(code_of(ErrorCode::kDataLoss), ExitCode::kDamaged);
  for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kFailedPrecondition,
                               ErrorCode::kPermissionDenied, ErrorCode::kNotFound}) {
    EXPECT_EQ(code_of(code), ExitCode::kUsage);
  }
  EXPECT_EQ(DiskErrorCode(ENOSPC), ErrorCode::kResourceExhausted);
  EXPECT_EQ(DiskErrorCode(EIO), ErrorCode::kUnavailable);
  EXPECT_EQ(DiskErrorCode(EACCES), ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace conductor::cli
