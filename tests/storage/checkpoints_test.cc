// Checkpoints that nobody removed, two at once, and what can be removed on a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "storage/rocksdb_event_log.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/image_text.h"
#include "tests/storage/temp_dir.h"
#include "tests/storage/test_image.h"

namespace conductor::storage {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointsTest : public ::testing::Test {
 protected:
  CheckpointsTest() { log_ = MustOpen({}); }

  Result<std::unique_ptr<RocksDbEventLog>> Open(RocksDbEventLogOptions options) {
    options.data_dir = dir_.data_dir();
    options.env = env_.get();
    return RocksDbEventLog::Open(std::move(options));
  }
  std::unique_ptr<RocksDbEventLog> MustOpen(RocksDbEventLogOptions options) {
    auto log = Open(std::move(options));
    EXPECT_TRUE(log) << log.error().message;
    return log ? *std::move(log) : nullptr;
  }
  void AppendTo(Seq last) {
    while (log_->LastSeq() < last) {
      const Seq seq = log_->LastSeq() + 1;
      ASSERT_TRUE(log_->Append(std::vector<Record>{{{Lost{1, seq, seq}}}}, Durability::kSynced));
    }
  }
  std::string MustCheckpoint() {
    const auto checkpoint = log_->CreateCheckpoint();
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    return checkpoint ? checkpoint->path : "";
  }
  void MustSnapshot(Seq seq) {
    AppendTo(seq);
    const auto encoder = log_->NewEncoder();
    auto file = log_->CreateImage(seq);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(SmallImage(seq).Play(*encoder));
    ASSERT_TRUE((*file)->Append(encoder->Take()));
    const auto finished = (*file)->Finish();
    ASSERT_TRUE(finished) << finished.error().message;
  }
  std::string Path(const std::string& name) const {
    return dir_.data_dir() + "/checkpoints/" + name;
  }
  // A checkpoint of position 3 as one that was made so long ago.
  std::string MustAge(const std::string& checkpoint, std::chrono::minutes age) {
    using std::chrono::microseconds;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto made = std::chrono::duration_cast<microseconds>(now - age).count();
    const std::string aged = Path("3-" + std::to_string(made));
    fs::rename(checkpoint, aged);
    return aged;
  }
  std::vector<std::string> NamesLeft() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(dir_.data_dir() + "/checkpoints", none)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  static std::vector<std::string> PathsOf(const Result<std::vector<SnapshotInfo>>& list) {
    EXPECT_TRUE(list) << list.error().message;
    std::vector<std::string> paths;
    for (const SnapshotInfo& info : *list) paths.push_back(info.path);
    return paths;
  }

  const TempDir dir_;
  const std::shared_ptr<FaultFs> fault_fs_ = std::make_shared<FaultFs>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeFaultEnv(fault_fs_);
  std::unique_ptr<RocksDbEventLog> log_;
};

TEST_F(CheckpointsTest, TwoOfOnePositionAreTwoCopies) {
  AppendTo(3);
  const std::string first = MustCheckpoint(), second = MustCheckpoint();
  EXPECT_NE(first, second);
  EXPECT_THAT(first, HasSubstr("/checkpoints/3-"));
  EXPECT_THAT(PathsOf(log_->ListCheckpoints()), ElementsAre(first, second));
  ASSERT_TRUE(log_->RemoveCheckpoint(first));
  const auto copy = RocksDbEventLog::Open({.data_dir = second});
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ((*copy)->LastSeq(), 3u);
}

TEST_F(CheckpointsTest, ANameIsNotGivenAgainWhenItsCheckpointIsGone) {
  AppendTo(3);
  const std::string first = MustCheckpoint();
  ASSERT_TRUE(log_->RemoveCheckpoint(first));
  EXPECT_NE(MustCheckpoint(), first);
  EXPECT_EQ(log_->RemoveCheckpoint(first).error().code, ErrorCode::kNotFound);
}

TEST_F(CheckpointsTest, StartRemovesWhatAKilledExportLeft) {
  AppendTo(3);
  const std::string left = MustCheckpoint();
  log_.reset();
  EXPECT_NE(MustOpen({.read_only = true}), nullptr);
  EXPECT_TRUE(fs::exists(left)) << "who only reads leaves no trace";
  log_ = MustOpen({});
  EXPECT_THAT(NamesLeft(), IsEmpty());
  EXPECT_EQ(log_->LastSeq(), 3u);
}

TEST_F(CheckpointsTest, StartRemovesThoseOfEarlierReleases) {
  AppendTo(3);
  fs::rename(MustCheckpoint(), Path("3"));
  EXPECT_THAT(PathsOf(log_->ListCheckpoints()), ElementsAre(Path("3")));
  log_.reset();
  log_ = MustOpen({});
  EXPECT_THAT(NamesLeft(), IsEmpty());
}

TEST_F(CheckpointsTest, ReopeningAfterADiskFailureKeepsThem) {
  AppendTo(3);
  const std::string copied_now = MustCheckpoint();
  ASSERT_TRUE(log_->Reopen());
  EXPECT_THAT(PathsOf(log_->ListCheckpoints()), ElementsAre(copied_now));
}

TEST_F(CheckpointsTest, OldIsWhatIsOlderThanAnHour) {
  AppendTo(3);
  const std::string old = MustAge(MustCheckpoint(), std::chrono::minutes(61));
  const std::string recent = MustAge(MustCheckpoint(), std::chrono::minutes(59));
  const std::string now = MustCheckpoint();
  EXPECT_THAT(PathsOf(log_->RemoveOldCheckpoints()), ElementsAre(old));
  EXPECT_THAT(PathsOf(log_->ListCheckpoints()), ElementsAre(recent, now));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_THAT(PathsOf(log_->RemoveOldCheckpoints()), IsEmpty());
}

TEST_F(CheckpointsTest, OtherNamesAreNoCheckpoints) {
  AppendTo(3);
  const std::string checkpoint = MustCheckpoint();
  for (const char* name : {"3-", "3-x", "-3", "3-1-1", "x", "3 1"}) {
    fs::create_directory(Path(name));
  }
  EXPECT_THAT(PathsOf(log_->ListCheckpoints()), ElementsAre(checkpoint));
  EXPECT_THAT(PathsOf(log_->RemoveOldCheckpoints()), IsEmpty());
  EXPECT_EQ(log_->RemoveCheckpoint(Path("3-x")).error().code, ErrorCode::kNotFound);
}

TEST_F(CheckpointsTest, NoHalfOfOneStaysOnAFullDisk) {
  int failed = 0;
  for (int n = 0;; ++n) {
    AppendTo(log_->LastSeq() + 1);
    fault_fs_->FailAt(FaultFs::Fault::kNoSpace, n);
    const auto checkpoint = log_->CreateCheckpoint();
    fault_fs_->Heal();
    if (checkpoint) break;
    EXPECT_EQ(checkpoint.error().code, ErrorCode::kResourceExhausted) << checkpoint.error().message;
    EXPECT_THAT(NamesLeft(), IsEmpty()) << "fault " << n;
    ASSERT_TRUE(log_->Reopen());
    ++failed;
  }
  EXPECT_GT(failed, 3);
}

TEST_F(CheckpointsTest, RemovingWorksOnAFullDiskAndWritesNothing) {
  MustSnapshot(2);
  MustSnapshot(3);
  const std::string old = MustAge(MustCheckpoint(), std::chrono::minutes(61));
  log_.reset();
  fault_fs_->FailAt(FaultFs::Fault::kNoSpace, 0);
  {
    const auto log = MustOpen({.read_only = true, .may_remove = true});
    ASSERT_NE(log, nullptr);
    EXPECT_TRUE(log->RemoveSnapshot(2));
    EXPECT_THAT(PathsOf(log->RemoveOldCheckpoints()), ElementsAre(old));
    EXPECT_EQ(log->ListSnapshots()->size(), 1u);
    EXPECT_FALSE(log->Append(std::vector<Record>{{{Lost{1, 1, 1}}}}, Durability::kBuffered));
    EXPECT_FALSE(log->CreateCheckpoint());
    EXPECT_FALSE(log->CreateImage(3));
  }
  EXPECT_EQ(fault_fs_->Hit(), "") << "a write was tried";
  const auto writer = Open({});
  ASSERT_FALSE(writer) << "the disk is full";
  EXPECT_EQ(writer.error().code, ErrorCode::kResourceExhausted) << writer.error().message;
  fault_fs_->Heal();
  log_ = MustOpen({});
  EXPECT_EQ(log_->LastSeq(), 3u);
}

TEST_F(CheckpointsTest, WhoMayRemoveIsTheOnlyOwner) {
  MustSnapshot(2);
  const auto second = Open({.read_only = true, .may_remove = true});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("in use by another conductor"));
  log_.reset();
  const auto owner = MustOpen({.read_only = true, .may_remove = true});
  ASSERT_FALSE(Open({}));
  const auto reader = MustOpen({.read_only = true});
  EXPECT_EQ(reader->RemoveSnapshot(2).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(reader->RemoveOldCheckpoints().error().code, ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(owner->RemoveSnapshot(2));
}

}  // namespace
}  // namespace conductor::storage
