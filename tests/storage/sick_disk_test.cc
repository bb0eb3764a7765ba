// A disk that fails at any one write or sync: the error is a Result that says what and why; when
// the disk is well again the log goes on without a restart, and nothing acknowledged is lost. Every
// place of a scripted life is tried (scripted_life.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "storage/log_format.h"
#include "storage/synced_mark.h"
#include "tests/storage/scripted_life.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;
using Fault = FaultFs::Fault;

// Living once more after each place costs most of the time and tells little.
constexpr int kWholeLifeEvery = 8;

struct Sickness {
  const char* name;
  Fault fault;
  const char* words;
  ErrorCode code;
};

class SickDiskTest : public ::testing::TestWithParam<Sickness> {
 protected:
  // False: the life has no n-th operation that could fail.
  static bool TryAt(int n) {
    ScriptedLife life;
    life.fs().FailAt(GetParam().fault, n);
    const Status run = life.Run();
    const std::string hit = life.fs().Hit();
    if (hit.empty()) {
      EXPECT_TRUE(run) << run.error().message;
      return false;
    }
    SCOPED_TRACE("fault " + std::to_string(n) + " at " + hit);
    if (run) {
      EXPECT_THAT(life.warnings(), HasSubstr(GetParam().words));
    } else {
      ExpectNamed(run.error(), life.data_dir());
    }
    life.fs().Heal();
    const Status recovered = life.Recover();
    EXPECT_TRUE(recovered) << recovered.error().message;
    EXPECT_EQ(life.Broken(), "");
    if (n % kWholeLifeEvery == 0) {
      const Status second = life.Run();
      EXPECT_TRUE(second) << second.error().message;
    }
    ExpectDurable(life);
    return true;
  }
  static void ExpectNamed(const Error& error, const std::string& data_dir) {
    EXPECT_EQ(error.code, GetParam().code) << error.message;
    EXPECT_THAT(error.message, HasSubstr(GetParam().words));
    EXPECT_THAT(error.message, HasSubstr(data_dir));
  }
  // What was acknowledged is on the disk, not only in the kernel.
  static void ExpectDurable(ScriptedLife& life) {
    life.fs().CutPower();
    life.Stop();
    life.fs().RestorePower();
    const Status started = life.Start();
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_EQ(life.Broken(), "");
  }
};

TEST_P(SickDiskTest, AnywhereItIsNamedAndTheLogGoesOnWhenItIsWell) {
  const int places = TryEverywhere(TryAt);
  std::printf("%s: %d places\n", GetParam().name, places);
  EXPECT_GT(places, 10);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, SickDiskTest,
    ::testing::Values(
        Sickness{"Full", Fault::kNoSpace, "No space left on device", ErrorCode::kResourceExhausted},
        Sickness{"FullInsideAWrite", Fault::kShortWrite, "No space left on device",
                 ErrorCode::kResourceExhausted},
        Sickness{"WriteError", Fault::kIoError, "Input/output error", ErrorCode::kUnavailable},
        Sickness{"SyncError", Fault::kSyncFailure, "Input/output error", ErrorCode::kUnavailable}),
    [](const auto& info) { return info.param.name; });

// The mark is not RocksDB's file: a device that is always full stands in its place.
TEST(SickMarkTest, FullDiskUnderTheMarkLosesTheMarkOnly) {
  const TempDir dir;
  ASSERT_TRUE(std::filesystem::create_directory(dir.data_dir()));
  std::filesystem::create_symlink("/dev/full", dir.data_dir() + "/" + kSyncedFile);
  const Record record{{Lost{1, 1, 1}}};
  {
    const auto log = RocksDbEventLog::Open({.data_dir = dir.data_dir()});
    ASSERT_TRUE(log) << log.error().message;
    ASSERT_TRUE((*log)->Append(std::vector<Record>{record}, Durability::kSynced));
    EXPECT_TRUE((*log)->DropBelow(2));
  }
  EXPECT_EQ(SyncedMark::Read(dir.data_dir()), std::nullopt);
  const auto log = RocksDbEventLog::Open({.data_dir = dir.data_dir()});
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ((*log)->LastSeq(), 1u);
}

}  // namespace
}  // namespace conductor::storage
