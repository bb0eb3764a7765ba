// Reading: holes and damaged records are named with their position. Checkpoints are whole logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "storage/log_format.h"
#include "storage/record_codec.h"
#include "storage/rocksdb_event_log.h"
#include "tests/storage/golden_records.h"
#include "tests/storage/record_text.h"
#include "tests/storage/temp_dir.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;

class ReadTest : public ::testing::Test {
 protected:
  std::unique_ptr<RocksDbEventLog> Open(const std::string& path) {
    auto log = RocksDbEventLog::Open({.data_dir = path});
    EXPECT_TRUE(log) << log.error().message;
    return log ? std::move(*log) : nullptr;
  }
  // Puts `value` at `seq` behind the log's back; an empty one removes the record.
  void Change(Seq seq, const std::string& value) {
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const char* family : {"default", kLogFamily, kMetaFamily}) {
      descriptors.emplace_back(family, rocksdb::ColumnFamilyOptions());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, dir_.data_dir(), descriptors, &handles, &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    const auto bytes = EncodeSeqKey(seq);
    const rocksdb::Slice key(bytes.data(), bytes.size());
    const rocksdb::Status changed =
        value.empty() ? db->Delete({}, handles[1], key) : db->Put({}, handles[1], key, value);
    EXPECT_TRUE(changed.ok()) << changed.ToString();
    for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
  }
  void MakeLog() {
    ASSERT_TRUE(Open(dir_.data_dir())->Append(GoldenRecordsV1(), Durability::kSynced));
  }
  Status ReadAll() {
    const auto log = Open(dir_.data_dir());
    return log->Read(1, log->LastSeq(), [](Seq, const Record&) -> Status { return {}; });
  }

  TempDir dir_;
};

TEST_F(ReadTest, HoleIsNamed) {
  MakeLog();
  Change(5, "");
  const Status read = ReadAll();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(read.error().message, HasSubstr("record 5 is missing, found record 6"));
}

TEST_F(ReadTest, MissingFirstRecordIsAHole) {
  MakeLog();
  Change(1, "");
  const Status read = ReadAll();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(read.error().message, HasSubstr("record 1 is missing, found record 2"));
}

TEST_F(ReadTest, RecordOfANewerFormatIsNamed) {
  MakeLog();
  std::string value = *EncodeRecord(WorkedExample());
  value[1] = 3;
  Change(7, value);
  const Status read = ReadAll();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(read.error().message, HasSubstr(": record 7: format version 3, this build reads 1"));
}

TEST_F(ReadTest, DamagedRecordIsNamed) {
  MakeLog();
  std::string value = *EncodeRecord(WorkedExample());
  value.back() = static_cast<char>(value.back() ^ 1);
  Change(8, value);
  const Status read = ReadAll();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(read.error().message, HasSubstr(": record 8: body checksum "));
}

TEST_F(ReadTest, RecordTheFormatCannotHoldIsRefusedAndTheLogGoesOn) {
  const auto log = Open(dir_.data_dir());
  const std::vector<Record> records = {WorkedExample(), {{Lost{1, 2, 1}}}};
  const auto append = log->Append(records, Durability::kBuffered);
  ASSERT_FALSE(append);
  EXPECT_EQ(append.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(append.error().message, HasSubstr("record 2: fact 0 (lost)"));
  EXPECT_EQ(log->LastSeq(), 0u);
  const auto last = log->Append(GoldenRecordsV1(), Durability::kBuffered);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(LogTexts(*log), RecordTexts(GoldenRecordsV1()));
}

TEST_F(ReadTest, CheckpointCanBeOpenedAsADataDirectory) {
  const auto log = Open(dir_.data_dir());
  ASSERT_TRUE(log->Append(GoldenRecordsV1(), Durability::kBuffered));
  const auto info = log->CreateCheckpoint();
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->seq, GoldenRecordsV1().size());
  EXPECT_THAT(info->path, testing::StartsWith(dir_.data_dir() + "/checkpoints/13-"));
  EXPECT_GT(info->bytes, 0u);
  ASSERT_TRUE(log->Append({}, Durability::kSynced));
  const auto copy = Open(info->path);
  EXPECT_EQ(LogTexts(*copy), RecordTexts(GoldenRecordsV1()));
  const auto last = copy->Append(GoldenRecordsV1(), Durability::kSynced);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(log->LastSeq(), GoldenRecordsV1().size());
}

TEST_F(ReadTest, ACheckpointIsNoReasonForWarnings) {
  std::vector<std::string> warnings;
  std::mutex mutex;
  RocksDbEventLogOptions options;
  options.data_dir = dir_.data_dir();
  options.on_warning = [&](std::string_view line) {
    const std::lock_guard<std::mutex> lock(mutex);
    warnings.emplace_back(line);
  };
  const auto log = RocksDbEventLog::Open(options);
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_TRUE((*log)->CreateCheckpoint());
  const std::lock_guard<std::mutex> lock(mutex);
  EXPECT_THAT(warnings, testing::IsEmpty());
}

TEST_F(ReadTest, CheckpointsAreListedInOrder) {
  const auto log = Open(dir_.data_dir());
  EXPECT_TRUE(log->ListCheckpoints()->empty());
  const std::vector<Record> one = {WorkedExample()};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(log->Append(one, Durability::kBuffered));
    if (i % 3 != 0) continue;
    ASSERT_TRUE(log->CreateCheckpoint());
    ASSERT_TRUE(log->CreateCheckpoint()) << "of the same position";
  }
  std::filesystem::create_directory(dir_.data_dir() + "/checkpoints/growing.tmp");
  const auto list = log->ListCheckpoints();
  ASSERT_TRUE(list);
  std::vector<Seq> positions;
  for (const SnapshotInfo& info : *list) positions.push_back(info.seq);
  EXPECT_EQ(positions, (std::vector<Seq>{1, 1, 4, 4, 7, 7, 10, 10}));
}

TEST_F(ReadTest, CheckpointWhileAppendingIsAPrefix) {
  const auto log = Open(dir_.data_dir());
  std::atomic<bool> done{false};
  std::atomic<int> failures{0};
  std::thread appender([&] {
    while (!done.load()) {
      const Seq next = log->LastSeq() + 1;
      const Record record{{Lost{1, next, next}}};
      if (!log->Append({&record, 1}, Durability::kBuffered)) ++failures;
    }
  });
  for (int i = 0; i < 5; ++i) {
    const auto info = log->CreateCheckpoint();
    ASSERT_TRUE(info) << info.error().message;
    const auto copy = Open(info->path);
    EXPECT_EQ(copy->LastSeq(), info->seq);
    EXPECT_EQ(LogTexts(*copy).size(), info->seq);
  }
  done.store(true);
  appender.join();
  EXPECT_EQ(failures.load(), 0);
}

}  // namespace
}  // namespace conductor::storage
