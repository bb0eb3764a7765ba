// Dropping records: the log begins later, the space comes back, nothing else changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "storage/log_retention.h"
#include "storage/log_store.h"
#include "storage/rocksdb_event_log.h"
#include "tests/storage/temp_dir.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;

class RetentionTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    log_.reset();
    auto log = RocksDbEventLog::Open({.data_dir = dir_.data_dir()});
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
  }
  // About `bytes` each.
  void AppendTo(Seq last, std::size_t bytes = 64) {
    while (log_->LastSeq() < last) {
      Frame frame;
      frame.stream = 1;
      frame.number = log_->LastSeq() + 1;
      Stored stored;
      stored.block_length = 16;
      for (std::uint64_t i = 0; i < bytes / 16; ++i) {
        stored.blocks.push_back({{frame.number << 20 | i, ""}, i, HashCheck::kEqual});
      }
      frame.events.push_back(stored);
      ASSERT_TRUE(log_->Append(std::vector<Record>{{{frame}}}, Durability::kBuffered));
    }
  }
  void DropBelow(Seq first) {
    ASSERT_TRUE(log_->Sync());
    const Status dropped = log_->DropBelow(first);
    ASSERT_TRUE(dropped) << dropped.error().message;
  }
  void ExpectRecords(Seq first, Seq last) {
    EXPECT_EQ(log_->FirstSeq(), first);
    EXPECT_EQ(log_->LastSeq(), last);
    std::vector<Seq> expected, found;
    for (Seq seq = first; seq <= last; ++seq) expected.push_back(seq);
    const Status read = log_->Read(first, last, [&](Seq seq, const Record& record) -> Status {
      EXPECT_EQ(std::get<Frame>(record.facts[0]).number, seq);
      found.push_back(seq);
      return {};
    });
    EXPECT_TRUE(read) << read.error().message;
    EXPECT_EQ(found, expected);
  }
  std::uint64_t BytesOnDisk() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.data_dir())) {
      std::error_code gone;
      const auto size = entry.file_size(gone);
      if (!gone) bytes += size;
    }
    return bytes;
  }

  TempDir dir_;
  std::unique_ptr<RocksDbEventLog> log_;
};

TEST_F(RetentionTest, DropSurvivesARestart) {
  AppendTo(20);
  DropBelow(8);
  ExpectRecords(8, 20);
  Open();
  ExpectRecords(8, 20);
  AppendTo(25);
  DropBelow(22);
  Open();
  ExpectRecords(22, 25);
}

TEST_F(RetentionTest, EverythingMayBeDropped) {
  AppendTo(20);
  DropBelow(21);
  ExpectRecords(21, 20);
  Open();
  ExpectRecords(21, 20);
  AppendTo(22);
  Open();
  ExpectRecords(21, 22);
}

TEST_F(RetentionTest, WhatIsNotOnDiskIsNotDropped) {
  AppendTo(10);
  DropBelow(5);
  AppendTo(20);
  const Status early = log_->DropBelow(12);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(early.error().message, HasSubstr("drop below record 12, but the log is on disk"));
  ExpectRecords(5, 20);
}

TEST_F(RetentionTest, EarlierFirstChangesNothing) {
  AppendTo(20);
  DropBelow(8);
  DropBelow(3);
  ExpectRecords(8, 20);
}

TEST_F(RetentionTest, ReadOfADroppedRecordNamesTheFirst) {
  AppendTo(20);
  DropBelow(8);
  const Status read = log_->Read(7, 9, [](Seq, const Record&) -> Status { return {}; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kOutOfRange);
  EXPECT_THAT(read.error().message, HasSubstr("record 7: the log begins at 8"));
}

TEST_F(RetentionTest, StopBetweenTheTwoStepsIsFinishedByTheNextStart) {
  AppendTo(2000, 4096);
  ASSERT_TRUE(log_->Sync());
  log_.reset();
  {
    auto store = OpenLogStore({.data_dir = dir_.data_dir()});
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(WriteFirst(**store, 1990, /*sync=*/true).ok());
  }
  const std::uint64_t before = BytesOnDisk();
  Open();
  ExpectRecords(1990, 2000);
  DropBelow(2001);
  AppendTo(2001);
  Open();
  ExpectRecords(2001, 2001);
  EXPECT_GT(before, 2000u * 4096);
}

TEST_F(RetentionTest, DirectoryStaysBoundedHoweverMuchIsWritten) {
  constexpr std::size_t kRecordBytes = 16 << 10;
  constexpr Seq kRetained = 128;  // 2 MiB
  constexpr std::uint64_t kBoundBytes = 10 * kRetained * kRecordBytes;
  std::uint64_t most = 0;
  for (Seq last = kRetained; last <= 60 * kRetained; last += kRetained / 2) {
    AppendTo(last, kRecordBytes);
    DropBelow(last - kRetained / 2 + 1);
    most = std::max(most, BytesOnDisk());
  }
  EXPECT_LT(most, kBoundBytes);
  ExpectRecords(60 * kRetained - kRetained / 2 + 1, 60 * kRetained);
  Open();
  ExpectRecords(60 * kRetained - kRetained / 2 + 1, 60 * kRetained);
  std::printf("written %zu MiB, at most %llu MiB on disk\n", 60 * kRetained * kRecordBytes >> 20,
              static_cast<unsigned long long>(most) >> 20);
}

}  // namespace
}  // namespace conductor::storage
