// Opening a data directory: whose it is, what it is, and what to say when it is not what we need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "storage/data_directory.h"
#include "storage/log_format.h"
#include "storage/rocksdb_event_log.h"
#include "tests/no_more_bytes.h"
#include "tests/storage/golden_records.h"
#include "tests/storage/record_text.h"
#include "tests/storage/temp_dir.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;
using OpenedLog = Result<std::unique_ptr<RocksDbEventLog>>;

class OpenTest : public ::testing::Test {
 protected:
  std::string data_dir() const { return dir_.data_dir(); }

  std::unique_ptr<RocksDbEventLog> MustOpen() {
    OpenedLog log = RocksDbEventLog::Open({.data_dir = data_dir()});
    EXPECT_TRUE(log) << log.error().message;
    return log ? std::move(*log) : nullptr;
  }
  void MakeLog() {
    const auto log = MustOpen();
    ASSERT_TRUE(log->Append(GoldenRecordsV1(), Durability::kSynced));
  }
  static void ExpectRefused(const OpenedLog& log, ErrorCode code, const std::string& words) {
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().code, code) << log.error().message;
    EXPECT_THAT(log.error().message, HasSubstr(words));
  }
  // Opens the database with RocksDB alone and lets `change` work on it.
  template <typename Change>
  void WithRocksDb(const std::vector<std::string>& families, const Change& change) {
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const std::string& family : families) {
      descriptors.emplace_back(family, rocksdb::ColumnFamilyOptions());
    }
    rocksdb::DBOptions options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* raw = nullptr;
    const rocksdb::Status opened =
        rocksdb::DB::Open(options, data_dir(), descriptors, &handles, &raw);
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    const std::unique_ptr<rocksdb::DB> db(raw);
    change(db.get(), handles);
    for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
  }

  TempDir dir_;
};

TEST_F(OpenTest, CreatesAnEmptyLogAndSaysSo) {
  const auto log = MustOpen();
  EXPECT_EQ(log->LastSeq(), 0u);
  EXPECT_TRUE(log->GetRecoveryReport().created);
}

TEST_F(OpenTest, FindsEveryRecordAgain) {
  MakeLog();
  const auto log = MustOpen();
  EXPECT_EQ(LogTexts(*log), RecordTexts(GoldenRecordsV1()));
  const RecoveryReport report = log->GetRecoveryReport();
  EXPECT_FALSE(report.created);
  EXPECT_EQ(report.last, GoldenRecordsV1().size());
  EXPECT_EQ(report.dropped_bytes, 0u);
  EXPECT_THAT(ToLine(report), HasSubstr("log recovered first=1 last=13 "));
}

TEST_F(OpenTest, LeavesNoInfoLogBehind) {
  MakeLog();
  EXPECT_FALSE(std::filesystem::exists(data_dir() + "/LOG"));
}

TEST_F(OpenTest, SecondOwnerIsRefusedAndTheFirstIsNamed) {
  const auto first = MustOpen();
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kFailedPrecondition,
                "data directory " + data_dir() + " is in use by another conductor (pid " +
                    std::to_string(::getpid()) + ")");
}

TEST_F(OpenTest, DirectoryIsFreeAgainWhenTheOwnerIsGone) {
  MustOpen();
  EXPECT_NE(MustOpen(), nullptr);
}

TEST_F(OpenTest, TheLockIsHadWhenThePidCannotBeWritten) {
  MakeLog();
  const NoMoreBytes full;
  const auto lock = OwnerLock::Acquire(data_dir());
  ASSERT_TRUE(lock) << lock.error().message;
  const auto second = OwnerLock::Acquire(data_dir());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(second.error().message, HasSubstr("in use by another conductor (pid unknown)"));
}

TEST_F(OpenTest, PathOfAFileIsRefused) {
  std::ofstream(data_dir()) << "x";
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kFailedPrecondition,
                "a file is there, expected a directory");
}

TEST_F(OpenTest, MissingParentIsNamed) {
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir() + "/below"}),
                ErrorCode::kFailedPrecondition, "its parent " + data_dir() + " does not exist");
}

TEST_F(OpenTest, TrailingSlashIsTheSameDirectory) {
  auto log = RocksDbEventLog::Open({.data_dir = data_dir() + "/"});
  ASSERT_TRUE(log) << log.error().message;
}

TEST_F(OpenTest, EmptyPathIsRefused) {
  ExpectRefused(RocksDbEventLog::Open({.data_dir = ""}), ErrorCode::kInvalidArgument,
                "data directory: empty path");
}

TEST_F(OpenTest, UnwritableDirectoryIsNamed) {
  if (::geteuid() == 0) {
    // Root may write everywhere; a path that even root cannot create stands in.
    ExpectRefused(RocksDbEventLog::Open({.data_dir = "/proc/conductor"}), ErrorCode::kNotFound,
                  "data directory /proc/conductor could not be created");
    return;
  }
  ASSERT_EQ(::mkdir(data_dir().c_str(), 0555), 0);
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kPermissionDenied,
                "data directory " + data_dir() + " is not writable");
}

TEST_F(OpenTest, MissingLogIsNotCreatedUnasked) {
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir(), .create_if_missing = false}),
                ErrorCode::kNotFound, "data directory " + data_dir() + " does not exist");
  ASSERT_EQ(::mkdir(data_dir().c_str(), 0755), 0);
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir(), .create_if_missing = false}),
                ErrorCode::kNotFound, "data directory " + data_dir() + " holds no log");
  EXPECT_TRUE(std::filesystem::is_empty(data_dir()));
}

TEST_F(OpenTest, ForeignDatabaseIsRefusedAndLeftAsItIs) {
  WithRocksDb({"default"}, [](rocksdb::DB* db, const auto&) {
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), "their", "key").ok());
  });
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kFailedPrecondition,
                "a RocksDB database that is no conductor log (column families: default)");
  WithRocksDb({"default"}, [](rocksdb::DB* db, const auto&) {
    std::string value;
    EXPECT_TRUE(db->Get(rocksdb::ReadOptions(), "their", &value).ok());
  });
}

TEST_F(OpenTest, ForeignDatabaseWithOtherFamiliesIsRefused) {
  WithRocksDb({"default", "theirs"}, [](rocksdb::DB*, const auto&) {});
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kFailedPrecondition,
                "no conductor log (column families: default, theirs)");
}

TEST_F(OpenTest, UnfinishedCreationIsFinished) {
  WithRocksDb({"default", "log"}, [](rocksdb::DB*, const auto&) {});
  MakeLog();
  EXPECT_EQ(LogTexts(*MustOpen()), RecordTexts(GoldenRecordsV1()));
}

TEST_F(OpenTest, NewerFormatIsRefused) {
  MakeLog();
  WithRocksDb({"default", "log", "meta"}, [](rocksdb::DB* db, const auto& handles) {
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), handles[2], kFormatKey, "conductor log v2").ok());
  });
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kFailedPrecondition,
                "format 'conductor log v2', this build reads 'conductor log v1'");
}

TEST_F(OpenTest, NewerFormatWithMoreFamiliesIsRefusedAsNewer) {
  MakeLog();
  WithRocksDb({"default", "log", "meta", "more"}, [](rocksdb::DB* db, const auto& handles) {
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), handles[2], kFormatKey, "conductor log v7").ok());
  });
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kFailedPrecondition,
                "format 'conductor log v7'");
}

TEST_F(OpenTest, TablesWithoutTheirManifestAreDamage) {
  MakeLog();
  std::filesystem::remove(data_dir() + "/CURRENT");
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kDataLoss,
                "file CURRENT is missing, but ");
}

TEST_F(OpenTest, DamagedManifestIsDamage) {
  MakeLog();
  for (const auto& entry : std::filesystem::directory_iterator(data_dir())) {
    if (!entry.path().filename().string().starts_with("MANIFEST")) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
    file << "damage";
  }
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir()}), ErrorCode::kDataLoss,
                "data directory " + data_dir());
}

TEST_F(OpenTest, ReadOnlySeesWhatTheOwnerWrote) {
  const auto owner = MustOpen();
  ASSERT_TRUE(owner->Append(GoldenRecordsV1(), Durability::kBuffered));
  auto reader = RocksDbEventLog::Open({.data_dir = data_dir(), .read_only = true});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(LogTexts(**reader), RecordTexts(GoldenRecordsV1()));
  const auto again = owner->Append(GoldenRecordsV1(), Durability::kBuffered);
  ASSERT_TRUE(again) << again.error().message;
}

TEST_F(OpenTest, ReadOnlyRefusesToWriteAndLeavesNoTrace) {
  MakeLog();
  const auto names = [this] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(data_dir())) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  const std::vector<std::string> before = names();
  auto log = RocksDbEventLog::Open({.data_dir = data_dir(), .read_only = true});
  ASSERT_TRUE(log) << log.error().message;
  const auto append = (*log)->Append(GoldenRecordsV1(), Durability::kBuffered);
  ASSERT_FALSE(append);
  EXPECT_EQ(append.error().code, ErrorCode::kFailedPrecondition);
  ASSERT_FALSE((*log)->Sync());
  ASSERT_FALSE((*log)->CreateCheckpoint());
  log->reset();
  EXPECT_EQ(names(), before);
}

TEST_F(OpenTest, ReadOnlyOfAMissingLogIsNotFound) {
  ExpectRefused(RocksDbEventLog::Open({.data_dir = data_dir(), .read_only = true}),
                ErrorCode::kNotFound, "does not exist");
  EXPECT_FALSE(std::filesystem::exists(data_dir()));
}

}  // namespace
}  // namespace conductor::storage
