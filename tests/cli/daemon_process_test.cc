// The real daemon as a process: how it starts, how it refuses to, how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "cli/ports_file.h"
#include "tests/cli/process_util.h"
#include "tests/no_more_bytes.h"

namespace conductor::cli {
namespace {

using testing::HasSubstr;

class DaemonTest : public testing::Test {
 protected:
  // Starts a daemon with this configuration text and waits for its end.
  Finished RunWith(const std::string& config) {
    return RunProgram(
        {DaemonProgram(), "--config", directory_.Write("c.json", config), "--data-dir", data_dir_});
  }
  static std::string Ports(std::uint16_t http, std::uint16_t rpc) {
    return R"({"http_server_port": )" + std::to_string(http) + R"(, "rpc_server_port": )" +
           std::to_string(rpc) + "}";
  }
  // `count` static publishers that nobody serves, on ports nobody listens on.
  static std::string Publishers(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const std::string id = std::to_string(i);
      text += (i == 0 ? "" : ",") + ("\"p" + id) + R"(": {"endpoint": "ipc:///nonexistent/)" + id +
              R"(", "type": "vLLM", "modelname": "m", "block_size": 4, "dp_rank": 0,
                 "instance_id": "i)" +
              id +
              R"(", "hash_profile": {"strategy": "vllm_v1", "algorithm": "sha256_cbor",
                 "python_hash_seed": "0", "index_projection": "low64_be"}})";
    }
    return R"("kvevent_instance": {)" + text + "}";
  }

  TempDir directory_;
  const std::string data_dir_ = directory_.Path("data");
};

TEST_F(DaemonTest, HelpAndVersionGoToStdout) {
  const Finished help = RunProgram({DaemonProgram(), "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("Examples:"));
  EXPECT_EQ(help.err, "");
  const Finished version = RunProgram({DaemonProgram(), "--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, HasSubstr("mooncake_conductor 0."));
}

TEST_F(DaemonTest, NamedConfigThatIsMissingIsTwo) {
  const Finished run =
      RunProgram({DaemonProgram()}, {{"CONDUCTOR_CONFIG_PATH", directory_.Path("none.json")}});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(directory_.Path("none.json")));
}

TEST_F(DaemonTest, InvalidConfigIsTwoAndStartsNothing) {
  const Finished run = RunWith(R"({"http_server_port": 0, "rpc_server_port": "0"})");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("rpc_server_port: expected an integer"));
  EXPECT_FALSE(std::filesystem::exists(data_dir_));
}

TEST_F(DaemonTest, MalformedPublisherIsTwoAndNamed) {
  const Finished run = RunWith(R"({"kvevent_instance": {"vllm-0": {"type": "vLLM"}}})");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("kvevent_instance.vllm-0.endpoint"));
}

TEST_F(DaemonTest, CheckConfigStartsNothing) {
  const std::string path = directory_.Write("c.json", "{}");
  const Finished run =
      RunProgram({DaemonProgram(), "--check-config", "--config", path, "--data-dir", data_dir_});
  EXPECT_EQ(run.code, 0);
  EXPECT_FALSE(std::filesystem::exists(data_dir_));
}

TEST_F(DaemonTest, DataDirThatCannotBeIsTwo) {
  directory_.Write("data", "a file");
  const Finished run = RunWith(Ports(0, 0));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(data_dir_));
}

TEST_F(DaemonTest, DataDirBelowAFileIsTwo) {
  const Finished run = RunProgram({DaemonProgram(), "--data-dir", "/dev/null/x/y"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("/dev/null/x"));
}

// The daemon inherits the limit, and so has no log either: its exit code is what is left.
TEST_F(DaemonTest, FullDiskIsOneAndItStartsWhenThereIsSpace) {
  const std::string config = directory_.Write("c.json", Ports(0, 0));
  const std::vector<std::string> start = {DaemonProgram(), "--config", config, "--data-dir",
                                          data_dir_};
  for (const char* directory : {"new", "used"}) {
    {
      const NoMoreBytes full;
      EXPECT_EQ(RunProgram(start).code, 1) << directory;
    }
    TestDaemon daemon(data_dir_);
    EXPECT_TRUE(daemon.WaitReady()) << directory << ": " << daemon.process().err();
  }
}

TEST_F(DaemonTest, StartRemovesTheCheckpointOfAKilledExport) {
  { EXPECT_TRUE(TestDaemon(data_dir_).WaitReady()); }
  const std::string left = data_dir_ + "/checkpoints/1-1";
  std::filesystem::create_directories(left);
  TestDaemon daemon(data_dir_);
  ASSERT_TRUE(daemon.WaitReady());
  EXPECT_FALSE(std::filesystem::exists(left));
  std::filesystem::create_directories(left);
  const Finished pruned = daemon.Ctl({"snapshot", "prune"});
  EXPECT_EQ(pruned.code, 0) << pruned.err;
  EXPECT_THAT(pruned.out, HasSubstr(left));
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(DaemonTest, HttpPortInUseIsTwo) {
  const OccupiedPort occupied;
  const Finished run = RunWith(Ports(occupied.port(), 0));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(std::to_string(occupied.port())));
  EXPECT_FALSE(std::filesystem::exists(data_dir_ + "/ports.json"));
}

TEST_F(DaemonTest, RpcPortInUseIsTwo) {
  const OccupiedPort occupied;
  const Finished run = RunWith(Ports(0, occupied.port()));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(std::to_string(occupied.port())));
  EXPECT_FALSE(std::filesystem::exists(data_dir_ + "/ports.json"));
}

TEST_F(DaemonTest, SecondDaemonOnADataDirIsTwoAndTheFirstGoesOn) {
  TestDaemon first(data_dir_);
  ASSERT_TRUE(first.WaitReady());
  const Finished second = RunWith(Ports(0, 0));
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("in use by another conductor"));
  EXPECT_EQ(HttpGet(first.http_port(), "/readyz"), 200);
  EXPECT_EQ(ReadPortsFile(data_dir_)->http_port, first.http_port());
}

TEST_F(DaemonTest, SigtermEndsItInGoodOrder) {
  TestDaemon daemon(data_dir_);
  ASSERT_TRUE(daemon.WaitReady());
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(kStopDeadline), 0) << daemon.process().err();
  EXPECT_THAT(daemon.process().err(), HasSubstr("event=stopped"));
  EXPECT_FALSE(std::filesystem::exists(data_dir_ + "/ports.json"));
}

TEST_F(DaemonTest, SigintEndsItToo) {
  TestDaemon daemon(data_dir_);
  ASSERT_TRUE(daemon.WaitListening());
  daemon.process().Signal(SIGINT);
  EXPECT_EQ(daemon.process().Wait(kStopDeadline), 0) << daemon.process().err();
}

TEST_F(DaemonTest, SigtermEndsManyStreamsInTime) {
  TestDaemon daemon(data_dir_, Publishers(500));
  ASSERT_TRUE(daemon.WaitListening());
  ASSERT_TRUE(WaitUntil([&] { return daemon.Status()["registrations"] == 500; }, kDeadline));
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(kStopDeadline), 0) << daemon.process().err();
}

TEST_F(DaemonTest, IdleConnectionsDoNotHoldUpTheStop) {
  TestDaemon daemon(data_dir_);
  ASSERT_TRUE(daemon.WaitListening());
  const SilentConnection http(daemon.http_port()), rpc(daemon.rpc_port());
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(kStopDeadline), 0) << daemon.process().err();
}

TEST_F(DaemonTest, StderrThatNobodyReadsStopsNothing) {
  const std::string fifo = directory_.Path("stderr");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDWR | O_CLOEXEC);  // never read
  ASSERT_GE(reader, 0);
  const std::string config = directory_.Write(
      "c.json", R"({"http_server_port": 0, "rpc_server_port": 0, )" + Publishers(600) + "}");
  Process daemon({"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>" + fifo, DaemonProgram(), "--config",
                  config, "--data-dir", data_dir_});
  ASSERT_TRUE(WaitUntil(
      [&] {
        const auto ports = ReadPortsFile(data_dir_);
        if (!ports) return false;
        const std::string address = "127.0.0.1:" + std::to_string(ports->rpc_port);
        const Finished status = RunCtlProgram({"--address", address, "-o", "json", "status"});
        return status.code == 0 && status.json()["registrations"] == 600;
      },
      kDeadline));
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(kStopDeadline), 0);
  close(reader);
}

TEST_F(DaemonTest, StatusShowsTheChosenPortsAndAnAbsoluteDataDir) {
  TestDaemon daemon(data_dir_);
  ASSERT_TRUE(daemon.WaitReady());
  const Json status = daemon.Status();
  EXPECT_EQ(status["http_port"], daemon.http_port());
  EXPECT_EQ(status["rpc_port"], daemon.rpc_port());
  EXPECT_EQ(status["data_dir"], data_dir_);
  EXPECT_EQ(status["phase"], "ready");
}

TEST_F(DaemonTest, LogLevelOfTheEnvironmentIsUsed) {
  const Finished run = RunProgram({DaemonProgram(), "--data-dir", "/dev/null/x"},
                                  {{"CONDUCTOR_LOG_LEVEL", "error"}});
  EXPECT_THAT(run.err, HasSubstr("level=error event=start_failed"));
  EXPECT_THAT(run.err, testing::Not(HasSubstr("level=info")));
}

TEST_F(DaemonTest, DamagedDataIsFour) {
  {
    TestDaemon daemon(data_dir_);
    ASSERT_TRUE(daemon.WaitReady());
    daemon.process().Signal(SIGTERM);
    ASSERT_EQ(daemon.process().Wait(), 0);
  }
  std::filesystem::remove(data_dir_ + "/CURRENT");
  const Finished run = RunWith(Ports(0, 0));
  EXPECT_EQ(run.code, 4) << run.err;
  EXPECT_EQ(RunCtlProgram({"--data-dir", data_dir_, "verify"}).code, 4);
}

TEST_F(DaemonTest, StaticPublishersFollowTheFile) {
  {
    TestDaemon daemon(data_dir_, Publishers(3));
    ASSERT_TRUE(daemon.WaitListening());
    ASSERT_TRUE(WaitUntil([&] { return daemon.Status()["registrations"] == 3; }, kDeadline));
    daemon.process().Signal(SIGTERM);
    ASSERT_EQ(daemon.process().Wait(), 0);
  }
  TestDaemon daemon(data_dir_, Publishers(2));
  ASSERT_TRUE(daemon.WaitListening());
  EXPECT_TRUE(WaitUntil([&] { return daemon.Status()["registrations"] == 2; }, kDeadline));
}

}  // namespace
}  // namespace conductor::cli
