// The end of the newest write-ahead file, cut, padded and damaged. A torn end never keeps the log
// from opening; damage that hides records known to be on disk does, and says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "storage/rocksdb_event_log.h"
#include "tests/storage/record_text.h"
#include "tests/storage/temp_dir.h"
#include "tests/storage/warning_lines.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;
constexpr Seq kRecords = 50;

class TornWalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto log = Open();
    for (Seq seq = 1; seq <= kRecords; ++seq) {
      ASSERT_TRUE(log->Append(std::vector<Record>{Numbered(seq)}, Durability::kBuffered));
    }
  }
  static Record Numbered(Seq seq) { return {{Lost{1, seq, seq}}}; }
  Result<std::unique_ptr<RocksDbEventLog>> TryOpen() {
    return RocksDbEventLog::Open(
        {.data_dir = dir_.data_dir(), .on_warning = [this](auto line) { warnings_.Add(line); }});
  }
  std::unique_ptr<RocksDbEventLog> Open() {
    auto log = TryOpen();
    EXPECT_TRUE(log) << log.error().message;
    return log ? std::move(*log) : nullptr;
  }
  // So that the mark says what a daemon that syncs would have said.
  void SyncAll() { ASSERT_TRUE(Open()->Sync()); }
  void AppendSynced(Seq from, Seq to) {
    const auto log = Open();
    for (Seq seq = from; seq <= to; ++seq) {
      ASSERT_TRUE(log->Append(std::vector<Record>{Numbered(seq)}, Durability::kSynced));
    }
  }
  std::string NewestWal() const {
    std::string newest;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.data_dir())) {
      const std::string path = entry.path().string();
      if (path.ends_with(".log") && path > newest) newest = path;
    }
    return newest;
  }
  void Cut(std::uint64_t bytes) {
    const std::string wal = NewestWal();
    std::filesystem::resize_file(wal, std::filesystem::file_size(wal) - bytes);
  }
  void Pad(const std::string& bytes) {
    std::ofstream(NewestWal(), std::ios::binary | std::ios::app) << bytes;
  }
  void Overwrite(std::uint64_t offset, const std::string& bytes) {
    std::fstream file(NewestWal(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }
  void ExpectRecords(const EventLog& log, Seq last) {
    std::vector<Record> records;
    for (Seq seq = 1; seq <= last; ++seq) records.push_back(Numbered(seq));
    EXPECT_EQ(LogTexts(log), RecordTexts(records));
  }

  TempDir dir_;
  WarningLines warnings_;
};

TEST_F(TornWalTest, CutEndLosesTheLastRecordAndSaysHowMuch) {
  Cut(7);
  const auto log = Open();
  ExpectRecords(*log, kRecords - 1);
  const RecoveryReport report = log->GetRecoveryReport();
  EXPECT_EQ(report.wal_files, 1u);
  EXPECT_GT(report.dropped_bytes, 0u);
  ASSERT_EQ(report.drops.size(), 1u);
  EXPECT_THAT(ToLine(report), HasSubstr("log recovered first=1 last=49 wal_files=1 "));
  EXPECT_THAT(ToLine(report), HasSubstr("bytes: Corruption: "));
  EXPECT_THAT(warnings_.text(), HasSubstr("dropping"));
}

TEST_F(TornWalTest, EveryCutOfTheLastTwoRecordsOpens) {
  const std::string kept = dir_.path() + "/kept";
  std::filesystem::copy(dir_.data_dir(), kept, std::filesystem::copy_options::recursive);
  for (std::uint64_t bytes = 1; bytes < 80; ++bytes) {
    std::filesystem::remove_all(dir_.data_dir());
    std::filesystem::copy(kept, dir_.data_dir(), std::filesystem::copy_options::recursive);
    Cut(bytes);
    const auto log = Open();
    ASSERT_NE(log, nullptr) << bytes;
    EXPECT_LT(log->LastSeq(), kRecords) << bytes;
    EXPECT_GE(log->LastSeq(), kRecords - 3) << bytes;
    ExpectRecords(*log, log->LastSeq());
  }
}

TEST_F(TornWalTest, ZerosAfterTheEndLoseNothing) {
  Pad(std::string(4096, '\0'));
  ExpectRecords(*Open(), kRecords);
}

TEST_F(TornWalTest, CutEndWithZerosBehindItOpens) {
  Cut(7);
  Pad(std::string(4096, '\0'));
  ExpectRecords(*Open(), kRecords - 1);
}

TEST_F(TornWalTest, GarbageAfterTheEndLosesNothing) {
  Pad(std::string(1000, 'g'));
  ExpectRecords(*Open(), kRecords);
}

TEST_F(TornWalTest, LogGoesOnAfterATornEndAndStaysWhole) {
  Cut(7);
  {
    const auto log = Open();
    ASSERT_TRUE(log->Append(std::vector<Record>{Numbered(kRecords)}, Durability::kSynced));
  }
  const auto log = Open();
  ExpectRecords(*log, kRecords);
  EXPECT_EQ(log->GetRecoveryReport().dropped_bytes, 0u);
}

TEST_F(TornWalTest, CutThroughSyncedRecordsOpensAndCountsThem) {
  SyncAll();
  AppendSynced(kRecords + 1, kRecords + 9);
  Cut(7);
  const auto log = Open();
  ExpectRecords(*log, kRecords + 8);
  EXPECT_EQ(log->GetRecoveryReport().synced_records_missing, 1u);
  EXPECT_THAT(ToLine(log->GetRecoveryReport()), HasSubstr(" synced_records_missing=1"));
}

TEST_F(TornWalTest, ZeroedEndOfSyncedRecordsOpensAndCountsThem) {
  SyncAll();
  AppendSynced(kRecords + 1, kRecords + 9);
  Cut(7);
  Pad(std::string(4096, '\0'));
  const auto log = Open();
  ExpectRecords(*log, kRecords + 8);
  EXPECT_EQ(log->GetRecoveryReport().synced_records_missing, 1u);
}

TEST_F(TornWalTest, DamageBeforeUnsyncedRecordsOpens) {
  Overwrite(std::filesystem::file_size(NewestWal()) / 2, "damage");
  const auto log = Open();
  EXPECT_LT(log->LastSeq(), kRecords);
  ExpectRecords(*log, log->LastSeq());
  EXPECT_GT(log->GetRecoveryReport().dropped_bytes, 0u);
}

// RocksDB reads the first record of every write-ahead file it still has before it makes a copy.
TEST_F(TornWalTest, DamagedFirstRecordHindersNoCheckpoint) {
  constexpr std::uint64_t kInTheFirstRecord = 20;
  Overwrite(kInTheFirstRecord, "damage");
  const auto log = Open();
  ExpectRecords(*log, 0);
  EXPECT_GT(log->GetRecoveryReport().dropped_bytes, 0u);
  const auto checkpoint = log->CreateCheckpoint();
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->seq, 0u);
}

TEST_F(TornWalTest, DamageBeforeSyncedRecordsIsRefusedEachTime) {
  SyncAll();
  AppendSynced(kRecords + 1, kRecords + 9);
  Overwrite(std::filesystem::file_size(NewestWal()) / 2, "damage");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto log = TryOpen();
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().code, ErrorCode::kDataLoss);
    EXPECT_THAT(log.error().message, HasSubstr(".log is damaged (Corruption: "));
    EXPECT_THAT(log.error().message, HasSubstr(", expected 59; to go on without them"));
  }
}

TEST_F(TornWalTest, OperatorMayGoOnWithoutTheDamagedRecords) {
  SyncAll();
  AppendSynced(kRecords + 1, kRecords + 9);
  Overwrite(std::filesystem::file_size(NewestWal()) / 2, "damage");
  std::filesystem::remove(dir_.data_dir() + "/synced");
  const auto log = Open();
  EXPECT_GE(log->LastSeq(), kRecords);
  ExpectRecords(*log, log->LastSeq());
}

}  // namespace
}  // namespace conductor::storage
