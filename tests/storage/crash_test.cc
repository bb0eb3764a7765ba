// A real process, killed with SIGKILL while it appends; and two processes on one data directory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "storage/rocksdb_event_log.h"
#include "tests/storage/random_record.h"
#include "tests/storage/record_text.h"
#include "tests/storage/temp_dir.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;

// append_forever as a child whose output we read.
class Appender {
 public:
  explicit Appender(const std::string& data_dir) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = APPEND_FOREVER;
    std::string argument = data_dir;
    char* arguments[] = {program.data(), argument.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  ~Appender() {
    if (pid_ != 0) Kill();
    std::fclose(output_);
  }

  // Blocks until the child says that the next record is appended; 0: it ended.
  Seq NextAcknowledged() {
    char line[64];
    if (std::fgets(line, sizeof line, output_) == nullptr) return 0;
    return std::strtoull(line, nullptr, 10);
  }
  // Returns the last acknowledged position, `seen` if no further one is in the pipe.
  Seq KillAndDrain(Seq seen) {
    Kill();
    while (const Seq seq = NextAcknowledged()) seen = seq;
    return seen;
  }
  pid_t pid() const { return pid_; }

 private:
  void Kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
  }
  pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
};

TEST(CrashTest, KilledProcessLosesNothingItAcknowledged) {
  RandomRecords random(TestSeed());
  const TempDir dir;
  Seq last = 0;
  for (int round = 0; round < 10; ++round) {
    Appender appender(dir.data_dir());
    Seq acknowledged = 0;
    for (std::uint64_t count = 1 + random.Below(300); count > 0; --count) {
      acknowledged = appender.NextAcknowledged();
      ASSERT_NE(acknowledged, 0u) << "round " << round;
    }
    acknowledged = appender.KillAndDrain(acknowledged);
    const auto log = RocksDbEventLog::Open({.data_dir = dir.data_dir()});
    ASSERT_TRUE(log) << "round " << round << ": " << log.error().message;
    // One record may have been written whose acknowledgement was not.
    EXPECT_GE((*log)->LastSeq(), acknowledged);
    EXPECT_LE((*log)->LastSeq(), acknowledged + 1);
    EXPECT_GT((*log)->LastSeq(), last);
    last = (*log)->LastSeq();
    const Status read = (*log)->Read(1, last, [](Seq seq, const Record& record) -> Status {
      EXPECT_EQ(RecordText(record), RecordText({{Lost{1, seq, seq}}}));
      return {};
    });
    ASSERT_TRUE(read) << read.error().message;
  }
}

TEST(CrashTest, SecondProcessIsToldWhoHasTheDirectory) {
  const TempDir dir;
  Appender appender(dir.data_dir());
  ASSERT_NE(appender.NextAcknowledged(), 0u);
  const auto log = RocksDbEventLog::Open({.data_dir = dir.data_dir()});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(log.error().message,
            "data directory " + dir.data_dir() + " is in use by another conductor (pid " +
                std::to_string(appender.pid()) + "); stop that one, or choose another directory");
}

TEST(CrashTest, ReadOnlyOpensWhileAnotherProcessAppends) {
  const TempDir dir;
  Appender appender(dir.data_dir());
  for (int round = 0; round < 20; ++round) {
    const Seq acknowledged = appender.NextAcknowledged();
    ASSERT_NE(acknowledged, 0u);
    const auto log = RocksDbEventLog::Open({.data_dir = dir.data_dir(), .read_only = true});
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_GE((*log)->LastSeq(), acknowledged);
    EXPECT_EQ(LogTexts(**log).size(), (*log)->LastSeq());
  }
}

}  // namespace
}  // namespace conductor::storage
